// Oniguruma's spelling to PCRE2's, and PCRE2's calls; the only file that includes its header.
// Next: pre_tokenizer.cpp.
#include "regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include "../../autograd/error.h"

namespace tapestry {
namespace {

/// Rewrites an expression whose classes are Unicode's, refusing what PCRE2 would read otherwise.
class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  std::string run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\')
        escape();
      else if (in_class_)
        class_character(c);
      else
        character(c);
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what, std::string_view why) const {
    fail<FormatError>("regex: '{}' at byte {} of '{}' {}", what, at_, in_, why);
  }
  [[nodiscard]] bool starts(std::string_view what) const { return in_.substr(at_).starts_with(what); }
  void copy(size_t n) {
    out_ += in_.substr(at_, n);
    at_ += n;
  }
  void replace(size_t n, std::string_view by) {
    out_ += by;
    at_ += n;
  }
  void copy_through(std::string_view end) {
    const size_t place = in_.find(end, at_);
    if (place == std::string_view::npos) refuse(in_.substr(at_, 2), "has no end");
    copy(place + end.size() - at_);
  }

  void escape() {
    if (at_ + 1 == in_.size()) refuse("\\", "escapes nothing");
    const char c = in_[at_ + 1];
    switch (c) {
      case 's':
        return replace(2, R"(\p{White_Space})");
      case 'S':
        return replace(2, R"(\P{White_Space})");
      case 'd':
        return replace(2, R"(\p{Nd})");
      case 'D':
        return replace(2, R"(\P{Nd})");
      case 'w':
        return replace(2, in_class_ ? R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})" : R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}])");
      case 'p':
      case 'P':
        return at_ + 2 < in_.size() && in_[at_ + 2] == '{' ? copy_through("}") : copy(3);
      case 'x':
        return at_ + 2 < in_.size() && in_[at_ + 2] == '{' ? copy_through("}") : copy(2);
      case 'r':
      case 'n':
      case 't':
      case 'f':
        return copy(2);
      case 'W':
        if (!in_class_) return replace(2, R"([^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}])");
        break;
      case 'u':
        out_ += "\\x{";
        out_ += in_.substr(at_ + 2, 4);
        out_ += '}';
        at_ = std::min(at_ + 6, in_.size());
        return;
      case 'A':
      case 'z':
        if (!in_class_) return copy(2);
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x80 && !std::isalnum(static_cast<unsigned char>(c))) return copy(2);
    }
    refuse(in_.substr(at_, 2), "is an escape that is not supported here");
  }

  void class_character(char c) {
    if (c == ']') {
      in_class_ = false;
    } else if (starts("[:")) {
      return copy_through(":]");
    } else if (c == '[') {
      refuse("[", "nests a set in a set, which is not supported");
    } else if (starts("&&")) {
      refuse("&&", "intersects sets, which is not supported");
    }
    copy(1);
  }

  void character(char c) {
    if (c == '[') {
      in_class_ = true;
      copy(starts("[^") ? 2 : 1);
      if (starts("]")) copy(1);  // first in a set it is a character
      return;
    }
    if (c == '^' || c == '$') refuse(in_.substr(at_, 1), "is an anchor, which is not supported");
    if (starts("}+")) refuse("}+", "is possessive in one library and not in another; it is not supported");
    if (starts("(?") || starts("(*")) {
      static constexpr std::array groups = {"(?:", "(?=",  "(?!",  "(?<=",  "(?<!",
                                            "(?>", "(?i:", "(?i)", "(?-i:", "(?-i)"};
      for (const std::string_view group : groups)
        if (starts(group)) return copy(group.size());
      refuse(in_.substr(at_, 3), "is a group that is not supported");
    }
    copy(1);
  }

  std::string_view in_;
  std::string out_;
  size_t at_ = 0;
  bool in_class_ = false;
};

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

Regex::Regex(std::string_view pattern) : pattern_(pattern) {
  const std::string translated = Translator(pattern).run();
  int error = 0;
  PCRE2_SIZE place = 0;
  pcre2_code* code = pcre2_compile(units(translated), translated.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &place, nullptr);
  if (code == nullptr) fail<FormatError>("regex: '{}' is not supported: {}", pattern, message_of(error));
  code_ = std::shared_ptr<void>(code, [](void* p) { pcre2_code_free(static_cast<pcre2_code*>(p)); });
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);  // where there is none, matches are interpreted
}

RegexMatcher::RegexMatcher(const Regex& regex) : regex_(regex) {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  if (data == nullptr) throw std::bad_alloc();
  data_ = std::shared_ptr<void>(data, [](void* p) { pcre2_match_data_free(static_cast<pcre2_match_data*>(p)); });
}

RegexMatch RegexMatcher::find(std::string_view text, size_t from, bool partial) {
  auto* data = static_cast<pcre2_match_data*>(data_.get());
  const auto* code = static_cast<const pcre2_code*>(regex_.code_.get());
  const uint32_t options = PCRE2_NO_UTF_CHECK | (partial ? PCRE2_PARTIAL_HARD : 0U);
  int result = pcre2_match(code, units(text), text.size(), from, options, data, nullptr);
  if (result == PCRE2_ERROR_JIT_STACKLIMIT)
    result = pcre2_match(code, units(text), text.size(), from, options | PCRE2_NO_JIT, data, nullptr);
  const PCRE2_SIZE* place = pcre2_get_ovector_pointer(data);
  if (result >= 0) return {RegexMatch::Kind::found, place[0], place[1]};
  if (result == PCRE2_ERROR_NOMATCH) return {};
  if (result == PCRE2_ERROR_PARTIAL) return {RegexMatch::Kind::undecided, place[0], place[1]};
  fail<ValueError>("regex: '{}' cannot be searched for from byte {}: {}", regex_.pattern(), from, message_of(result));
}

}  // namespace tapestry
