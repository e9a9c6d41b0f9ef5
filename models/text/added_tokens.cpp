// A trie over bytes, and the white space and words around a match.
// Next: bpe_tokenizer.cpp.
#include "added_tokens.h"

#include <algorithm>

#include "regex.h"
#include "utf8.h"

namespace tapestry {
namespace {

uint64_t key_of(int32_t node, char byte) { return static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(byte); }

/// Where the character that ends at `end` begins.
size_t character_before(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && end - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

/// Whether the bytes are one character that the expression matches.
bool is_one(const char* pattern, std::string_view bytes) {
  const Utf8Char front = front_utf8(bytes);
  if (front.kind != Utf8Char::Kind::complete || static_cast<size_t>(front.length) != bytes.size()) return false;
  return RegexMatcher(Regex(pattern)).find(bytes, 0).kind == RegexMatch::Kind::found;
}

std::string_view front_of(std::string_view text, size_t at) {
  return text.substr(at, static_cast<size_t>(front_utf8(text.substr(at)).length));
}

bool inside_word(std::string_view text, size_t begin, size_t end) {
  constexpr const char* word = R"(\w)";
  if (begin > 0) {
    const size_t before = character_before(text, begin);
    if (is_one(word, text.substr(before, begin - before))) return true;
  }
  return end < text.size() && is_one(word, front_of(text, end));
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)), token_of_{-1} {
  for (size_t t = 0; t < tokens_.size(); ++t) {
    int32_t node = 0;
    for (const char byte : tokens_[t].content) {
      const auto [child, is_new] = children_.try_emplace(key_of(node, byte), static_cast<int32_t>(token_of_.size()));
      if (is_new) token_of_.push_back(-1);
      node = child->second;
    }
    token_of_[static_cast<size_t>(node)] = static_cast<int32_t>(t);
    longest_ = std::max(longest_, tokens_[t].content.size());
    if (node != 0) begins_[static_cast<unsigned char>(tokens_[t].content[0])] = true;
  }
  token_of_[0] = -1;  // an empty token would be found everywhere
}

bool AddedTokens::looks_around() const {
  return std::any_of(tokens_.begin(), tokens_.end(),
                     [](const AddedToken& t) { return t.single_word || t.lstrip || t.rstrip; });
}

const AddedToken* AddedTokens::longest_at(std::string_view text, size_t at, bool special) const {
  const AddedToken* best = nullptr;
  int32_t node = 0;
  for (size_t end = at; end < text.size();) {
    const auto child = children_.find(key_of(node, text[end]));
    if (child == children_.end()) break;
    node = child->second;
    ++end;
    if (const int32_t t = token_of_[static_cast<size_t>(node)]; t >= 0) {
      const AddedToken& token = tokens_[static_cast<size_t>(t)];
      if ((special || !token.special) && !(token.single_word && inside_word(text, at, end))) best = &token;
    }
  }
  return best;
}

std::optional<AddedTokens::Found> AddedTokens::find(std::string_view text, size_t from, bool special) const {
  if (longest_ == 0) return std::nullopt;
  for (size_t at = from; at < text.size(); ++at) {
    if (!begins_[static_cast<unsigned char>(text[at])]) continue;
    const AddedToken* token = longest_at(text, at, special);
    if (token == nullptr) continue;
    constexpr const char* space = R"(\s)";
    Found found{at, at + token->content.size(), token};
    while (token->lstrip && found.begin > from) {
      const size_t before = character_before(text, found.begin);
      if (before < from || !is_one(space, text.substr(before, found.begin - before))) break;
      found.begin = before;
    }
    while (token->rstrip && found.end < text.size() && is_one(space, front_of(text, found.end)))
      found.end += front_of(text, found.end).size();
    return found;
  }
  return std::nullopt;
}

}  // namespace tapestry
