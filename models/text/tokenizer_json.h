// A tokenizer.json (Hugging Face's form of a tokenizer in one file), read whole or refused.
// Not here: its parts around the model (tokenizer_parts.h), and files (tokenizer_file.cpp).
// Next: tokenizer_parts.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "bpe_tokenizer.h"

namespace tapestry {

/// The tokenizer that `text` describes; bos and eos are texts of tokens, or "". FormatError that names what is damaged
/// or not supported.
std::unique_ptr<BpeTokenizer> parse_tokenizer_json(std::string text, std::string bos = "", std::string eos = "");

/// What our own files describe: byte-level BPE with GPT-2's or another expression for its pieces.
struct ByteLevelVocabulary {
  std::vector<std::string> tokens;                          ///< bytes, by id; special ones as their text
  std::vector<std::pair<std::string, std::string>> merges;  ///< bytes; first the one that is done first
  std::vector<int32_t> special;                             ///< ids of special tokens
  std::string pattern;                                      ///< "" for GPT-2's
};
/// A tokenizer.json of it, which `parse_tokenizer_json` and other libraries read.
std::string write_tokenizer_json(const ByteLevelVocabulary& vocabulary);

}  // namespace tapestry
