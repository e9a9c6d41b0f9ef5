// `tapestry chat`: a conversation on the terminal, or with whatever writes lines.
// Next: ../transformer/chat.h.
#include "../transformer/chat.h"

#include <fmt/core.h>
#include <unistd.h>

#include <iostream>
#include <memory>

#include "../../autograd/error.h"
#include "text_options.h"

namespace tapestry::programs {
namespace {

struct Options {
  TextOptions text;
  std::string format, system;
  bool speed = false;
};

void run(Options& o) {
  const ChatTemplate& format =
      o.format.empty() ? chat_template_of_folder(o.text.model.folder) : chat_template(o.format);
  const TextModel model = load_model(o.text.model);
  if (!o.text.ignore_eos) o.text.generate.stop_ids = model.eos_ids;
  Chat chat(*model.model, *model.tokenizer,
            {.format = &format, .system = o.system, .generate = o.text.generate, .stop = o.text.stop});
  const bool by_hand = ::isatty(STDIN_FILENO) != 0;
  if (by_hand) put(fmt::format("template {}; /new begins another conversation, /exit ends\n", format.name), stdout);
  for (std::string line;;) {
    if (by_hand) put("> ", stdout);
    if (!std::getline(std::cin, line) || line == "/exit") break;
    if (line == "/new") {
      chat.clear();
      continue;
    }
    if (line.empty()) continue;
    const auto say = [](std::string_view piece) { put(piece, stdout); };
    TextGeneration answer;
    try {
      answer = chat.reply(line, say);
    } catch (const ValueError& e) {
      if (!by_hand) throw;
      put(std::string(e.what()) + " with /new\n", stdout);
      continue;
    }
    put("\n", stdout);
    if (answer.tokens.reason == EndReason::max_seq_len)
      fmt::print(stderr, "the context of {} tokens is full\n", model.model->config.max_seq_len);
    if (o.speed) report_speed(chat.last_read(), answer.tokens);
  }
}

}  // namespace

void add_chat(CLI::App& app) {
  CLI::App* command = app.add_subcommand("chat", "talk with a model; each line of input is a turn");
  const auto o = std::make_shared<Options>();
  add_text_options(*command, o->text);
  command
      ->add_option(
          "--template", o->format,
          "how turns are written down: chatml, llama-3 or gemma; else as the model's folder says, if it is one")
      ->type_name("NAME");
  command->add_option("--system", o->system, "what stands before the first turn")->type_name("TEXT");
  command->add_flag("--speed", o->speed, "report tokens a second after each answer");
  command->callback([o] { run(*o); });
}

}  // namespace tapestry::programs
