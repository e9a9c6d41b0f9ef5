// From logits to tokens.
// Next: generate.cpp.
#include "writer.h"

#include <algorithm>

#include "../../autograd/error.h"

namespace tapestry {

std::string_view name_of(EndReason reason) {
  constexpr std::string_view names[] = {"max_tokens", "stop_id", "stopped", "max_seq_len"};
  return names[static_cast<size_t>(reason)];
}

Writer::Writer(const GenerateOptions& options, uint64_t seed, std::span<const int32_t> prompt)
    : options_(options), ticket_{.key = seed, .stream = hash_name("generate")} {
  if (options.max_tokens < 0)
    fail<ValueError>("generate: max_tokens is {}; it must not be negative", options.max_tokens);
  validate(options.sampler);
  for (const int32_t id : prompt) counts_.try_emplace(id, 0);
  if (options.max_tokens == 0) end(EndReason::max_tokens);
}

std::optional<int32_t> Writer::draw(std::span<const float> logits) {
  const auto words = ticket_.block(result.ids.size());
  const SamplerOptions& how = options_.sampler;
  const bool penalised = how.repetition_penalty != 1 || how.presence_penalty != 0 || how.frequency_penalty != 0;
  const std::vector<float> changed = penalised ? penalise(logits, how, counts_) : std::vector<float>{};
  const int32_t id = sample(penalised ? changed : logits, how, uniform_f64(words[0], words[1]));
  if (std::find(options_.stop_ids.begin(), options_.stop_ids.end(), id) != options_.stop_ids.end()) {
    end(EndReason::stop_id);
    return {};
  }
  if (options_.log_probabilities >= 0) {
    result.log_probabilities.push_back(log_probability(logits, id));
    result.top.push_back(top_log_probabilities(logits, options_.log_probabilities));
  }
  result.ids.push_back(id);
  ++counts_[id];
  if (static_cast<int64_t>(result.ids.size()) == options_.max_tokens) end(EndReason::max_tokens);
  return id;
}

void Writer::end(EndReason reason) {
  done_ = true;
  result.reason = reason;
}

}  // namespace tapestry
