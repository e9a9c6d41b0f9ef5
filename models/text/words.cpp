// Splitting into words, and looking them up.
// Not here: where the texts come from.
// Next: words.h.
#include "words.h"

#include <unordered_set>

namespace tapestry {
namespace {

bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '\'' || byte > 0x7F;
}

template <class Visit>
void for_each_word(std::string_view text, Visit visit) {
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && in_word(text[end])) ++end;
    if (end > at) visit(text.substr(at, end - at));
    at = end + 1;
  }
}

}  // namespace

WordCount count_known_words(std::string_view text, std::string_view corpus) {
  std::unordered_set<std::string_view> vocabulary;
  for_each_word(corpus, [&](std::string_view word) { vocabulary.insert(word); });
  WordCount count;
  for_each_word(text, [&](std::string_view word) {
    ++count.total;
    if (vocabulary.contains(word)) ++count.known;
  });
  return count;
}

}  // namespace tapestry
