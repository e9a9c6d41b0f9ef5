// The steps of cutting.
// Next: bpe.cpp.
#include "pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "utf8_runs.h"

namespace tapestry {
namespace {

using Behavior = SplitStep::Behavior;

/// Turns the alternation of gaps and matches into pieces.
class Pieces {
 public:
  Pieces(std::string_view text, Behavior behavior, PieceTaker take) : text_(text), behavior_(behavior), take_(take) {}

  void add(size_t begin, size_t end, bool match) {
    if (begin == end) return;
    switch (behavior_) {
      case Behavior::removed:
        if (!match) give(begin, end);
        return;
      case Behavior::isolated:
        return give(begin, end);
      case Behavior::merged_with_previous:
        if (match && has_last_ && !last_match_) {
          last_end_ = end;
          last_match_ = true;
          return;
        }
        break;
      case Behavior::merged_with_next:
        if (has_last_ && last_match_ && !match) {
          last_end_ = end;
          last_match_ = false;
          return;
        }
        break;
      case Behavior::contiguous:
        if (has_last_ && last_match_ == match) {
          last_end_ = end;
          return;
        }
    }
    finish();
    has_last_ = true;
    last_begin_ = begin;
    last_end_ = end;
    last_match_ = match;
  }
  void finish() {
    if (has_last_) give(last_begin_, last_end_);
    has_last_ = false;
  }

 private:
  void give(size_t begin, size_t end) { take_(text_.substr(begin, end - begin)); }

  std::string_view text_;
  Behavior behavior_;
  PieceTaker take_;
  size_t last_begin_ = 0, last_end_ = 0;
  bool has_last_ = false, last_match_ = false;
};

void split(const SplitStep& step, RegexMatcher& matcher, std::string_view text, PieceTaker take) {
  Pieces pieces(text, step.behavior, take);
  size_t done = 0;
  for (size_t from = 0; from <= text.size();) {
    const RegexMatch match = matcher.find(text, from);
    if (match.kind != RegexMatch::Kind::found) break;
    pieces.add(done, match.begin, step.invert);
    pieces.add(match.begin, match.end, !step.invert);
    done = from = match.end;
    if (match.begin == match.end) {  // an empty match cuts, and the next one begins a character later
      if (from == text.size()) break;
      from += static_cast<size_t>(front_utf8(text.substr(from)).length);
    }
  }
  pieces.add(done, text.size(), step.invert);
  pieces.finish();
}

std::string metaspace(const MetaspaceStep& step, std::string_view text, bool first) {
  std::string out;
  const bool prepend =
      step.prepend == MetaspaceStep::Prepend::always || (step.prepend == MetaspaceStep::Prepend::first && first);
  if (prepend && !text.starts_with(step.replacement) && !text.starts_with(' ')) out = step.replacement;
  for (const char c : text) c == ' ' ? out += step.replacement : out += c;
  return out;
}

}  // namespace

PreTokenizer::Scratch::Scratch(const PreTokenizer& p) : matchers_(p.steps().size()) {
  for (size_t i = 0; i < matchers_.size(); ++i)
    if (const auto* s = std::get_if<SplitStep>(&p.steps()[i])) matchers_[i].emplace(s->pattern);
}

void PreTokenizer::run(std::string_view text, bool first, Scratch& scratch, PieceTaker take) const {
  if (!text.empty()) run_step(0, text, first, scratch, take);
}

void PreTokenizer::run_step(size_t step, std::string_view piece, bool first, Scratch& scratch, PieceTaker take) const {
  if (step == steps_.size()) return take(piece);
  auto descend = [&](std::string_view p) { run_step(step + 1, p, first && p.data() == piece.data(), scratch, take); };
  const PieceTaker next = step + 1 == steps_.size() ? take : PieceTaker(descend);
  if (const auto* s = std::get_if<SplitStep>(&steps_[step])) {
    for_each_utf8_run(piece, [&](std::string_view run, bool valid) {
      valid ? split(*s, *scratch.matchers_[step], run, next) : next(run);
    });
  } else if (const auto* m = std::get_if<MetaspaceStep>(&steps_[step])) {
    const std::string marked = metaspace(*m, piece, first);
    if (!m->split) return next(marked);
    for (size_t begin = 0; begin < marked.size();) {
      const size_t end = std::min(marked.find(m->replacement, begin + 1), marked.size());
      next(std::string_view(marked).substr(begin, end - begin));
      begin = end;
    }
  } else {
    piece.starts_with(' ') ? next(piece) : next(" " + std::string(piece));
  }
}

size_t PreTokenizer::decided(std::string_view text, Scratch& scratch) const {
  if (steps_.empty()) return 0;
  const auto* s = std::get_if<SplitStep>(&steps_.front());
  if (s == nullptr || s->behavior != Behavior::isolated || s->invert) return 0;
  for (const char* looks_back : {"(?<", "\\A"})
    if (s->pattern.pattern().find(looks_back) != std::string::npos) return 0;
  // Runs are cut by themselves, so all but the last are decided; a character that is not whole yet may go on with it.
  size_t run = 0, end = 0;
  bool valid = false;
  for_each_utf8_run(text, [&](std::string_view bytes, bool is_valid) {
    const bool ends = end + bytes.size() == text.size();
    if (!is_valid && ends && front_utf8(bytes).kind == Utf8Char::Kind::incomplete) return;
    run = std::exchange(end, end + bytes.size());
    valid = is_valid;
  });
  if (!valid) return end;
  const std::string_view last = text.substr(run, end - run);
  RegexMatcher& matcher = *scratch.matchers_.front();
  std::vector<size_t> cuts = {0};
  while (cuts.back() < last.size()) {
    const RegexMatch match = matcher.find(last, cuts.back(), /*partial=*/true);
    if (match.kind != RegexMatch::Kind::found || match.end == cuts.back()) break;
    cuts.push_back(match.end);
  }
  // The front ends where text went on, so that a look ahead may cut it otherwise; then less of it is taken.
  for (int tries = 0; tries < 8 && cuts.size() > 1; ++tries, cuts.pop_back()) {
    const std::string_view front = last.substr(0, cuts.back());
    bool same = true;
    for (size_t c = 1; c < cuts.size() && same; ++c) same = matcher.find(front, cuts[c - 1]).end == cuts[c];
    if (same) return run + front.size();
  }
  return run;
}

}  // namespace tapestry
