// A tokenizer of byte-pair encoding: normalizing, cutting, merging and back, as a tokenizer.json describes it.
// Not here: reading that description (tokenizer_json.h), or making a vocabulary (bpe_trainer.h).
// Next: tokenizer_json.h.
#pragma once

#include <string>
#include <vector>

#include "added_tokens.h"
#include "bpe.h"
#include "normalizer.h"
#include "pre_tokenizer.h"
#include "tokenizer.h"

namespace tapestry {

/// What a BpeTokenizer is made of; `read_tokenizer` fills it.
struct BpeTokenizerParts {
  /// Where one space at the front of a text is what encode put there.
  enum class PrefixSpace { none, of_text, of_every_segment };

  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  BpeParts model;
  std::vector<AddedToken> added;
  std::vector<std::string> texts;      ///< by id: what it decodes to
  std::vector<int32_t> before, after;  ///< the template's ids around a text
  PrefixSpace prefix_space = PrefixSpace::none;
  std::string bos, eos;        ///< texts of those tokens, or ""
  std::string tokenizer_json;  ///< the description all this was read from
};

class BpeTokenizer final : public Tokenizer {
 public:
  /// FormatError if bos or eos are not in the vocabulary.
  explicit BpeTokenizer(BpeTokenizerParts parts);

  [[nodiscard]] std::string_view name() const override { return "bpe"; }
  [[nodiscard]] int64_t vocab_size() const override { return static_cast<int64_t>(parts_.texts.size()); }
  void decode_next(int32_t id, DecodeState& state, std::string& bytes) const override;
  [[nodiscard]] size_t decided(std::string_view text, const EncodeOptions& options) const override;
  [[nodiscard]] std::optional<int32_t> id_of(std::string_view token) const override;
  [[nodiscard]] bool is_special(int32_t id) const override { return kind_of(id) == Kind::special; }
  [[nodiscard]] std::optional<int32_t> bos_id() const override { return id_of_name(parts_.bos); }
  [[nodiscard]] std::optional<int32_t> eos_id() const override { return id_of_name(parts_.eos); }
  [[nodiscard]] std::string to_json() const override;
  /// The tokenizer.json this tokenizer was made from.
  [[nodiscard]] const std::string& tokenizer_json() const { return parts_.tokenizer_json; }

 private:
  enum class Kind : char { ordinary, added, special };
  [[nodiscard]] std::vector<int32_t> encode_text(std::string_view text, const EncodeOptions& options) const override;
  [[nodiscard]] Kind kind_of(int32_t id) const;
  [[nodiscard]] std::optional<int32_t> id_of_name(const std::string& name) const;

  BpeTokenizerParts parts_;
  Bpe model_;
  AddedTokens raw_, normalized_;
  std::vector<Kind> kinds_;  // by id
};

}  // namespace tapestry
