// What a reduction carries and how: one struct per kind, with a loop over dense elements of one result, a loop over columns, and a merge.
// Not the walk over memory nor the tree of partial results (reduce.cpp). Next: reduce.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "formula_lanes.h"

namespace tapestry::kernels::reduction {

/// The walk hands out at most this many dense elements at a time.
inline constexpr int64_t dense_run = 1024;

/// x[0] + … + x[n-1] in Acc, each after `term` changed it, along 32 lanes that are added as a tree; for at most dense_run elements.
template <class Acc, class T, class Term>
Acc lane_tree_sum(const T* x, int64_t n, Term term) {
  // vector types of GCC and Clang: widening loads that any instruction set has
  typedef Acc Wide __attribute__((vector_size(8 * sizeof(Acc))));
  typedef T Narrow __attribute__((vector_size(8 * sizeof(T))));
  Wide sum[4] = {};
  const auto add = [&](Wide& s, const T* p) {
    Narrow v;
    std::memcpy(&v, p, sizeof v);
    Wide w = __builtin_convertvector(v, Wide);
    term(w);  // in place: a wide vector that is returned would need an ABI the instruction set may not have
    s += w;
  };
  int64_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (int k = 0; k < 4; ++k) add(sum[k], x + i + 8 * k);
  for (int k = 0; i < n; i += 8, ++k) {
    T tail[8] = {};
    std::copy_n(x + i, std::min<int64_t>(8, n - i), tail);
    add(sum[k], tail);
  }
  const Wide all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  return ((all[0] + all[4]) + (all[2] + all[6])) + ((all[1] + all[5]) + (all[3] + all[7]));
}

/// The default column loop: State by State, element by element.
template <class Op, class State, class T>
void each_column(State* s, const char* rows, int64_t columns, int64_t count, int64_t step, int64_t first) {
  for (int64_t r = 0; r < count; ++r, rows += step) {
    const T* x = reinterpret_cast<const T*>(rows);
    for (int64_t c = 0; c < columns; ++c) Op::add(s[c], x[c], first + r);
  }
}

template <class T>
using sum_t = std::conditional_t<std::is_same_v<T, int64_t>, int64_t, double>;

template <class T>
struct SumOp {
  using Element = T;
  using State = sum_t<T>;
  static State init() { return 0; }
  static void row(State& s, const T* x, int64_t n, int64_t) {
    s += lane_tree_sum<State>(x, n, [](auto&) {});
  }
  static void columns(State* s, const char* rows, int64_t width, int64_t count, int64_t step, int64_t) {
    const auto at = [&](int64_t r) { return reinterpret_cast<const T*>(rows + r * step); };
    int64_t r = 0;
    for (; r + 4 <= count; r += 4) {
      const T *a = at(r), *b = at(r + 1), *c = at(r + 2), *d = at(r + 3);
      for (int64_t j = 0; j < width; ++j) s[j] += (State(a[j]) + State(b[j])) + (State(c[j]) + State(d[j]));
    }
    for (; r < count; ++r) {
      const T* a = at(r);
      for (int64_t j = 0; j < width; ++j) s[j] += State(a[j]);
    }
  }
  static void merge(State& a, const State& b) { a += b; }
  static State result(const State& s, int64_t) { return s; }
};

template <class T>
struct MeanOp : SumOp<T> {
  static double result(const sum_t<T>& s, int64_t n) { return static_cast<double>(s) / static_cast<double>(n); }
};

/// Σx² as sum · scale², with scale a power of two other than 1 only where squares leave the range of double.
template <class T>
struct NormOp {
  using Element = T;
  struct State {
    double sum, scale;
  };
  static State init() { return {0, 1}; }
  static void row(State& s, const T* x, int64_t n, int64_t) {
    State block{lane_tree_sum<double>(x, n, [](auto& w) { w *= w; }), 1};
    if constexpr (std::is_same_v<T, double>) {
      if (!in_range(block.sum)) block = scaled(x, n, block);
    }
    merge(s, block);
  }
  static bool in_range(double square) { return square > 0x1p-900 && square < 0x1p960; }
  static State scaled(const T* x, int64_t n, const State& plain) {
    double most = 0;
    for (int64_t i = 0; i < n; ++i) most = std::max(most, std::abs(static_cast<double>(x[i])));
    if (most == 0 || !std::isfinite(most)) return plain;
    State s{0, std::exp2(std::ilogb(most))};
    for (int64_t i = 0; i < n; ++i) {
      const double v = static_cast<double>(x[i]) / s.scale;
      s.sum += v * v;
    }
    return s;
  }
  static void columns(State* s, const char* rows, int64_t width, int64_t count, int64_t step, int64_t first) {
    each_column<NormOp, State, T>(s, rows, width, count, step, first);
  }
  static void add(State& s, T x, int64_t) {
    const double square = static_cast<double>(x) * static_cast<double>(x);
    if (s.scale == 1 && (x == T(0) || in_range(square))) {
      s.sum += square;
    } else {
      row(s, &x, 1, 0);
    }
  }
  static void merge(State& a, const State& b) {
    if (a.scale == b.scale) {
      a.sum += b.sum;
    } else if (b.sum == 0) {
      return;
    } else if (a.sum == 0) {
      a = b;
    } else if (a.scale > b.scale) {
      a.sum += b.sum * (b.scale / a.scale) * (b.scale / a.scale);
    } else {
      a = {b.sum + a.sum * (a.scale / b.scale) * (a.scale / b.scale), b.scale};
    }
  }
  static double result(const State& s, int64_t) { return s.scale * std::sqrt(s.sum); }
};

/// sign = 1: the largest element, sign = -1: the smallest; and where it first is.
template <class T, int sign>
struct ExtremeOp {
  using Element = T;
  struct State {
    T value;
    int64_t index;
  };
  static constexpr T worst() {
    if constexpr (std::is_floating_point_v<T>) return -sign * std::numeric_limits<T>::infinity();
    return sign > 0 ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
  static State init() { return {worst(), 0}; }
  static bool better(T a, T b) { return (sign > 0 ? a > b : a < b) || (a != a && b == b); }
  static T best(const T* x, int64_t n) {
    T y = worst();
    int64_t i = 0;
    if constexpr (std::is_floating_point_v<T>) {
      using V = Lanes<T>;
      V most[2] = {V(y), V(y)};
      for (; i + 2 * V::size <= n; i += 2 * V::size)
        for (int k = 0; k < 2; ++k) {
          const V v = V::load(x + i + k * V::size);
          most[k] = sign > 0 ? maximum(most[k], v) : minimum(most[k], v);
        }
      T lanes[V::size];
      (sign > 0 ? maximum(most[0], most[1]) : minimum(most[0], most[1])).store(lanes);
      for (const T lane : lanes) y = better(lane, y) ? lane : y;
    }
    for (; i < n; ++i) y = better(x[i], y) ? x[i] : y;
    return y;
  }
  static void row(State& s, const T* x, int64_t n, int64_t first) {
    const T y = best(x, n);
    if (!better(y, s.value)) return;
    int64_t i = 0;
    if constexpr (std::is_floating_point_v<T>) {
      using V = Lanes<T>;
      const Mask<T> wanted_nan(y != y);
      const auto found = [&](const V& v) { return ((v == V(y)) | (isnan(v) & wanted_nan)).any(); };
      while (i + V::size <= n && !found(V::load(x + i))) i += V::size;
    }
    while (x[i] != y && (y == y || x[i] == x[i])) ++i;
    s = {x[i], first + i};
  }
  static void columns(State* s, const char* rows, int64_t width, int64_t count, int64_t step, int64_t first) {
    each_column<ExtremeOp, State, T>(s, rows, width, count, step, first);
  }
  static void add(State& s, T x, int64_t index) {
    if (better(x, s.value)) s = {x, index};
  }
  static void merge(State& a, const State& b) {  // b lies behind a
    if (better(b.value, a.value)) a = b;
  }
  static T result(const State& s, int64_t) { return s.value; }
};

template <class T>
struct ProdOp {
  using Element = T;
  using State = sum_t<T>;
  static State init() { return 1; }
  static void row(State& s, const T* x, int64_t n, int64_t) {
    for (int64_t i = 0; i < n; ++i) add(s, x[i], 0);
  }
  static void columns(State* s, const char* rows, int64_t width, int64_t count, int64_t step, int64_t first) {
    each_column<ProdOp, State, T>(s, rows, width, count, step, first);
  }
  static void add(State& s, T x, int64_t) { merge(s, static_cast<State>(x)); }
  static void merge(State& a, const State& b) {
    if constexpr (std::is_same_v<State, int64_t>) {
      a = static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));  // wraps
    } else {
      a *= b;
    }
  }
  static State result(const State& s, int64_t) { return s; }
};

