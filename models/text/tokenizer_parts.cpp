// Each part by its "type", with every field it may have.
// Next: tokenizer_json.cpp.
#include "tokenizer_parts.h"

#include <nlohmann/json.hpp>

#include "../../autograd/error.h"
#include "json_fields.h"

namespace tapestry {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const char* part, const std::string& type) {
  fail<FormatError>("tokenizer: the {} {} is not supported", part, type);
}

/// The values of a Sequence's list, or the part itself.
std::vector<const Json*> steps_of(const char* part, const char* list, const Json& value) {
  std::vector<const Json*> steps;
  if (value.is_null()) return steps;
  JsonFields fields(part, value);
  if (fields.text("type") != "Sequence") return {&value};
  const Json& values = fields.at(list);
  fields.finish();
  if (!values.is_array()) fail<FormatError>("tokenizer: {}.{} is no list", part, list);
  for (const Json& step : values)
    for (const Json* inner : steps_of(part, list, step)) steps.push_back(inner);
  return steps;
}

/// A text in the syntax of expressions.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && !std::isalnum(byte)) out += '\\';
    out += c;
  }
  return out;
}

/// {"String": "…"} or {"Regex": "…"}.
std::variant<std::string, Regex> pattern_of(const std::string& where, const Json& value) {
  JsonFields fields(where, value);
  const Json* text = fields.find("String");
  const Json* regex = fields.find("Regex");
  fields.finish();
  if ((text == nullptr) == (regex == nullptr))
    fail<FormatError>("tokenizer: {} must be one of String and Regex", where);
  if (text != nullptr) return json_text(where, *text);
  return Regex(json_text(where, *regex));
}

SplitStep::Behavior behavior_of(const std::string& name) {
  using Behavior = SplitStep::Behavior;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "Removed") return Behavior::removed;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  fail<FormatError>("tokenizer: the pre-tokenizer behavior {} is not supported", name);
}

SplitStep read_split(JsonFields& fields) {
  auto pattern = pattern_of("pre_tokenizer.pattern", fields.at("pattern"));
  const auto* text = std::get_if<std::string>(&pattern);
  return {.pattern = text != nullptr ? Regex(quoted(*text)) : std::get<Regex>(std::move(pattern)),
          .behavior = behavior_of(fields.text("behavior")),
          .invert = fields.flag("invert", false)};
}

MetaspaceStep read_metaspace(JsonFields& fields) {
  MetaspaceStep step{.replacement = fields.text("replacement")};
  const bool prefix = fields.flag("add_prefix_space", true);  // of files before there was a prepend_scheme
  const std::string scheme = fields.text("prepend_scheme", prefix ? "always" : "never");
  fields.skip("str_rep");
  step.split = fields.flag("split", true);
  using Prepend = MetaspaceStep::Prepend;
  if (scheme == "always")
    step.prepend = Prepend::always;
  else if (scheme == "first")
    step.prepend = Prepend::first;
  else if (scheme == "never")
    step.prepend = Prepend::never;
  else
    fail<FormatError>("tokenizer: Metaspace with the prepend_scheme {} is not supported", scheme);
  if (step.replacement.empty()) fail<FormatError>("tokenizer: Metaspace replaces spaces by nothing");
  return step;
}

}  // namespace

Normalizer read_normalizer(const Json& part) {
  std::vector<Normalizer::Step> steps;
  for (const Json* value : steps_of("normalizer", "normalizers", part)) {
    JsonFields fields("normalizer", *value);
    const std::string type = fields.text("type");
    if (type == "Prepend") {
      steps.emplace_back(Prepend{fields.text("prepend")});
    } else if (type == "Replace") {
      steps.emplace_back(
          Replace{.what = pattern_of("normalizer.pattern", fields.at("pattern")), .by = fields.text("content")});
    } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
      steps.emplace_back(NormalForm{.compose = type.ends_with('C'), .compatibility = type[2] == 'K'});
    } else {
      refuse("normalizer", type);
    }
    fields.finish();
  }
  return Normalizer(std::move(steps));
}

