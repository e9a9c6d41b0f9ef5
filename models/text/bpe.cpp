// The tables of tokens and pairs, and merging: in place for short pieces, with a heap for long ones.
// Next: bpe_tokenizer.cpp.
#include "bpe.h"

#include <algorithm>
#include <cstring>
#include <queue>

#include "../../autograd/error.h"
#include "utf8.h"

namespace tapestry {
namespace {

uint64_t mixed(uint64_t h) {
  h *= 0x9E3779B97F4A7C15U;
  return h ^ (h >> 32);
}

uint64_t hash_bytes(std::string_view bytes) {
  uint64_t h = bytes.size();
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t eight = 0;
    std::memcpy(&eight, bytes.data() + at, 8);
    h = mixed(h ^ eight);
  }
  uint64_t rest = 0;
  for (size_t i = 0; at + i < bytes.size(); ++i) rest |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return mixed(mixed(h ^ rest));
}

uint64_t key_of(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

/// A power of two, at least twice as many as there are entries.
size_t slots_for(size_t entries) {
  size_t slots = 16;
  while (slots < 2 * entries) slots *= 2;
  return slots;
}

}  // namespace

Bpe::Bpe(BpeParts parts) : parts_(std::move(parts)) {
  index_tokens();
  index_merges();
  std::vector<int32_t> ids;
  merges_to_itself_.resize(parts_.tokens.size());
  for (size_t t = 0; t < parts_.tokens.size(); ++t) {
    const std::string& token = parts_.tokens[t];
    if (token.empty() || find(token) != static_cast<int32_t>(t)) continue;
    ids.clear();
    try {
      encode_by_merging(token, ids);
    } catch (const ValueError&) {  // of bytes or characters that the vocabulary lacks: text never becomes this token
      continue;
    }
    merges_to_itself_[t] = ids.size() == 1 && ids[0] == static_cast<int32_t>(t);
  }
}

void Bpe::index_tokens() {
  token_slots_.assign(slots_for(parts_.tokens.size()), -1);
  const size_t mask = token_slots_.size() - 1;
  for (size_t t = 0; t < parts_.tokens.size(); ++t) {
    const std::string& token = parts_.tokens[t];
    longest_ = std::max(longest_, token.size());
    if (token.empty() || find(token) >= 0) continue;
    size_t slot = hash_bytes(token) & mask;
    while (token_slots_[slot] >= 0) slot = (slot + 1) & mask;
    token_slots_[slot] = static_cast<int32_t>(t);
  }
}

void Bpe::index_merges() {
  pair_slots_.assign(slots_for(parts_.merges.size()), {});
  const size_t mask = pair_slots_.size() - 1;
  for (size_t m = 0; m < parts_.merges.size(); ++m) {
    const auto& [left, right, merged] = parts_.merges[m];
    const uint64_t key = key_of(left, right);
    size_t slot = mixed(key) & mask;
    while (pair_slots_[slot].ids != Pair::empty && pair_slots_[slot].ids != key) slot = (slot + 1) & mask;
    pair_slots_[slot] = {key, static_cast<int32_t>(m), merged};  // of a pair given twice the last counts
  }
}

int32_t Bpe::find(std::string_view token) const {
  const size_t mask = token_slots_.size() - 1;
  for (size_t slot = hash_bytes(token) & mask; token_slots_[slot] >= 0; slot = (slot + 1) & mask)
    if (parts_.tokens[static_cast<size_t>(token_slots_[slot])] == token) return token_slots_[slot];
  return -1;
}

const Bpe::Pair* Bpe::pair(int32_t left, int32_t right) const {
  const uint64_t key = key_of(left, right);
  const size_t mask = pair_slots_.size() - 1;
  for (size_t slot = mixed(key) & mask; pair_slots_[slot].ids != Pair::empty; slot = (slot + 1) & mask)
    if (pair_slots_[slot].ids == key) return &pair_slots_[slot];
  return nullptr;
}

void Bpe::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  if (piece.size() <= longest_) {
    const int32_t id = find(piece);
    if (id >= 0 && (parts_.whole_pieces || merges_to_itself_[static_cast<size_t>(id)])) {
      ids.push_back(id);
      return;
    }
  }
  encode_by_merging(piece, ids);
}

