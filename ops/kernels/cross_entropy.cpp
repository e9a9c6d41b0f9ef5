// cross_entropy.cpp: cross_entropy.h, one pass over a row for the maximum, one for the sum, one backward.
// Next: attention.cpp.
#include "cross_entropy.h"

#include <cmath>
#include <limits>

#include "../../autograd/parallel.h"
#include "lanes_memory.h"
#include "scratch.h"

namespace tapestry::kernels {
namespace {

struct LossTag;

int64_t row_grain(int64_t classes) { return std::max<int64_t>(1, 8192 / std::max<int64_t>(classes, 1)); }

template <class T, class C = compute_t<T>>
double log_sum_exp(int64_t n, const T* x) {
  constexpr C low = -std::numeric_limits<C>::infinity();
  const C most = max_lanes<C>(n, [&](int64_t j, int64_t count) { return load(x + j, count, low); });
  if (!std::isfinite(most)) return static_cast<double>(most);
  const Lanes<C> shift(most);
  const double sum = sum_lanes<C>(n, [&](int64_t j, int64_t count) { return exp(load(x + j, count, low) - shift); });
  return static_cast<double>(most) + std::log(sum);
}

template <class T, class C = compute_t<T>>
double row_mean(int64_t n, const T* x) {
  const double sum = sum_lanes<C>(n, [&](int64_t j, int64_t count) { return load(x + j, count, C(0)); });
  return sum / static_cast<double>(n);
}

}  // namespace

template <class T>
CrossEntropySum cross_entropy_forward(int64_t n, int64_t classes, const T* logits, int64_t stride,
                                      const int64_t* targets, int64_t ignore_index, compute_t<T>* losses,
                                      compute_t<T>* lse, double smoothing, const double* weight, double z_loss) {
  using C = compute_t<T>;
  CrossEntropySum sum;
  for (int64_t i = 0; i < n; ++i) {
    if (targets[i] == ignore_index) continue;
    if (targets[i] < 0 || targets[i] >= classes) {
      sum.bad_row = i;
      return sum;
    }
    ++sum.count;
    sum.weight += weight ? weight[targets[i]] : 1;
  }
  double* const wide = scratch<double, LossTag>(n);
  parallel_for(n, row_grain(classes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* row = logits + i * stride;
      const double total = log_sum_exp(classes, row);
      wide[i] = 0;
      if (const double w = targets[i] == ignore_index ? 0 : weight ? weight[targets[i]] : 1; w != 0) {
        wide[i] = smoothing < 1 ? (1 - smoothing) * (total - convert<double>(row[targets[i]])) : 0;
        if (smoothing > 0) wide[i] += smoothing * (total - row_mean(classes, row));
        if (z_loss != 0) wide[i] += z_loss * total * total;
        wide[i] *= w;
      }
      lse[i] = static_cast<C>(total);
      if (losses) losses[i] = static_cast<C>(wide[i]);
    }
  });
  for (int64_t i = 0; i < n; ++i) sum.loss += wide[i];
  return sum;
}

template <class T>
void cross_entropy_backward(int64_t n, int64_t classes, const T* logits, int64_t stride, const int64_t* targets,
                            int64_t ignore_index, const compute_t<T>* lse, double scale, const compute_t<T>* scales,
                            T* dlogits, int64_t dlogits_stride, double smoothing, const double* weight, double z_loss) {
  using C = compute_t<T>;
  const double spread = smoothing / static_cast<double>(classes);
  parallel_for(n, row_grain(classes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* row = logits + i * stride;
      T* out = dlogits + i * dlogits_stride;
      double factor = scales ? scale * static_cast<double>(scales[i]) : scale;
      if (weight && targets[i] != ignore_index) factor *= weight[targets[i]];
      if (targets[i] == ignore_index || factor == 0) {
        std::fill(out, out + classes, convert<T>(0.0));
        continue;
      }
      // The target's own entry from its logit before `out`, which may be the same memory, overwrites it; p − 1 as expm1
      // keeps its digits.
      const double total = static_cast<double>(lse[i]), pull = 2 * z_loss * total,
                   less = std::expm1(convert<double>(row[targets[i]]) - total);
      const double target = factor * (less + smoothing - spread + (z_loss == 0 ? 0 : pull * (less + 1)));
      const Lanes<C> f(static_cast<C>(z_loss == 0 ? factor : factor * (1 + pull))), shift(lse[i]),
          q(static_cast<C>(factor * spread));
      if (smoothing == 0) {
        for_lanes<C>(classes,
                     [&](int64_t j, int64_t count) { store(exp(load(row + j, count) - shift) * f, out + j, count); });
      } else {
        for_lanes<C>(classes, [&](int64_t j, int64_t count) {
          store(exp(load(row + j, count) - shift) * f - q, out + j, count);
        });
      }
      out[targets[i]] = convert<T>(target);
    }
  });
}

#define TAPESTRY_CROSS_ENTROPY(T)                                                                                 \
  template CrossEntropySum cross_entropy_forward<T>(int64_t, int64_t, const T*, int64_t, const int64_t*, int64_t, \
                                                    compute_t<T>*, compute_t<T>*, double, const double*, double); \
  template void cross_entropy_backward<T>(int64_t, int64_t, const T*, int64_t, const int64_t*, int64_t,           \
                                          const compute_t<T>*, double, const compute_t<T>*, T*, int64_t, double,  \
                                          const double*, double);
TAPESTRY_CROSS_ENTROPY(float)
TAPESTRY_CROSS_ENTROPY(double)
TAPESTRY_CROSS_ENTROPY(bf16)
#undef TAPESTRY_CROSS_ENTROPY

}  // namespace tapestry::kernels
