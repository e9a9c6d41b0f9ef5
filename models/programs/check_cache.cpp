// `tapestry check-cache`: proof that a model's cached logits are those it computes anew.
// Next: ../transformer/check_cache.h.
#include "../transformer/check_cache.h"

#include <fmt/core.h>

#include <memory>

#include "../../autograd/error.h"
#include "text_options.h"

namespace tapestry::programs {
namespace {

struct Options {
  ModelOptions model;
  CacheCheckOptions check;
  double bound = 0;
};

void run(const Options& o) {
  const TextModel loaded = load_model(o.model);
  const Transformer& model = *loaded.model;
  const CacheCheck check = check_cache(model, o.check);
  const bool rounded = o.check.bf16_cache || model.token_embedding.weight.dtype() == DType::bf16;
  const double bound = o.bound > 0 ? o.bound : rounded ? 5e-2 : 1e-5;
  fmt::print("{} tokens in each of 3 sequences; the largest logit is {:.4g}\n", check.tokens, check.largest_logit);
  if (!check.fills_window)
    fmt::print("the window of {} was not filled; --tokens {} would\n", model.config.window, model.config.window + 8);
  for (const CacheCheck::Row& row : check.rows) fmt::print("  {:<38}{:10.2e}\n", row.way, row.difference);
  if (!(check.worst() <= bound))
    fail<ValueError>("check-cache: cached and recomputed logits differ by {:.2e} of the largest logit, above {:.0e}",
                     check.worst(), bound);
  fmt::print("cached = recomputed within {:.0e} of the largest logit\n", bound);
}

}  // namespace

void add_check_cache(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("check-cache", "compare a model's logits with a cache and without, however it reads");
  const auto o = std::make_shared<Options>();
  add_model_options(*command, o->model);
  command->add_option("--tokens", o->check.tokens, "tokens to read; 0 for what fills the window, or 64")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--chunk", o->check.chunk, "tokens at once where they are read in pieces")
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--bf16-cache", o->check.bf16_cache, "keep keys and values in bf16");
  command->add_option("--bound", o->bound, "largest difference over the largest logit; 0: 1e-5, or 0.05 with bf16")
      ->type_name("X")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->callback([o] { run(*o); });
}

}  // namespace tapestry::programs