/// How many elements are not 0 (NaN is not).
template <class T>
struct CountOp {
  using Element = T;
  using State = int64_t;
  static State init() { return 0; }
  static void row(State& s, const T* x, int64_t n, int64_t) {
    for (int64_t i = 0; i < n; ++i) s += x[i] != T(0);
  }
  static void columns(State* s, const char* rows, int64_t width, int64_t count, int64_t step, int64_t first) {
    each_column<CountOp, State, T>(s, rows, width, count, step, first);
  }
  static void add(State& s, T x, int64_t) { s += x != T(0); }
  static void merge(State& a, const State& b) { a += b; }
  static State result(const State& s, int64_t) { return s; }
};

template <class T>
struct AnyOp : CountOp<T> {
  static int64_t result(int64_t s, int64_t) { return s != 0; }
};
template <class T>
struct AllOp : CountOp<T> {
  static int64_t result(int64_t s, int64_t n) { return s == n; }
};

/// Σ(x - mean)²: two passes over each dense run, whose sums are merged by Chan, Golub & LeVeque 1983; exactly 0 for equal elements. Without a
/// column loop: the walk turns columns into rows first.
template <class T>
struct DeviationOp {
  using Element = T;
  struct State {
    double count, mean, sum;
  };
  static State init() { return {0, 0, 0}; }
  static void row(State& s, const T* x, int64_t n, int64_t) {
    const int64_t whole = n - n % 8;  // beyond, lane_tree_sum would take in zeros
    double mean = static_cast<double>(x[0]);
    const auto total = [&](auto term) {  // of x - mean, each after `term` changed it
      double sum = lane_tree_sum<double>(x, whole, [mean, term](auto& w) {
        w -= mean;
        term(w);
      });
      for (int64_t i = whole; i < n; ++i) {
        double d = static_cast<double>(x[i]) - mean;
        term(d);
        sum += d;
      }
      return sum;
    };
    const auto count = static_cast<double>(n);
    mean += total([](auto&) {}) / count;
    const double sum = total([](auto& w) { w *= w; });
    merge(s, {count, mean, sum});
  }
  static void merge(State& a, const State& b) {
    if (a.count == 0 || b.count == 0) {
      if (b.count != 0) a = b;
      return;
    }
    const double count = a.count + b.count, d = b.mean - a.mean;
    a = {count, a.mean + d * (b.count / count), a.sum + b.sum + d * d * (a.count * (b.count / count))};
  }
  static double result(const State& s, int64_t) { return s.sum; }
};

