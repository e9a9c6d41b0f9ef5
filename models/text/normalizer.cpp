// The steps; normal forms are utf8proc's.
// Next: pre_tokenizer.cpp.
#include "normalizer.h"

#include <algorithm>

#include "../../autograd/error.h"
#include "utf8_runs.h"

#ifdef TAPESTRY_UTF8PROC
#include <utf8proc.h>

#include <cstdlib>
#endif

namespace tapestry {
namespace {

#ifdef TAPESTRY_UTF8PROC
std::string normal_form(const NormalForm& form, std::string_view text) {
  // Every character below U+0300 is its own composed form, and nothing there composes.
  if (form.compose && !form.compatibility &&
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0xCC; }))
    return std::string(text);
  const auto options = static_cast<utf8proc_option_t>((form.compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                                                      UTF8PROC_STABLE | (form.compatibility ? UTF8PROC_COMPAT : 0));
  std::string normal;
  for_each_utf8_run(text, [&](std::string_view run, bool valid) {
    if (!valid) {
      normal += run;
      return;
    }
    utf8proc_uint8_t* out = nullptr;
    const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(run.data()),
                                               static_cast<utf8proc_ssize_t>(run.size()), &out, options);
    if (size < 0) fail<ValueError>("normalizer: {}", utf8proc_errmsg(size));
    normal.append(reinterpret_cast<const char*>(out), static_cast<size_t>(size));
    std::free(out);
  });
  return normal;
}
#else
std::string normal_form(const NormalForm&, std::string_view text) { return std::string(text); }  // refused when made
#endif

std::string replaced(const std::string& what, const std::string& by, std::string_view text) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t next = text.find(what, at);
    out += text.substr(at, next - at);
    if (next == std::string_view::npos) return out;
    out += by;
    at = next + what.size();
  }
}

std::string replaced(const Regex& what, const std::string& by, std::string_view text) {
  std::string out;
  RegexMatcher matcher(what);
  for_each_utf8_run(text, [&](std::string_view run, bool valid) {
    size_t kept = 0;
    while (valid) {
      const RegexMatch match = matcher.find(run, kept);
      if (match.kind != RegexMatch::Kind::found || match.end == match.begin) break;
      out += run.substr(kept, match.begin - kept);
      out += by;
      kept = match.end;
    }
    out += run.substr(kept);
  });
  return out;
}

struct Apply {
  std::string_view text;
  std::string operator()(const Prepend& p) const { return text.empty() ? std::string() : p.text + std::string(text); }
  std::string operator()(const Replace& r) const {
    return std::visit([&](const auto& what) { return replaced(what, r.by, text); }, r.what);
  }
  std::string operator()(const NormalForm& f) const { return normal_form(f, text); }
};

}  // namespace

Normalizer::Normalizer(std::vector<Step> steps) : steps_(std::move(steps)) {
  for (const Step& step : steps_) {
    if (const auto* r = std::get_if<Replace>(&step))
      if (const auto* what = std::get_if<std::string>(&r->what); what != nullptr && what->empty())
        fail<FormatError>("normalizer: Replace replaces an empty text");
#ifndef TAPESTRY_UTF8PROC
    if (std::holds_alternative<NormalForm>(step))
      fail<FormatError>(
          "normalizer: normal forms of Unicode (NFC and kin) need utf8proc, which this build lacks; install it with: "
          "apt "
          "install libutf8proc-dev");
#endif
  }
}

std::string_view Normalizer::apply(std::string_view text, std::string& storage) const {
  for (const Step& step : steps_) {
    storage = std::visit(Apply{text}, step);
    text = storage;
  }
  return text;
}

}  // namespace tapestry
