// The decoding loop.
// Next: sampler.cpp.
#include "generate.h"

#include <algorithm>

#include "../../autograd/error.h"
#include "../../autograd/grad_mode.h"
#include "../../autograd/random.h"
#include "../../ops/ops.h"

namespace tapestry {

Decoder::Decoder(const Transformer& model)
    : model_(model), cache_(model.config, {.dtype = model.token_embedding.weight.dtype()}) {}

std::vector<float> Decoder::read(std::span<const int32_t> tokens) {
  if (tokens.empty()) fail<ValueError>("generate: there are no tokens to read; give at least one");
  const NoGrad no_grad;
  window_.insert(window_.end(), tokens.begin(), tokens.end());
  const int64_t most = model_.config.max_seq_len;
  if (static_cast<int64_t>(window_.size()) > most) {
    const auto kept = static_cast<std::ptrdiff_t>(std::max<int64_t>(1, most / 2));
    window_.erase(window_.begin(), window_.end() - kept);
    cache_.clear();
    return select(forward(window_), 0, -1).to_vector<float>();
  }
  return select(forward(tokens), 0, -1).to_vector<float>();
}

/// (T) to (1, V), after what the cache holds.
Tensor Decoder::forward(std::span<const int32_t> tokens) {
  const std::vector<int64_t> ids(tokens.begin(), tokens.end());
  const auto n = static_cast<int64_t>(ids.size());
  return select(model_(from(ids, {1, n}), TransformerArgs{.cache = &cache_, .last_only = true}), 0, 0);
}

void generate(const Transformer& model, std::span<const int32_t> prompt, const GenerateOptions& options,
              const std::function<void(int32_t id)>& emit) {
  if (options.max_tokens < 0)
    fail<ValueError>("generate: max_tokens is {}; it must not be negative", options.max_tokens);
  validate(options.sampler);
  const Ticket ticket{.key = options.seed, .stream = hash_name("generate")};
  Decoder decoder(model);
  std::vector<int32_t> next(prompt.begin(), prompt.end());
  for (int64_t i = 0; i < options.max_tokens; ++i) {
    const std::vector<float> logits = decoder.read(next);
    const auto words = ticket.block(static_cast<uint64_t>(i));
    next = {sample(logits, options.sampler, uniform_f64(words[0], words[1]))};
    emit(next[0]);
  }
}

}  // namespace tapestry
