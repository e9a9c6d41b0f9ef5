// The model and the added tokens of a tokenizer.json, and writing one.
// Next: tokenizer_file.cpp.
#include "tokenizer_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "../../autograd/error.h"
#include "../strict_json.h"
#include "byte_alphabet.h"
#include "json_fields.h"
#include "tokenizer_parts.h"

namespace tapestry {
namespace {

using Json = nlohmann::json;

struct File {
  Json json;
  ReadDecoder decoder;
  BpeTokenizerParts parts;
  std::vector<const std::string*> names;  // by id: the vocabulary's text, or null
  std::unordered_map<std::string_view, int32_t> ids;
};

/// Ids are places in tables, so that a damaged one must not ask for all memory.
int32_t checked_id(const std::string& name, int64_t id, size_t entries) {
  const auto limit = static_cast<int64_t>(4 * entries + 65536);
  if (id < 0 || id >= limit)
    fail<FormatError>("tokenizer: the id {} of '{}' is out of range for {} entries", id, name, entries);
  return static_cast<int32_t>(id);
}

int32_t id_of(const File& file, const std::string& token, const char* what) {
  const auto it = file.ids.find(token);
  if (it == file.ids.end()) fail<FormatError>("tokenizer: the {} '{}' is not in the vocabulary", what, token);
  return it->second;
}

void read_vocab(File& file, const Json& vocab) {
  if (!vocab.is_object()) fail<FormatError>("tokenizer: model.vocab is no object of texts and ids");
  for (auto it = vocab.begin(); it != vocab.end(); ++it) {
    const std::string& name = it.key();  // lives as long as the file's JSON
    if (!it->is_number_integer()) fail<FormatError>("tokenizer: the id of '{}' is no whole number", name);
    const int32_t id = checked_id(name, it->get<int64_t>(), vocab.size());
    const auto place = static_cast<size_t>(id);
    if (place >= file.names.size()) file.names.resize(place + 1);
    if (file.names[place] != nullptr)
      fail<FormatError>("tokenizer: '{}' and '{}' have the same id {}", *file.names[place], name, id);
    file.names[place] = &name;
    file.ids.emplace(name, id);
  }
}

/// The text of an entry as bytes; for entries that no bytes make, their text.
std::string decoded(const ReadDecoder& decoder, const std::string& name) {
  if (decoder.byte_level) return from_byte_alphabet(name).value_or(name);
  if (decoder.byte_fallback && name.size() == 6 && name.starts_with("<0x") && name.ends_with('>')) {
    const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
    if (is_hex(name[3]) && is_hex(name[4]))
      return std::string(1, static_cast<char>(std::stoi(name.substr(3, 2), nullptr, 16)));
  }
  std::string text = name;
  for (const auto& [what, by] : decoder.replaced)
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
      text.replace(at, what.size(), by);
  return text;
}

std::pair<std::string, std::string> merge_of(const Json& value) {
  if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string())
    return {value[0].get<std::string>(), value[1].get<std::string>()};
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos)
      return {text.substr(0, space), text.substr(space + 1)};
  }
  fail<FormatError>("tokenizer: the merge {} is no pair of two texts",
                    value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80));
}

void read_model(File& file, const Json& json) {
  JsonFields fields("model", json);
  if (const std::string type = fields.text("type", "BPE"); type != "BPE")
    fail<FormatError>("tokenizer: the model {} is not supported; BPE is", type);
  const Json& vocab = fields.at("vocab");
  const Json& merges = fields.at("merges");
  BpeParts& model = file.parts.model;
  model.byte_fallback = fields.flag("byte_fallback", false);
  model.whole_pieces = fields.flag("ignore_merges", false);
  model.fuse_unknown = fields.flag("fuse_unk", false);
  if (const Json* dropout = fields.find("dropout"); dropout != nullptr && *dropout != 0)
    fail<FormatError>("tokenizer: model.dropout, which makes ids random, is not supported");
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const std::string affix = fields.text(name, ""); !affix.empty())
      fail<FormatError>("tokenizer: model.{} = '{}' is not supported", name, affix);
  const std::string unknown = fields.text("unk_token", "");
  fields.finish();

  read_vocab(file, vocab);
  if (!unknown.empty()) model.unknown = id_of(file, unknown, "unknown token");
  model.characters = !file.decoder.byte_level;
  for (size_t b = 0; b < 256; ++b) {
    const std::string name =
        model.characters ? fmt::format("<0x{:02X}>", b) : to_byte_alphabet(std::string(1, static_cast<char>(b)));
    const auto it = file.ids.find(name);
    model.byte_ids[b] = it == file.ids.end() ? -1 : it->second;
  }
  if (!merges.is_array()) fail<FormatError>("tokenizer: model.merges is no list");
  for (const Json& value : merges) {
    const auto [left, right] = merge_of(value);
    model.merges.push_back(
        {id_of(file, left, "merged text"), id_of(file, right, "merged text"), id_of(file, left + right, "merge")});
  }
  for (const std::string* name : file.names) {
    file.parts.texts.push_back(name == nullptr ? "" : decoded(file.decoder, *name));
    if (model.characters)
      model.tokens.push_back(name == nullptr ? "" : *name);
    else
      model.tokens.push_back(name == nullptr ? "" : from_byte_alphabet(*name).value_or(""));
  }
}

