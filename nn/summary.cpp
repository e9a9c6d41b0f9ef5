// The tree as text.
#include "summary.h"

#include <cxxabi.h>

#include <cstdlib>
#include <typeinfo>

#include "../autograd/error.h"
#include "visitor.h"

namespace tapestry {
namespace {

/// "Linear" for tapestry::Linear.
std::string type_name(const Module& m) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(typeid(m).name(), nullptr, nullptr, &status),
                                                    std::free);
  std::string name = status == 0 ? text.get() : typeid(m).name();
  for (size_t at; (at = name.find("tapestry::")) != std::string::npos;) name.erase(at, 10);
  return name;
}

/// 1234567 as "1,234,567".
std::string grouped(int64_t n) {
  const std::string digits = std::to_string(n);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

struct Printer final : Visitor {
  std::string text;

  /// "  q_proj" at the depth of its path.
  static std::string indented(const std::string& path) {
    if (path.empty()) return path;
    size_t depth = 1;
    for (const char c : path) depth += c == '.' ? 1 : 0;
    return fmt::format("{:{}}{}", "", 2 * depth, path.substr(path.rfind('.') + 1));  // npos + 1 is 0
  }
  void line(const std::string& left, const std::string& right) { text += fmt::format("{:<48} {:>20}\n", left, right); }

  void on_module(const std::string& path, Module& m) override {
    line(indented(path) + (path.empty() ? "" : ": ") + type_name(m), grouped(count_parameters(m)));
  }
  void on_parameter(const std::string& path, Parameter& p) override {
    line(indented(path) + " " + p.describe() + (p.requires_grad() ? "" : " frozen"), grouped(p.numel()));
  }
  void on_buffer(const std::string& path, Buffer& b) override {
    line(indented(path) + " " + b.describe() + " buffer", "");
  }
};

}  // namespace

std::string summary(const Module& m) {
  Printer printer;
  printer.run(const_cast<Module&>(m));
  return printer.text;
}

}  // namespace tapestry
