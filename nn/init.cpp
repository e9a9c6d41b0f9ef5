// Every element is a function of the ticket and its index alone.
#include "init.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "../autograd/error.h"
#include "../autograd/factory.h"
#include "../autograd/grad_mode.h"
#include "../autograd/parallel.h"

namespace tapestry::init {
namespace {

thread_local bool skipping = false;

/// t[i] = value(i) in row-major order; dtype and strides are t's.
template <class F>
void write(const char* name, const Tensor& t, F&& value) {
  if (!is_floating(t.dtype())) fail<DTypeError>("{}: needs a floating tensor, this one is {}", name, t.describe());
  if (skipping) return;
  Tensor values = empty(t.shape(), t.dtype());
  dispatch(t.dtype(), [&]<class T> {
    T* to = values.mutable_data<T>();
    parallel_for(t.numel(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = convert<T>(value(static_cast<uint64_t>(i)));
    });
  });
  const NoGrad guard;
  t.copy_(values);
}

struct Fans {
  double in, out;
};
Fans fans(const char* name, const Tensor& weight) {
  if (weight.dim() < 2 || weight.numel() == 0)
    fail<ShapeError>("{}: needs a weight (out, in, …) with elements, this one is {}", name, weight.describe());
  const int64_t receptive = weight.numel() / (weight.size(0) * weight.size(1));
  const auto field = static_cast<double>(receptive);
  return {static_cast<double>(weight.size(1)) * field, static_cast<double>(weight.size(0)) * field};
}

}  // namespace

void normal_(const Tensor& t, double mean, double std) {
  const Ticket ticket = draw_ticket();
  write("normal_", t, [=](uint64_t i) { return mean + std * normal_of(ticket, i); });
}

void uniform_(const Tensor& t, double low, double high) {
  if (!(low <= high)) fail<ValueError>("uniform_: empty range [{}, {})", low, high);
  const Ticket ticket = draw_ticket();
  write("uniform_", t, [=](uint64_t i) {
    const auto b = ticket.block(i);
    return low + (high - low) * uniform_f64(b[0], b[1]);
  });
}

void truncated_normal_(const Tensor& t, double std, double low, double high) {
  const double root = std * std::numbers::sqrt2;
  if (!(std > 0 && std::erf(high / root) - std::erf(low / root) > 2e-3))
    fail<ValueError>("truncated_normal_: [{}, {}] keeps less than a thousandth of a normal with deviation {}; widen it",
                     low, high, std);
  const Ticket ticket = draw_ticket();
  write("truncated_normal_", t, [=](uint64_t i) {
    constexpr uint64_t next_try = uint64_t{1} << 40;
    for (uint64_t at = i;; at += next_try)
      if (const double x = std * normal_of(ticket, at); low <= x && x <= high) return x;
  });
}

void xavier_normal_(const Tensor& weight, double gain) {
  const auto [in, out] = fans("xavier_normal_", weight);
  normal_(weight, 0, gain * std::sqrt(2 / (in + out)));
}

void xavier_uniform_(const Tensor& weight, double gain) {
  const auto [in, out] = fans("xavier_uniform_", weight);
  const double bound = gain * std::sqrt(6 / (in + out));
  uniform_(weight, -bound, bound);
}

void kaiming_normal_(const Tensor& weight, double gain) {
  normal_(weight, 0, gain / std::sqrt(fans("kaiming_normal_", weight).in));
}

void kaiming_uniform_(const Tensor& weight, double gain) {
  const double bound = gain * std::sqrt(3 / fans("kaiming_uniform_", weight).in);
  uniform_(weight, -bound, bound);
}

void linear_(const Tensor& weight) {
  const auto [in, out] = fans("init::linear_", weight);
  const double std = std::sqrt(2 / (in + out));
  truncated_normal_(weight, std, -3 * std, 3 * std);
}

void embedding_(const Tensor& table) {
  truncated_normal_(table, 1 / std::sqrt(static_cast<double>(table.size(-1))), -2, 2);
}

double residual_scale(int64_t n_layers) {
  if (n_layers < 1) fail<ValueError>("residual_scale: {} layers; needs one at least", n_layers);
  return 1 / std::sqrt(2 * static_cast<double>(n_layers));
}

void scale_(const Tensor& t, double factor) {
  const Tensor old = dense(t.detach());
  dispatch(t.dtype(), [&]<class T> {
    const T* from = old.data<T>();
    write("scale_", t, [=](uint64_t i) { return static_cast<double>(convert<compute_t<T>>(from[i])) * factor; });
  });
}

Skip::Skip() : outer_(std::exchange(skipping, true)) {}
Skip::~Skip() { skipping = outer_; }

}  // namespace tapestry::init
