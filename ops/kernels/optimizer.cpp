// optimizer.cpp: optimizer.h over SIMD lanes. Memory is the limit, so every array is read and written once a step.
// Not here: clipping's two passes (../../optim/clip.cpp). Next: ../../optim/adam.cpp.
#include "optimizer.h"

#include <cmath>
#include <vector>

#include "../../autograd/parallel.h"
#include "lanes_memory.h"

namespace tapestry::kernels {
namespace {

// Elements per piece: a whole number of registers of every type.
constexpr int64_t grain = 16384;

// f(i, count) for the registers of [0, n), by several threads.
template <class C, class F>
void for_all_lanes(int64_t n, F f) {
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    for_lanes<C>(end - begin, [&](int64_t j, int64_t count) { f(begin + j, count); });
  });
}

// One double per piece of [0, n), from piece(begin, end).
template <class F>
std::vector<double> per_piece(int64_t n, F piece) {
  std::vector<double> results(static_cast<size_t>((n + grain - 1) / grain));
  parallel_for(n, grain,
               [&](int64_t begin, int64_t end) { results[static_cast<size_t>(begin / grain)] = piece(begin, end); });
  return results;
}

}  // namespace

template <class T>
void adam_step(int64_t n, T* p, const T* g, compute_t<T>* m, compute_t<T>* v, compute_t<T>* v_max, const AdamStep& s) {
  using C = compute_t<T>;
  using L = Lanes<C>;
  const L grad_scale = num<L>(s.grad_scale), l2 = num<L>(s.l2), eps = num<L>(s.eps), zero = num<L>(0);
  const L beta1 = num<L>(s.beta1), rest1 = num<L>(1 - s.beta1), beta2 = num<L>(s.beta2), rest2 = num<L>(1 - s.beta2);
  const L step_size = num<L>(s.step_size), inv_sqrt_bias2 = num<L>(s.inv_sqrt_bias2);
  const L keep_before = num<L>(s.keep_before), keep_after = num<L>(s.keep_after);
  for_all_lanes<C>(n, [&](int64_t i, int64_t count) {
    const L old = load(p + i, count);
    const L grad = load(g + i, count) * grad_scale + l2 * old;
    const L mean = beta1 * load(m + i, count) + rest1 * grad;
    L square = beta2 * load(v + i, count) + rest2 * (grad * grad);
    store(mean, m + i, count);
    store(square, v + i, count);
    if (v_max) {
      square = maximum(load(v_max + i, count), square);
      store(square, v_max + i, count);
    }
    const L denominator = sqrt(square) * inv_sqrt_bias2 + eps;
    const L step = where(denominator == zero, zero, step_size * (mean / denominator));
    store((old * keep_before - step) * keep_after, p + i, count);
  });
}

template <class T>
void sgd_step(int64_t n, T* p, const T* g, compute_t<T>* buffer, const SgdStep& s) {
  using C = compute_t<T>;
  using L = Lanes<C>;
  const L grad_scale = num<L>(s.grad_scale), l2 = num<L>(s.l2), lr = num<L>(s.lr);
  const L momentum = num<L>(s.momentum), rest = num<L>(1 - s.dampening);
  for_all_lanes<C>(n, [&](int64_t i, int64_t count) {
    const L old = load(p + i, count);
    L direction = load(g + i, count) * grad_scale + l2 * old;
    if (buffer) {
      const L average = s.first ? direction : momentum * load(buffer + i, count) + rest * direction;
      store(average, buffer + i, count);
      direction = s.nesterov ? direction + momentum * average : average;
    }
    store(old - lr * direction, p + i, count);
  });
}

template <class T>
double sum_of_squares(int64_t n, const T* x, double scale) {
  std::vector<double> sums = per_piece(n, [&](int64_t begin, int64_t end) {
    constexpr int64_t width = 32;  // chains of additions, so that they overlap
    double chains[width] = {};
    const auto square = [&](int64_t i) {
      const double value = convert<double>(x[i]) * scale;
      return value * value;
    };
    int64_t i = begin;
    for (; i + width <= end; i += width)
      for (int64_t k = 0; k < width; ++k) chains[k] += square(i + k);
    for (int64_t k = 0; i < end; ++i, ++k) chains[k] += square(i);
    for (int64_t half = width / 2; half > 0; half /= 2)
      for (int64_t k = 0; k < half; ++k) chains[k] += chains[k + half];
    return chains[0];
  });
  for (size_t step = 1; step < sums.size(); step *= 2)
    for (size_t i = 0; i + step < sums.size(); i += 2 * step) sums[i] += sums[i + step];
  return sums.empty() ? 0 : sums[0];
}

template <class T>
double max_abs(int64_t n, const T* x) {
  using C = compute_t<T>;
  double most = 0;
  for (const double piece : per_piece(n, [&](int64_t begin, int64_t end) {
         return static_cast<double>(
             max_lanes<C>(end - begin, [&](int64_t j, int64_t count) { return abs(load(x + begin + j, count)); }));
       }))
    most = maximum(most, piece);
  return most;
}

template <class T>
void scale(int64_t n, T* x, double factor) {
  using C = compute_t<T>;
  const auto f = num<Lanes<C>>(factor);
  for_all_lanes<C>(n, [&](int64_t i, int64_t count) { store(load(x + i, count) * f, x + i, count); });
}

template <class T>
void clamp_abs(int64_t n, T* x, double bound) {
  using C = compute_t<T>;
  const auto low = num<Lanes<C>>(-bound), high = num<Lanes<C>>(bound);
  for_all_lanes<C>(
      n, [&](int64_t i, int64_t count) { store(minimum(maximum(load(x + i, count), low), high), x + i, count); });
}

#define TAPESTRY_OPTIMIZER_KERNELS(T)                                                                           \
  template void adam_step(int64_t, T*, const T*, compute_t<T>*, compute_t<T>*, compute_t<T>*, const AdamStep&); \
  template void sgd_step(int64_t, T*, const T*, compute_t<T>*, const SgdStep&);                                 \
  template double sum_of_squares(int64_t, const T*, double);                                                    \
  template double max_abs(int64_t, const T*);                                                                   \
  template void scale(int64_t, T*, double);                                                                     \
  template void clamp_abs(int64_t, T*, double)
TAPESTRY_OPTIMIZER_KERNELS(float);
TAPESTRY_OPTIMIZER_KERNELS(double);
TAPESTRY_OPTIMIZER_KERNELS(bf16);
#undef TAPESTRY_OPTIMIZER_KERNELS

}  // namespace tapestry::kernels
