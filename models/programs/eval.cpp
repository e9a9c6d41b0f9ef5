// `tapestry eval`: how well a model predicts a text.
// Next: ../training/text_loss.h.
#include <fmt/core.h>

#include <chrono>
#include <memory>

#include "../../nn/mapped_file.h"
#include "../training/text_loss.h"
#include "text_options.h"

namespace tapestry::programs {
namespace {

struct Options {
  ModelOptions model;
  std::string data;
  TextLossOptions loss;
};

void run(const Options& o) {
  const TextModel model = load_model(o.model);
  const MappedFile file(o.data);
  const std::string_view text = file.bytes();
  std::vector<int32_t> ids = before_text(*model.tokenizer);
  const bool begun = !ids.empty();
  const std::vector<int32_t> tokens = model.tokenizer->encode(text);
  ids.insert(ids.end(), tokens.begin(), tokens.end());
  // Without a token before it, the first token of the text is not predicted.
  const auto first = begun ? 0 : static_cast<int64_t>(model.tokenizer->decode({ids.data(), 1}).size());
  const int64_t bytes = static_cast<int64_t>(text.size()) - first;
  const auto start = std::chrono::steady_clock::now();
  const TokenLoss loss = text_loss(*model.model, ids, o.loss);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const int64_t context = o.loss.context == 0 ? model.model->config.max_seq_len : o.loss.context;
  fmt::print("{}: {} bytes, {} tokens predicted, context {}, stride {}\n", o.data, text.size(), loss.tokens, context,
             o.loss.stride == 0 ? context : o.loss.stride);
  fmt::print("loss          {:9.4f} nats a token\n", loss.mean());
  fmt::print("perplexity    {:9.3f}\n", loss.perplexity());
  fmt::print("bits per byte {:9.4f}\n", bits_per_byte(loss, bytes));
  fmt::print(stderr, "{:.1f} tokens/s\n", static_cast<double>(loss.tokens) / seconds);
}

}  // namespace

void add_eval(CLI::App& app) {
  CLI::App* command = app.add_subcommand("eval", "loss, perplexity and bits per byte of a text under a model");
  const auto o = std::make_shared<Options>();
  add_model_options(*command, o->model);
  command->add_option("--data", o->data, "the text")->type_name("FILE")->required();
  command->add_option("--context", o->loss.context, "tokens the model sees at once; 0: as many as it can")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--stride", o->loss.stride, "tokens from one window to the next; 0: the context")
      ->type_name("N")
      ->capture_default_str();
  command->callback([o] { run(*o); });
}

}  // namespace tapestry::programs
