// Cutting in parallel, with the same pieces as cutting from the front to the end.
// Next: bpe_trainer.cpp.
#include "word_counts.h"

#include <algorithm>
#include <unordered_map>

#include "../../autograd/parallel.h"
#include "utf8_runs.h"

namespace tapestry {
namespace {

constexpr size_t block_bytes = size_t{1} << 20;
constexpr size_t blocks_at_once = 16;  // bounds the memory for their words

/// Part of a run of UTF-8 between special tokens, or bytes that are none.
struct Span {
  std::string_view run;
  size_t begin = 0, end = 0;  // of the run
  bool valid = true;
};

// Note [Blocks fall into step]
// Cutting is without memory: the pieces after a cut depend on where it is, not on how it was reached. So a block can be
// cut from a guessed place on, and from the first of its cuts that the text before it reaches, too, its pieces are right.
// Only the pieces before that are cut again.
struct Block {
  std::vector<Span> spans;              // only the first may begin inside its run
  std::vector<std::string_view> words;  // of all spans, in order
  size_t bytes = 0;
};

size_t next_cut(RegexMatcher& matcher, std::string_view run, size_t at) {
  for (size_t from = at; from < run.size();) {
    const RegexMatch match = matcher.find(run, from);
    if (match.kind != RegexMatch::Kind::found) break;
    if (match.begin > at) return match.begin;
    if (match.end > match.begin) return match.end;
    from += static_cast<size_t>(front_utf8(run.substr(from)).length);
  }
  return run.size();
}

void cut(Block& block, const Regex& pattern) {
  RegexMatcher matcher(pattern);
  for (const Span& span : block.spans) {
    if (!span.valid) block.words.push_back(span.run);
    for (size_t at = span.begin; span.valid && at < span.end;) {
      const size_t end = next_cut(matcher, span.run, at);
      block.words.push_back(span.run.substr(at, end - at));
      at = end;
    }
  }
}

/// Where the last word of the block's last span ends, in its run.
size_t reached(const Block& block, size_t before) {
  const Span& last = block.spans.back();
  const bool inside = !block.words.empty() && block.words.back().data() >= last.run.data() + last.begin;
  return inside ? static_cast<size_t>(block.words.back().data() + block.words.back().size() - last.run.data()) : before;
}

/// Replaces the words at the front that were cut from a guessed place. `at`: where the words before the block end.
void fall_into_step(Block& block, size_t at, const Regex& pattern) {
  const Span& span = block.spans.front();
  RegexMatcher matcher(pattern);
  std::vector<std::string_view> again;
  size_t dropped = 0;
  const auto begin_of = [&](size_t word) { return static_cast<size_t>(block.words[word].data() - span.run.data()); };
  const auto in_span = [&](size_t word) {
    return word < block.words.size() && block.words[word].data() >= span.run.data() &&
           block.words[word].data() < span.run.data() + span.end;
  };
  for (;;) {
    while (in_span(dropped) && begin_of(dropped) < at) ++dropped;
    if (at >= span.end || (in_span(dropped) && begin_of(dropped) == at)) break;
    const size_t end = next_cut(matcher, span.run, at);
    again.push_back(span.run.substr(at, end - at));
    at = end;
  }
  block.words.erase(block.words.begin(), block.words.begin() + static_cast<std::ptrdiff_t>(dropped));
  block.words.insert(block.words.begin(), again.begin(), again.end());
}

std::vector<Block> blocks_of(std::string_view text, const AddedTokens& special) {
  std::vector<Block> blocks(1);
  const auto add = [&](std::string_view run, bool valid) {
    for (size_t begin = 0; begin < run.size();) {
      if (blocks.back().bytes >= block_bytes) blocks.emplace_back();
      size_t end = run.size();
      if (valid) {
        end = std::min(end, begin + block_bytes - std::min(blocks.back().bytes, block_bytes - 1));
        while (end < run.size() && (static_cast<unsigned char>(run[end]) & 0xC0) == 0x80) ++end;
      }
      blocks.back().spans.push_back({run, begin, end, valid});
      blocks.back().bytes += end - begin;
      begin = end;
    }
  };
  for (size_t from = 0; from < text.size();) {
    const auto found = special.find(text, from, true);
    for_each_utf8_run(text.substr(from, (found ? found->begin : text.size()) - from), add);
    from = found ? found->end : text.size();
  }
  return blocks;
}

using Counts = std::unordered_map<std::string_view, int64_t>;

}  // namespace

WordCounts count_words(std::string_view text, const Regex& pattern, const AddedTokens& special) {
  std::vector<Block> blocks = blocks_of(text, special);
  Counts total;
  size_t at = 0;
  for (size_t first = 0; first < blocks.size(); first += blocks_at_once) {
    const auto n = static_cast<int64_t>(std::min(blocks_at_once, blocks.size() - first));
    const auto block = [&](int64_t i) -> Block& { return blocks[first + static_cast<size_t>(i)]; };
    parallel_for(n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) cut(block(i), pattern);
    });
    for (int64_t i = 0; i < n; ++i) {
      if (block(i).spans.empty()) continue;
      const bool goes_on = block(i).spans.front().begin > 0;
      if (goes_on) fall_into_step(block(i), at, pattern);
      at = reached(block(i), goes_on && block(i).spans.size() == 1 ? at : 0);
    }
    std::vector<Counts> counts(static_cast<size_t>(n));
    parallel_for(n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (const std::string_view word : block(i).words) ++counts[static_cast<size_t>(i)][word];
    });
    for (int64_t i = 0; i < n; ++i) {
      for (const auto& [word, count] : counts[static_cast<size_t>(i)]) total[word] += count;
      block(i) = {};
    }
  }
  WordCounts sorted;
  sorted.entries.reserve(total.size());
  for (const auto& [word, count] : total) sorted.entries.push_back({word, count});
  std::sort(sorted.entries.begin(), sorted.entries.end(), [](const auto& a, const auto& b) { return a.word < b.word; });
  return sorted;
}

}  // namespace tapestry