void read_added_tokens(File& file, const Json* list) {
  if (list == nullptr) return;
  if (!list->is_array()) fail<FormatError>("tokenizer: added_tokens is no list");
  const size_t entries = file.names.size() + list->size();
  for (const Json& value : *list) {
    JsonFields fields("added_tokens", value);
    AddedToken token{.content = fields.text("content"),
                     .special = fields.flag("special", false),
                     .single_word = fields.flag("single_word", false),
                     .lstrip = fields.flag("lstrip", false),
                     .rstrip = fields.flag("rstrip", false)};
    token.normalized = fields.flag("normalized", !token.special);
    token.id = checked_id(token.content, fields.number("id"), entries);
    fields.finish();
    if (token.content.empty()) fail<FormatError>("tokenizer: the added token {} has no text", token.id);
    const auto id = static_cast<size_t>(token.id);
    if (id < file.names.size() && file.names[id] != nullptr && *file.names[id] != token.content)
      fail<FormatError>("tokenizer: the added token '{}' has the id {} of '{}'", token.content, id, *file.names[id]);
    auto& texts = file.parts.texts;
    auto& tokens = file.parts.model.tokens;
    if (id >= texts.size()) {
      texts.resize(id + 1);
      tokens.resize(id + 1);
    }
    texts[id] = token.content;
    if (token.special) tokens[id].clear();  // text by itself never becomes a special token
    file.parts.added.push_back(std::move(token));
  }
}

std::vector<int32_t> checked_ids(const std::vector<int64_t>& ids, size_t vocab_size) {
  std::vector<int32_t> checked;
  for (const int64_t id : ids) {
    if (id < 0 || id >= static_cast<int64_t>(vocab_size))
      fail<FormatError>("tokenizer: the post-processor adds the id {}, but there are {}", id, vocab_size);
    checked.push_back(static_cast<int32_t>(id));
  }
  return checked;
}

}  // namespace

std::unique_ptr<BpeTokenizer> parse_tokenizer_json(std::string text, std::string bos, std::string eos) {
  File file;
  file.json = parse_strict_json_by_name("tokenizer", text);
  if (file.json.is_discarded()) fail<FormatError>("tokenizer: the file is no JSON");
  JsonFields fields("tokenizer.json", file.json);
  const Json null;
  const auto part = [&](const char* name) -> const Json& {
    const Json* value = fields.find(name);
    return value == nullptr ? null : *value;
  };
  fields.skip("version");
  for (const char* name : {"truncation", "padding"})
    if (!part(name).is_null()) fail<FormatError>("tokenizer: {} is not supported; remove it from the file", name);
  file.parts.normalizer = read_normalizer(part("normalizer"));
  ReadPreTokenizer pre_tokenizer = read_pre_tokenizer(part("pre_tokenizer"));
  file.parts.pre_tokenizer = std::move(pre_tokenizer.steps);
  file.decoder = read_decoder(part("decoder"), pre_tokenizer.byte_level);
  if (file.decoder.strips_prefix_space) {
    using PrefixSpace = BpeTokenizerParts::PrefixSpace;
    const auto& steps = file.parts.pre_tokenizer.steps();
    const bool first = std::any_of(steps.begin(), steps.end(), [](const PreTokenizer::Step& step) {
      const auto* m = std::get_if<MetaspaceStep>(&step);
      return m != nullptr && m->prepend == MetaspaceStep::Prepend::first;
    });
    file.parts.prefix_space = first ? PrefixSpace::of_text : PrefixSpace::of_every_segment;
  }
  read_model(file, fields.at("model"));
  read_added_tokens(file, fields.find("added_tokens"));
  const TemplateIds around = read_post_processor(part("post_processor"));
  file.parts.before = checked_ids(around.before, file.parts.texts.size());
  file.parts.after = checked_ids(around.after, file.parts.texts.size());
  fields.finish();
  file.parts.bos = std::move(bos);
  file.parts.eos = std::move(eos);
  file.parts.tokenizer_json = std::move(text);
  return std::make_unique<BpeTokenizer>(std::move(file.parts));
}

std::string BpeTokenizer::to_json() const {
  return nlohmann::ordered_json{
      {"type", "bpe"}, {"tokenizer_json", parts_.tokenizer_json}, {"bos", parts_.bos}, {"eos", parts_.eos}}
      .dump();
}

std::string write_tokenizer_json(const ByteLevelVocabulary& v) {
  using Ordered = nlohmann::ordered_json;
  const auto is_special = [&](size_t id) {
    return std::find(v.special.begin(), v.special.end(), static_cast<int32_t>(id)) != v.special.end();
  };
  Ordered added = Ordered::array();
  Ordered::object_t vocab;
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    if (is_special(id)) {
      added.push_back({{"id", id},
                       {"content", v.tokens[id]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
    }
    // Appended, since a look-up for each would take time that grows with the square of the vocabulary.
    vocab.std::vector<Ordered::object_t::value_type, Ordered::object_t::allocator_type>::emplace_back(
        is_special(id) ? v.tokens[id] : to_byte_alphabet(v.tokens[id]), id);
  }
  Ordered merges = Ordered::array();
  for (const auto& [left, right] : v.merges)
    merges.push_back(Ordered::array({to_byte_alphabet(left), to_byte_alphabet(right)}));
  Ordered byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", v.pattern.empty()}};
  Ordered pre_tokenizer = byte_level;
  if (!v.pattern.empty()) {
    Ordered split{{"type", "Split"}, {"pattern", {{"Regex", v.pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
    pre_tokenizer = {{"type", "Sequence"}, {"pretokenizers", Ordered::array({split, byte_level})}};
  }
  const Ordered file{{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", added},
                     {"normalizer", nullptr},
                     {"pre_tokenizer", pre_tokenizer},
                     {"post_processor", nullptr},
                     {"decoder", byte_level},
                     {"model",
                      {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"ignore_merges", false},
                       {"vocab", Ordered(std::move(vocab))},
                       {"merges", merges}}}};
  return file.dump(1) + "\n";
}

}  // namespace tapestry