ReadPreTokenizer read_pre_tokenizer(const Json& part) {
  ReadPreTokenizer read;
  std::vector<PreTokenizer::Step> steps;
  const auto split = [&](std::string_view pattern, SplitStep::Behavior behavior) {
    steps.emplace_back(SplitStep{.pattern = Regex(pattern), .behavior = behavior});
  };
  for (const Json* value : steps_of("pre_tokenizer", "pretokenizers", part)) {
    JsonFields fields("pre_tokenizer", *value);
    const std::string type = fields.text("type");
    if (read.byte_level) fail<FormatError>("tokenizer: the pre-tokenizer {} after ByteLevel is not supported", type);
    if (type == "ByteLevel") {
      read.byte_level = true;
      if (fields.flag("add_prefix_space", true)) steps.emplace_back(PrefixSpaceStep{});
      if (fields.flag("use_regex", true)) split(gpt2_pattern, SplitStep::Behavior::isolated);
      fields.skip("trim_offsets");
    } else if (type == "Split") {
      steps.emplace_back(read_split(fields));
    } else if (type == "Digits") {
      split(fields.flag("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)", SplitStep::Behavior::isolated);
    } else if (type == "Punctuation") {
      split(R"([\p{P}$+<=>^`|~])", behavior_of(fields.text("behavior", "Isolated")));
    } else if (type == "Metaspace") {
      steps.emplace_back(read_metaspace(fields));
    } else {
      refuse("pre-tokenizer", type);
    }
    fields.finish();
  }
  read.steps = PreTokenizer(std::move(steps));
  return read;
}

TemplateIds read_post_processor(const Json& part) {
  TemplateIds ids;
  for (const Json* value : steps_of("post_processor", "processors", part)) {
    JsonFields fields("post_processor", *value);
    const std::string type = fields.text("type");
    if (type == "ByteLevel") continue;  // says how offsets are counted, and we give none
    if (type != "TemplateProcessing") refuse("post-processor", type);
    const Json& single = fields.at("single");
    const Json& tokens = fields.at("special_tokens");
    if (!single.is_array()) fail<FormatError>("tokenizer: post_processor.single is no list");
    bool after = false;
    for (const Json& item : single) {
      JsonFields piece("post_processor.single", item);
      if (piece.find("Sequence") != nullptr) {
        if (std::exchange(after, true)) fail<FormatError>("tokenizer: post_processor.single takes the text twice");
      } else {
        JsonFields special("post_processor.single.SpecialToken", piece.at("SpecialToken"));
        const std::string name = special.text("id");
        JsonFields token("post_processor.special_tokens." + name,
                         JsonFields("post_processor.special_tokens", tokens).at(name.c_str()));
        const Json& list = token.at("ids");
        for (const Json& id : list) {
          if (!id.is_number_integer()) fail<FormatError>("tokenizer: {}.ids holds no numbers", token.where());
          (after ? ids.after : ids.before).push_back(id.get<int64_t>());
        }
      }
    }
    if (!after) fail<FormatError>("tokenizer: post_processor.single leaves out the text");
  }
  return ids;
}

ReadDecoder read_decoder(const Json& part, bool byte_level) {
  ReadDecoder read;
  if (part.is_null()) {
    if (!byte_level) fail<FormatError>("tokenizer: a vocabulary of characters without a decoder is not supported");
    read.byte_level = true;
    return read;
  }
  bool fused = false;
  for (const Json* value : steps_of("decoder", "decoders", part)) {
    JsonFields fields("decoder", *value);
    const std::string type = fields.text("type");
    if (type == "ByteLevel") {
      read.byte_level = true;
      for (const char* name : {"add_prefix_space", "trim_offsets", "use_regex"}) fields.skip(name);
    } else if (type == "Replace") {
      const auto pattern = pattern_of("decoder.pattern", fields.at("pattern"));
      const auto* text = std::get_if<std::string>(&pattern);
      if (text == nullptr || text->empty() || fused)
        fail<FormatError>("tokenizer: the decoder Replace is supported for a text, before Fuse");
      read.replaced.emplace_back(*text, fields.text("content"));
    } else if (type == "ByteFallback") {
      read.byte_fallback = true;
    } else if (type == "Fuse") {
      fused = true;
    } else if (type == "Strip") {
      if (!fused || fields.text("content") != " " || fields.number("start") != 1 || fields.number("stop") != 0)
        fail<FormatError>("tokenizer: the decoder Strip is supported for one space at the front, after Fuse");
      read.strips_prefix_space = true;
    } else if (type == "Metaspace") {
      const MetaspaceStep step = read_metaspace(fields);
      read.replaced.emplace_back(step.replacement, " ");
      read.strips_prefix_space = step.prepend != MetaspaceStep::Prepend::never;
    } else {
      refuse("decoder", type);
    }
    fields.finish();
  }
  if (read.byte_level != byte_level)
    fail<FormatError>("tokenizer: pre-tokenizer and decoder disagree: only the {} is ByteLevel",
                      byte_level ? "pre-tokenizer" : "decoder");
  return read;
}

}  // namespace tapestry
