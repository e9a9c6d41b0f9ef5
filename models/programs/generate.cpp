// `tapestry generate`: a trained model writes on.
// Next: text_options.cpp.
#include <fmt/core.h>

#include <memory>

#include "text_options.h"

namespace tapestry::programs {
namespace {

struct Options {
  TextOptions text;
  std::vector<std::string> prompts;
  bool special = false;
  int64_t log_probabilities = 0;
  std::string when_full = "slide";
};

std::vector<int32_t> tokens_of(const TextModel& model, const std::string& prompt, bool special) {
  if (prompt.empty()) return start_tokens(*model.tokenizer, model.bos_id);
  std::vector<int32_t> ids = before_text(*model.tokenizer);
  const std::vector<int32_t> text = model.tokenizer->encode(prompt, {.parse_special = special});
  ids.insert(ids.end(), text.begin(), text.end());
  return ids;
}

/// A line a token: its log-probability, and the likeliest ones at its place with theirs.
void print_log_probabilities(const Tokenizer& tokenizer, const Generation& g) {
  const auto text = [&](int32_t id) {
    return fmt::format("{} {:?}", id, id < tokenizer.vocab_size() ? tokenizer.decode({&id, 1}) : "");
  };
  for (size_t i = 0; i < g.ids.size(); ++i) {
    fmt::print(stderr, "{:9.4f}  {}  |", g.log_probabilities[i], text(g.ids[i]));
    for (const LogProbability& p : g.top[i]) fmt::print(stderr, "  {:.4f} {}", p.value, text(p.id));
    fmt::print(stderr, "\n");
  }
}

void run(Options& o) {
  const TextModel model = load_model(o.text.model);
  GenerateOptions& options = o.text.generate;
  options.when_full = o.when_full == "slide"  ? WhenFull::slide
                      : o.when_full == "stop" ? WhenFull::stop
                                              : WhenFull::error;
  options.log_probabilities = o.log_probabilities > 0 ? o.log_probabilities : -1;
  if (!o.text.ignore_eos) options.stop_ids = model.eos_ids;
  if (o.prompts.empty()) o.prompts.emplace_back();
  std::vector<std::vector<int32_t>> prompts;
  for (const std::string& prompt : o.prompts) prompts.push_back(tokens_of(model, prompt, o.special));
  Decoder decoder(*model.model, decoder_options(options));
  const bool one = prompts.size() == 1;  // several cannot be shown as they grow
  if (one) put(Utf8Stream().push(o.prompts[0]), stdout);
  const std::vector<TextGeneration> texts =
      generate_text(decoder, *model.tokenizer, prompts, options, o.text.stop, [&](size_t, std::string_view piece) {
        if (one) put(piece, stdout);
      });
  for (size_t i = 0; i < texts.size(); ++i) {
    put(one ? "\n" : o.prompts[i] + texts[i].text + "\n", stdout);
    report_speed(static_cast<int64_t>(prompts[i].size()), texts[i].tokens);
    if (o.log_probabilities > 0) print_log_probabilities(*model.tokenizer, texts[i].tokens);
  }
}

}  // namespace

void add_generate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("generate", "let a trained model write");
  const auto o = std::make_shared<Options>();
  add_text_options(*command, o->text);
  command->add_option("--prompt", o->prompts, "text to go on from; several are read side by side")
      ->type_name("TEXT")
      ->type_size(1)
      ->allow_extra_args(false);
  command->add_flag("--special", o->special, "special tokens in the prompt are meant as such");
  command->add_option("--when-full", o->when_full, "what happens once the model has read max_seq_len tokens")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"slide", "stop", "error"}))
      ->capture_default_str();
  command->add_option("--log-probabilities", o->log_probabilities, "list each token with the K likeliest ones")
      ->type_name("K")
      ->check(CLI::NonNegativeNumber);
  command->callback([o] { run(*o); });
}

}  // namespace tapestry::programs
