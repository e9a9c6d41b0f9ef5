// The way of a text: added tokens, normalizer, added tokens again, pieces, merges.
// Next: tokenizer_json.cpp.
#include "bpe_tokenizer.h"

#include <algorithm>

#include "../../autograd/error.h"

namespace tapestry {
namespace {

/// The tokens that are looked for in the normalized text (or in the raw one), by what they look like there.
AddedTokens choose(const BpeTokenizerParts& parts, bool normalized) {
  std::vector<AddedToken> chosen;
  for (AddedToken token : parts.added) {
    if (token.normalized != normalized) continue;
    std::string storage;
    if (normalized) token.content = std::string(parts.normalizer.apply(token.content, storage));
    chosen.push_back(std::move(token));
  }
  return AddedTokens(std::move(chosen));
}

/// visit_text(piece) and visit_token(id) for the text between the tokens, and the tokens, in order.
template <class VisitText, class VisitToken>
void for_each_segment(const AddedTokens& tokens, std::string_view text, bool special, VisitText visit_text,
                      VisitToken visit_token) {
  size_t from = 0;
  while (const auto found = tokens.find(text, from, special)) {
    if (found->begin > from) visit_text(text.substr(from, found->begin - from));
    visit_token(found->token->id);
    from = found->end;
  }
  if (from < text.size()) visit_text(text.substr(from));
}

}  // namespace

BpeTokenizer::BpeTokenizer(BpeTokenizerParts parts)
    : parts_(std::move(parts)),
      model_(std::move(parts_.model)),
      raw_(choose(parts_, false)),
      normalized_(choose(parts_, true)),
      kinds_(parts_.texts.size(), Kind::ordinary) {
  for (const AddedToken& token : parts_.added)
    kinds_[static_cast<size_t>(token.id)] = token.special ? Kind::special : Kind::added;
  for (const std::string& name : {parts_.bos, parts_.eos})
    if (!name.empty() && !id_of_name(name))
      fail<FormatError>("tokenizer: '{}' is to begin or end texts, but is not in the vocabulary", name);
}

std::vector<int32_t> BpeTokenizer::encode_text(std::string_view text, const EncodeOptions& options) const {
  std::vector<int32_t> ids;
  if (options.add_special) ids = parts_.before;
  PreTokenizer::Scratch scratch(parts_.pre_tokenizer);
  auto take_piece = [&](std::string_view piece) { model_.encode(piece, ids); };
  const auto take_token = [&](int32_t id) { ids.push_back(id); };
  std::string storage;
  for_each_segment(
      raw_, text, options.parse_special,
      [&](std::string_view segment) {
        const bool first = segment.data() == text.data();
        const std::string_view normal = parts_.normalizer.apply(segment, storage);
        for_each_segment(
            normalized_, normal, options.parse_special,
            [&](std::string_view part) {
              parts_.pre_tokenizer.run(part, first && part.data() == normal.data(), scratch, take_piece);
            },
            take_token);
      },
      take_token);
  if (options.add_special) ids.insert(ids.end(), parts_.after.begin(), parts_.after.end());
  return ids;
}

void BpeTokenizer::decode_next(int32_t id, DecodeState& state, std::string& bytes) const {
  if (id < 0 || id >= vocab_size())
    fail<IndexError>("decode: id {} is out of range for a vocabulary of {}", id, vocab_size());
  std::string_view text = parts_.texts[static_cast<size_t>(id)];
  using PrefixSpace = BpeTokenizerParts::PrefixSpace;
  if (const Kind kind = kind_of(id); kind != Kind::ordinary) {
    state.at_start = parts_.prefix_space == PrefixSpace::of_every_segment || (state.at_start && kind == Kind::special);
  } else {
    if (parts_.prefix_space != PrefixSpace::none && state.at_start && text.starts_with(' ')) text.remove_prefix(1);
    state.at_start = false;
  }
  bytes += text;
}

size_t BpeTokenizer::decided(std::string_view text, const EncodeOptions& options) const {
  if (options.add_special || !parts_.normalizer.steps().empty() || raw_.looks_around() || normalized_.looks_around())
    return 0;
  // A token that begins before `limit` is whole, and no longer one can be there.
  const size_t longest = std::max({raw_.longest(), normalized_.longest(), size_t{1}});
  const size_t limit = text.size() - std::min(text.size(), longest - 1);
  size_t from = 0;
  for (const AddedTokens* tokens : {&raw_, &normalized_})
    while (const auto found = tokens->find(text, from, options.parse_special)) {
      if (found->begin >= limit) break;
      from = found->end;
    }
  if (from >= limit) return from;
  PreTokenizer::Scratch scratch(parts_.pre_tokenizer);
  return from + parts_.pre_tokenizer.decided(text.substr(from, limit - from), scratch);
}

BpeTokenizer::Kind BpeTokenizer::kind_of(int32_t id) const {
  return id < 0 || id >= vocab_size() ? Kind::ordinary : kinds_[static_cast<size_t>(id)];
}

std::optional<int32_t> BpeTokenizer::id_of_name(const std::string& name) const {
  if (name.empty()) return std::nullopt;
  for (const AddedToken& token : parts_.added)
    if (token.content == name) return token.id;
  const int32_t id = model_.find(name);
  return id < 0 ? std::nullopt : std::optional(id);
}

std::optional<int32_t> BpeTokenizer::id_of(std::string_view token) const { return id_of_name(std::string(token)); }

}  // namespace tapestry
