// The ten-line visitors.
#include "visitor.h"

#include <unordered_set>

#include "../autograd/error.h"

namespace tapestry {
namespace {

template <class F>
struct Each final : Visitor {
  explicit Each(const F& f) : fn(f) {}
  const F& fn;
  void on_parameter(const std::string& path, Parameter& p) override { call(path, p); }
  void on_buffer(const std::string& path, Buffer& b) override { call(path, b); }
  void on_module(const std::string& path, Module& m) override { call(path, m); }

 private:
  template <class Member>
  void call(const std::string& path, Member& member) {
    if constexpr (std::is_invocable_v<F, const std::string&, Member&>) fn(path, member);
  }
};

// Handles are shared whatever the constness of the module, as everywhere with Tensor.
Module& listed(const Module& m) { return const_cast<Module&>(m); }

}  // namespace

void for_each_parameter(Module& m, const std::function<void(const std::string&, Parameter&)>& fn) { Each(fn).run(m); }
void for_each_buffer(Module& m, const std::function<void(const std::string&, Buffer&)>& fn) { Each(fn).run(m); }
void for_each_module(Module& m, const std::function<void(const std::string&, Module&)>& fn) { Each(fn).run(m); }

std::vector<std::pair<std::string, Tensor>> named_parameters(const Module& m) {
  std::vector<std::pair<std::string, Tensor>> list;
  std::unordered_set<const TensorBody*> seen;
  for_each_parameter(listed(m), [&](const std::string& path, Parameter& p) {
    if (seen.insert(p.body()).second) list.emplace_back(path, p);
  });
  return list;
}

std::vector<std::pair<std::string, Tensor>> named_buffers(const Module& m) {
  std::vector<std::pair<std::string, Tensor>> list;
  for_each_buffer(listed(m), [&](const std::string& path, Buffer& b) { list.emplace_back(path, b); });
  return list;
}

int64_t count_parameters(const Module& m, bool trainable_only) {
  int64_t n = 0;
  for (const auto& [name, p] : named_parameters(m)) n += trainable_only && !p.requires_grad() ? 0 : p.numel();
  return n;
}

void requires_grad_(const Module& m, bool value) {
  for (const auto& [name, p] : named_parameters(m)) p.requires_grad_(value);
}

void zero_grad(const Module& m) {
  for (const auto& [name, p] : named_parameters(m)) p.clear_grad();
}

void to(Module& m, DType dtype) {
  if (!is_floating(dtype)) fail<DTypeError>("to: parameters are floating, not {}", name_of(dtype));
  const auto converted = [&](const Tensor& x) {
    Tensor y = empty(x.shape(), dtype);
    y.copy_(x);
    return y;
  };
  for_each_parameter(m, [&](const std::string&, Parameter& p) {
    if (p.dtype() == dtype) return;
    const bool trained = p.requires_grad();
    p = Parameter(converted(p));
    p.requires_grad_(trained);
  });
  for_each_buffer(m, [&](const std::string&, Buffer& b) {
    if (is_floating(b.dtype()) && b.dtype() != dtype) b = Buffer(converted(b));
  });
}

}  // namespace tapestry
