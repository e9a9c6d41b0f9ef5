// The loop: read, draw, hand out.
// Next: generate_text.cpp.
#include "generate.h"

#include <chrono>

#include "../../autograd/error.h"

namespace tapestry {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

DecoderOptions decoder_options(const GenerateOptions& o) {
  return {.slide = o.when_full == WhenFull::slide,
          .prefill_chunk = o.prefill_chunk,
          .cache = o.bf16_cache ? std::optional(DType::bf16) : std::nullopt};
}

std::vector<Generation> generate(Decoder& decoder, std::span<const std::vector<int32_t>> prompts,
                                 const GenerateOptions& options, const Emit& emit) {
  const auto most = static_cast<size_t>(decoder.model().config.max_seq_len);
  std::vector<Writer> writers;
  std::vector<int64_t> live;  // texts that go on; the decoder's sequences, in its order
  for (size_t i = 0; i < prompts.size(); ++i) {
    const std::span<const int32_t> before = decoder.tokens(i);
    std::vector<int32_t> seen(before.begin(), before.end());
    seen.insert(seen.end(), prompts[i].begin(), prompts[i].end());
    writers.emplace_back(options, options.seed + i, seen);
    live.push_back(static_cast<int64_t>(i));
  }
  const auto text = [&](size_t sequence) { return static_cast<size_t>(live[sequence]); };
  std::vector<std::vector<int32_t>> next(prompts.begin(), prompts.end());
  const Clock::time_point start = Clock::now();
  Clock::time_point read_prompt = start;
  bool any = !writers.empty() && !writers[0].done();  // max_tokens is the same for all
  for (bool first = true; any; first = false) {
    const std::vector<std::vector<float>> logits = decoder.read(next);
    if (first) read_prompt = Clock::now();
    std::vector<int64_t> going, still_live;
    next.clear();
    for (size_t s = 0; s < live.size(); ++s) {
      Writer& writer = writers[text(s)];
      const std::optional<int32_t> id = writer.draw(logits[s]);
      if (id && !emit(text(s), *id)) writer.end(EndReason::stopped);
      if (!writer.done() && decoder.tokens(s).size() == most) {
        if (options.when_full == WhenFull::error)
          fail<ValueError>("generate: max_seq_len {} is reached after {} tokens; ask for less, stop, or slide", most,
                           writer.result.ids.size());
        if (options.when_full == WhenFull::stop) writer.end(EndReason::max_seq_len);
      }
      if (writer.done()) continue;
      going.push_back(static_cast<int64_t>(s));
      still_live.push_back(live[s]);
      next.push_back({*id});
    }
    any = !going.empty();
    if (any && going.size() < live.size()) decoder.keep(going);
    if (any) live = std::move(still_live);
  }
  std::vector<Generation> results;
  for (Writer& writer : writers) {
    writer.result.prompt_seconds = seconds(start, read_prompt);
    writer.result.decode_seconds = seconds(read_prompt, Clock::now());
    results.push_back(std::move(writer.result));
  }
  return results;
}

std::vector<Generation> generate(const Transformer& model, std::span<const std::vector<int32_t>> prompts,
                                 const GenerateOptions& options, const Emit& emit) {
  Decoder decoder(model, decoder_options(options));
  return generate(decoder, prompts, options, emit);
}

Generation generate(const Transformer& model, std::span<const int32_t> prompt, const GenerateOptions& options,
                    const std::function<void(int32_t id)>& emit) {
  const std::vector<int32_t> row(prompt.begin(), prompt.end());
  return generate(model, std::span<const std::vector<int32_t>>(&row, 1), options, [&](size_t, int32_t id) {
    emit(id);
    return true;
  })[0];
}

}  // namespace tapestry
