// The parts of a tokenizer.json around its model: normalizer, pre-tokenizer, post-processor, decoder.
// Not here: the model and its vocabulary (tokenizer_json.h). What is not supported is refused by name.
// Next: tokenizer_json.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "normalizer.h"
#include "pre_tokenizer.h"

namespace tapestry {

/// How GPT-2 cuts text (Radford et al. 2019): contractions, words, numbers, other signs, each with one space before it.
inline constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Each takes the part's value, which may be null. FormatError that names what is not supported.
Normalizer read_normalizer(const nlohmann::json& part);

struct ReadPreTokenizer {
  PreTokenizer steps;
  bool byte_level = false;  ///< pieces are bytes, written in the alphabet of byte_alphabet.h
};
ReadPreTokenizer read_pre_tokenizer(const nlohmann::json& part);

/// The ids a template puts before and after a text.
struct TemplateIds {
  std::vector<int64_t> before, after;
};
TemplateIds read_post_processor(const nlohmann::json& part);

/// How the text of a token becomes bytes.
struct ReadDecoder {
  bool byte_level = false;                                    ///< from the alphabet of byte_alphabet.h
  bool byte_fallback = false;                                 ///< "<0x0A>" is the byte
  std::vector<std::pair<std::string, std::string>> replaced;  ///< texts, and by what
  bool strips_prefix_space = false;                           ///< one space at the front is dropped
};
/// `byte_level`: of the pre-tokenizer, which a missing decoder follows.
ReadDecoder read_decoder(const nlohmann::json& part, bool byte_level);

}  // namespace tapestry