/// ln Σe^x as most + ln Σe^(x - most). Without a column loop: the walk turns columns into rows first.
template <class T>
struct LogSumExpOp {
  using Element = T;
  struct State {
    double most, sum;
  };
  static State init() { return {-std::numeric_limits<double>::infinity(), 0}; }
  static void row(State& s, const T* x, int64_t n, int64_t) {
    using V = Lanes<T>;
    const T most = ExtremeOp<T, 1>::best(x, n);
    State block{static_cast<double>(most), 0};
    if (std::isfinite(most)) {
      T terms[dense_run + V::size];
      std::copy_n(x, n, terms);
      std::fill_n(terms + n, V::size, most);
      for (int64_t i = 0; i < n; i += V::size) exp(V::load(terms + i) - V(most)).store(terms + i);
      block.sum = lane_tree_sum<double>(terms, n, [](auto&) {});
    }
    merge(s, block);
  }
  static void merge(State& a, const State& b) {
    if (!std::isfinite(a.most) || !std::isfinite(b.most)) {  // -inf adds nothing, +inf and NaN win
      if (b.most != b.most || (a.most == a.most && b.most > a.most)) a = b;
    } else if (b.most <= a.most) {
      a.sum += b.sum * std::exp(b.most - a.most);
    } else {
      a = {b.most, b.sum + a.sum * std::exp(a.most - b.most)};
    }
  }
  static double result(const State& s, int64_t) { return std::isfinite(s.most) ? s.most + std::log(s.sum) : s.most; }
};

}  // namespace tapestry::kernels::reduction