void Bpe::encode_by_merging(std::string_view piece, std::vector<int32_t>& ids) const {
  constexpr size_t longest_short = 48;
  thread_local std::vector<int32_t> symbols;
  symbols.clear();
  parts_.characters ? start_characters(piece, symbols) : start(piece, symbols);
  symbols.size() <= longest_short ? merge_short(symbols) : merge_long(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

void Bpe::start(std::string_view piece, std::vector<int32_t>& symbols) const {
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    int32_t id = parts_.byte_ids[byte];
    if (id < 0) {
      if (parts_.unknown < 0)
        fail<ValueError>("encode: byte {:#04x} is not in the vocabulary, which has no unknown token", byte);
      if (parts_.fuse_unknown && !symbols.empty() && symbols.back() == parts_.unknown) continue;
      id = parts_.unknown;
    }
    symbols.push_back(id);
  }
}

void Bpe::start_characters(std::string_view piece, std::vector<int32_t>& symbols) const {
  bool after_unknown = false;
  while (!piece.empty()) {
    const Utf8Char front = front_utf8(piece);
    const std::string_view bytes = piece.substr(0, static_cast<size_t>(front.length));
    piece.remove_prefix(bytes.size());
    const int32_t id = front.kind == Utf8Char::Kind::complete ? find(bytes) : -1;
    const bool as_bytes = id < 0 && parts_.byte_fallback && std::all_of(bytes.begin(), bytes.end(), [&](char c) {
                            return parts_.byte_ids[static_cast<unsigned char>(c)] >= 0;
                          });
    if (id >= 0) {
      symbols.push_back(id);
    } else if (as_bytes) {
      for (const char c : bytes) symbols.push_back(parts_.byte_ids[static_cast<unsigned char>(c)]);
    } else if (parts_.unknown < 0) {
      fail<ValueError>(
          "encode: the character '{}' is not in the vocabulary, which has neither bytes nor an unknown token",
          front.kind == Utf8Char::Kind::complete ? bytes : replacement_character);
    } else if (!(after_unknown && parts_.fuse_unknown)) {
      symbols.push_back(parts_.unknown);
    }
    after_unknown = id < 0 && !as_bytes;
  }
}

void Bpe::merge_short(std::vector<int32_t>& symbols) const {
  thread_local std::vector<const Pair*> pairs;  // pairs[i]: of symbols i and i + 1
  pairs.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i) pairs.push_back(pair(symbols[i], symbols[i + 1]));
  while (!pairs.empty()) {
    size_t best = pairs.size();
    for (size_t i = 0; i < pairs.size(); ++i)
      if (pairs[i] != nullptr && (best == pairs.size() || pairs[i]->rank < pairs[best]->rank)) best = i;
    if (best == pairs.size()) return;
    symbols[best] = pairs[best]->merged;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(best));
    if (best > 0) pairs[best - 1] = pair(symbols[best - 1], symbols[best]);
    if (best < pairs.size()) pairs[best] = pair(symbols[best], symbols[best + 1]);
  }
}

void Bpe::merge_long(std::vector<int32_t>& symbols) const {
  struct Candidate {
    int32_t rank, merged;
    size_t left;
    uint64_t ids;  // of the two when the candidate was found: it is stale if they are others now
    bool operator<(const Candidate& o) const { return rank != o.rank ? rank > o.rank : left > o.left; }
  };
  const size_t n = symbols.size(), none = n;
  std::vector<size_t> before(n), after(n);
  std::priority_queue<Candidate> queue;
  const auto consider = [&](size_t left, size_t right) {
    if (const Pair* p = pair(symbols[left], symbols[right])) queue.push({p->rank, p->merged, left, p->ids});
  };
  for (size_t i = 0; i < n; ++i) {
    before[i] = i == 0 ? none : i - 1;
    after[i] = i + 1;
    if (i + 1 < n) consider(i, i + 1);
  }
  while (!queue.empty()) {
    const Candidate c = queue.top();
    queue.pop();
    const size_t right = symbols[c.left] < 0 ? none : after[c.left];
    if (right == none || key_of(symbols[c.left], symbols[right]) != c.ids) continue;
    symbols[c.left] = c.merged;
    symbols[right] = -1;
    after[c.left] = after[right];
    if (after[right] != none) before[after[right]] = c.left;
    if (before[c.left] != none) consider(before[c.left], c.left);
    if (after[c.left] != none) consider(c.left, after[c.left]);
  }
  std::erase(symbols, -1);
}

}  // namespace tapestry
