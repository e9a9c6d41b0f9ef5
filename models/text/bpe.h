// Byte-pair encoding of one piece of text (Gage 1994; Sennrich et al. 2016): a vocabulary and the order of its merges.
// Not here: how text is cut into pieces (pre_tokenizer.h), or how merges are found (bpe_trainer.h).
// Next: bpe_tokenizer.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tapestry {

/// What a BPE model is made of. Tokens are bytes; an empty one is an id that is not used.
struct BpeParts {
  struct Merge {
    int32_t left = 0, right = 0, merged = 0;  ///< ids
  };
  std::vector<std::string> tokens;      ///< by id
  std::vector<Merge> merges;            ///< first the one that is done first
  bool characters = false;              ///< merging starts from characters (SentencePiece), not from bytes
  bool byte_fallback = false;           ///< characters the vocabulary lacks become the ids `byte_ids`
  bool whole_pieces = false;            ///< a piece that is a token is that token, whatever the merges give
  bool fuse_unknown = false;            ///< unknown characters in a row are one unknown token
  int32_t unknown = -1;                 ///< id of the unknown token, or −1
  std::array<int32_t, 256> byte_ids{};  ///< the ids bytes start from; −1 for those the vocabulary lacks
};

/// Encodes pieces. Merges are done in their order, of equal ones the leftmost first, until none is left to do.
class Bpe {
 public:
  /// The parts must agree: ids within `tokens`, byte ids within it or −1.
  explicit Bpe(BpeParts parts);

  [[nodiscard]] const BpeParts& parts() const { return parts_; }
  /// Id of the token that is exactly these bytes and is part of the model; −1 if there is none.
  [[nodiscard]] int32_t find(std::string_view token) const;
  /// Appends the ids of a piece. O(n log n) in its length. ValueError for a byte or character that the vocabulary lacks
  /// where it has no unknown token.
  void encode(std::string_view piece, std::vector<int32_t>& ids) const;

 private:
  struct Pair {
    uint64_t ids = empty;
    int32_t rank = 0, merged = 0;
    static constexpr uint64_t empty = ~uint64_t{0};
  };
  [[nodiscard]] const Pair* pair(int32_t left, int32_t right) const;
  void start(std::string_view piece, std::vector<int32_t>& symbols) const;
  void start_characters(std::string_view piece, std::vector<int32_t>& symbols) const;
  void merge_short(std::vector<int32_t>& symbols) const;
  void merge_long(std::vector<int32_t>& symbols) const;
  void encode_by_merging(std::string_view piece, std::vector<int32_t>& ids) const;
  void index_tokens();
  void index_merges();

  BpeParts parts_;
  std::vector<int32_t> token_slots_;    // open addressing by the token's bytes; −1 is empty
  std::vector<Pair> pair_slots_;        // open addressing by the two ids
  std::vector<bool> merges_to_itself_;  // by id: the token's bytes give the token
  size_t longest_ = 0;                  // bytes of the longest token
};

}  // namespace tapestry
