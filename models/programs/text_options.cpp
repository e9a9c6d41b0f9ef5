// The options, and what follows from them.
// Next: chat.cpp.
#include "text_options.h"

#include <fmt/core.h>

#include <algorithm>

#include "../../nn/lora.h"
#include "../transformer/hf/adapter.h"

namespace tapestry::programs {

void add_text_options(CLI::App& command, TextOptions& o) {
  SamplerOptions& s = o.generate.sampler;
  const auto number = [&](const char* name, auto& value, const char* type, const char* what) {
    command.add_option(name, value, what)->type_name(type)->capture_default_str();
  };
  add_model_options(command, o.model);
  number("--max-tokens", o.generate.max_tokens, "N", "tokens to write");
  number("--temperature", s.temperature, "T", "logits are divided by it; 0 takes the likeliest token");
  number("--top-k", s.top_k, "K", "draw among the K likeliest tokens; 0 among all");
  number("--top-p", s.top_p, "P", "draw among the likeliest tokens that together have probability P");
  number("--min-p", s.min_p, "P", "draw among tokens at least P times as likely as the likeliest");
  number("--repetition-penalty", s.repetition_penalty, "R",
         "divides positive logits of tokens seen, multiplies others");
  number("--presence-penalty", s.presence_penalty, "A", "is subtracted from the logits of tokens written");
  number("--frequency-penalty", s.frequency_penalty, "A", "is subtracted once for each time a token was written");
  command.add_option("--seed", o.generate.seed, "same seed, same text")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--stop", o.stop, "ends the text where this would begin; may be given several times")
      ->type_name("TEXT")
      ->type_size(1)
      ->allow_extra_args(false);
  command.add_flag("--ignore-eos", o.ignore_eos, "write on after a token that ends texts");
  number("--prefill-chunk", o.generate.prefill_chunk, "N", "tokens of a prompt to read at once; 0 reads all");
  command.add_flag("--bf16-cache", o.generate.bf16_cache, "keep keys and values in bf16, for half the memory");
}

void add_model_options(CLI::App& command, ModelOptions& o) {
  command.add_option("--model", o.folder, "folder of a model")->type_name("DIR")->required();
  command.add_option("--dtype", o.dtype, "numbers it computes with")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  command.add_option("--adapter", o.adapter, "folder of low-rank adapters to fold in, as finetune writes it")
      ->type_name("DIR");
  add_threads_option(command);
}

TextModel load_model(const ModelOptions& o) {
  TextModel loaded = load_text_model(o.folder, {.dtype = o.dtype == "bf16" ? DType::bf16 : DType::f32});
  if (o.adapter.empty()) return loaded;
  Transformer& model = *loaded.model;
  hf::load_adapter(o.adapter, model,
                   loaded.family.empty() ? hf::family_for(model.config) : hf::family_named(loaded.family));
  fold_lora(model);
  return loaded;
}

void report_speed(int64_t prompt_tokens, const Generation& g) {
  const auto rate = [](int64_t n, double seconds) { return seconds > 0 ? static_cast<double>(n) / seconds : 0.0; };
  // The first token follows from the prompt alone.
  const int64_t written = static_cast<int64_t>(g.ids.size()), decoded = std::max<int64_t>(0, written - 1);
  fmt::print(stderr, "prompt: {} tokens, {:.1f} tokens/s; written: {} tokens, {:.1f} tokens/s; ended by {}\n",
             prompt_tokens, rate(prompt_tokens, g.prompt_seconds), written, rate(decoded, g.decode_seconds),
             name_of(g.reason));
}

}  // namespace tapestry::programs
