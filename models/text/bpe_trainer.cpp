// Merging with counts that are kept up to date, a heap of pairs, and the places where each pair stands.
// Next: tokenizer_json.cpp.
#include "bpe_trainer.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <set>
#include <unordered_map>

#include "../../autograd/error.h"
#include "byte_alphabet.h"
#include "tokenizer_parts.h"
#include "word_counts.h"

namespace tapestry {
namespace {

constexpr int32_t none = -1;

class MergeCounter {
 public:
  explicit MergeCounter(const WordCounts& words) : queue_(Less{this}) {
    for (int b = 0; b < 256; ++b) {
      tokens_.emplace_back(1, static_cast<char>(b));
      id_of_.emplace(tokens_.back(), b);
    }
    size_t bytes = 0;
    for (const auto& entry : words.entries) bytes += entry.word.size();
    if (bytes > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
      fail<ValueError>("bpe: the different words of the text have {} bytes together; at most 2^31 - 1 are supported",
                       bytes);
    places_.reserve(bytes);
    for (const auto& entry : words.entries) {
      const auto begin = static_cast<int32_t>(places_.size());
      const auto length = static_cast<int32_t>(entry.word.size());
      for (int32_t i = 0; i < length; ++i) {
        const auto byte = static_cast<unsigned char>(entry.word[static_cast<size_t>(i)]);
        places_.push_back({.token = byte,
                           .before = i == 0 ? none : begin + i - 1,
                           .after = i + 1 == length ? none : begin + i + 1,
                           .word = static_cast<int32_t>(counts_.size())});
      }
      counts_.push_back(entry.count);
    }
    for (int32_t p = 0; p < static_cast<int32_t>(places_.size()); ++p)
      if (at(p).after != none) add(at(p).token, at(at(p).after).token, p);
    queue_grown();
  }

  /// Merges until there are `size` tokens or no pair is left.
  void run(size_t size) {
    while (tokens_.size() < size && !queue_.empty()) {
      const Candidate c = queue_.top();
      queue_.pop();
      const int64_t count = pairs_[static_cast<size_t>(c.pair)].count;
      if (count == c.count)
        merge(c.pair);
      else if (count > 0 && count < c.count)  // it has lost places since; if it has won some, a newer candidate waits
        queue_.push({count, c.pair});
    }
  }

  ByteLevelVocabulary vocabulary() && {
    return {.tokens = std::move(tokens_), .merges = std::move(merges_), .special = {}, .pattern = {}};
  }

 private:
  /// A token's place in the words; joined places are the first of them, the others have token −1.
  struct Place {
    int32_t token, before, after, word;
  };
  struct Pair {
    int32_t left, right;
    int64_t count = 0;
    std::vector<int32_t> places;  // of left; some may be out of date
    bool grown = false;           // has won places in this merge
  };
  struct Candidate {
    int64_t count;
    int32_t pair;
  };
  struct Less {  // the greatest candidate comes first
    const MergeCounter* t;
    bool operator()(const Candidate& a, const Candidate& b) const {
      if (a.count != b.count) return a.count < b.count;
      const Pair &p = t->pairs_[static_cast<size_t>(a.pair)], &q = t->pairs_[static_cast<size_t>(b.pair)];
      if (p.left != q.left) return t->text(p.left) < t->text(q.left);
      return t->text(p.right) < t->text(q.right);
    }
  };

  Place& at(int32_t place) { return places_[static_cast<size_t>(place)]; }
  [[nodiscard]] const std::string& text(int32_t token) const { return tokens_[static_cast<size_t>(token)]; }

  Pair& pair(int32_t left, int32_t right) {
    const uint64_t key = uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
    const auto [it, is_new] = pair_of_.try_emplace(key, static_cast<int32_t>(pairs_.size()));
    if (is_new) pairs_.push_back({.left = left, .right = right, .count = 0, .places = {}, .grown = false});
    return pairs_[static_cast<size_t>(it->second)];
  }

  void add(int32_t left, int32_t right, int32_t place) {
    Pair& p = pair(left, right);
    p.count += counts_[static_cast<size_t>(at(place).word)];
    p.places.push_back(place);
    if (!std::exchange(p.grown, true)) grown_.push_back(static_cast<int32_t>(&p - pairs_.data()));
  }
  void remove(int32_t left, int32_t right, int32_t place) {
    pair(left, right).count -= counts_[static_cast<size_t>(at(place).word)];
  }
  void queue_grown() {
    for (const int32_t p : grown_) {
      Pair& grown = pairs_[static_cast<size_t>(p)];
      grown.grown = false;
      if (grown.count > 0) queue_.push({grown.count, p});
    }
    grown_.clear();
  }

  void merge(int32_t which) {
    const int32_t left = pairs_[static_cast<size_t>(which)].left, right = pairs_[static_cast<size_t>(which)].right;
    std::vector<int32_t> places = std::exchange(pairs_[static_cast<size_t>(which)].places, {});
    if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
    merges_.emplace_back(text(left), text(right));
    const auto next = static_cast<int32_t>(tokens_.size());
    // Other tokens may have given the same bytes before: then they are that token, as a vocabulary has each text once.
    const int32_t merged = id_of_.try_emplace(text(left) + text(right), next).first->second;
    if (merged == next) tokens_.push_back(text(left) + text(right));
    for (const int32_t p : places) {
      const int32_t q = at(p).after;
      if (at(p).token != left || q == none || at(q).token != right) continue;
      const int32_t before = at(p).before, after = at(q).after;
      remove(left, right, p);
      if (before != none) remove(at(before).token, left, p);
      if (after != none) remove(right, at(after).token, p);
      at(p).token = merged;
      at(p).after = after;
      at(q).token = none;
      if (before != none) add(at(before).token, merged, before);
      if (after != none) {
        at(after).before = p;
        add(merged, at(after).token, p);
      }
    }
    queue_grown();
  }

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t> id_of_;
  std::vector<std::pair<std::string, std::string>> merges_;
  std::vector<Place> places_;
  std::vector<int64_t> counts_;  // by word
  std::vector<Pair> pairs_;
  std::unordered_map<uint64_t, int32_t> pair_of_;
  std::vector<int32_t> grown_;
  std::priority_queue<Candidate, std::vector<Candidate>, Less> queue_;
};

}  // namespace

ByteLevelVocabulary train_bpe(std::string_view text, const BpeTrainOptions& options) {
  const auto least = static_cast<int64_t>(256 + options.special.size());
  if (options.vocab_size < least)
    fail<ValueError>("bpe: vocab_size is {}; 256 bytes and {} special tokens need at least {}", options.vocab_size,
                     options.special.size(), least);
  std::vector<AddedToken> special;
  std::set<std::string> seen;
  for (const std::string& content : options.special) {
    if (content.empty()) fail<ValueError>("bpe: a special token is empty");
    if (!seen.insert(content).second) fail<ValueError>("bpe: the special token '{}' is given twice", content);
    special.push_back({.content = content,
                       .id = 0,
                       .special = true,
                       .single_word = false,
                       .lstrip = false,
                       .rstrip = false,
                       .normalized = false});
  }
  const Regex pattern(options.pattern.empty() ? gpt2_pattern : std::string_view(options.pattern));
  MergeCounter trainer(count_words(text, pattern, AddedTokens(std::move(special))));
  trainer.run(static_cast<size_t>(options.vocab_size) - options.special.size());
  ByteLevelVocabulary v = std::move(trainer).vocabulary();
  for (const std::string& content : options.special) {
    // The file writes bytes in an alphabet, in which a text could be taken for the bytes of a token.
    if (const auto bytes = from_byte_alphabet(content);
        bytes && std::find(v.tokens.begin(), v.tokens.end(), *bytes) != v.tokens.end())
      fail<ValueError>("bpe: the special token '{}' is an ordinary token, too; choose a text that is none", content);
    v.special.push_back(static_cast<int32_t>(v.tokens.size()));
    v.tokens.push_back(content);
  }
  if (options.pattern != gpt2_pattern) v.pattern = options.pattern;
  return v;
}

}  // namespace tapestry
