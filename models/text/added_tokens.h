// Tokens that are found in the text as they are, before anything is cut: special ones and others a file adds.
// Not here: their place in the vocabulary (bpe.h). Next: bpe_tokenizer.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tapestry {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;      ///< found only where the caller asks for special tokens
  bool single_word = false;  ///< not found as a part of a word
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space after it
  bool normalized = false;   ///< found in the normalized text
};

/// A set of added tokens to search for; where several begin at one place the longest is found.
class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens = {});

  struct Found {
    size_t begin = 0, end = 0;  ///< of the text, with the white space the token takes
    const AddedToken* token = nullptr;
  };
  /// The first one that begins at `from` or later. White space before `from` is not taken.
  [[nodiscard]] std::optional<Found> find(std::string_view text, size_t from, bool special) const;

  [[nodiscard]] const std::vector<AddedToken>& tokens() const { return tokens_; }
  /// Bytes of the longest.
  [[nodiscard]] size_t longest() const { return longest_; }
  /// Whether what surrounds a token decides about it or belongs to it.
  [[nodiscard]] bool looks_around() const;

 private:
  [[nodiscard]] const AddedToken* longest_at(std::string_view text, size_t at, bool special) const;

  std::vector<AddedToken> tokens_;
  std::array<bool, 256> begins_{};                  // whether a token begins with the byte
  std::unordered_map<uint64_t, int32_t> children_;  // the trie: (node, byte) to node; node 0 is the root
  std::vector<int32_t> token_of_;                   // by node: the token that ends there, or −1
  size_t longest_ = 0;
};

}  // namespace tapestry
