// Lines carried side by side, and the states they carry. Next: sort.h.
#include "scan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "../../autograd/parallel.h"
#include "../../autograd/strided.h"

namespace tapestry::kernels {
namespace {

constexpr int64_t width = 256;  // neighbouring lines carried together, so that lines of memory are used whole

/// f(state, elements, i) for i = 0 … n−1 (backwards when `reverse`) of every line along dim; elements[k] points into operand k. The first
/// operand is written.
template <size_t K, class State, class F>
void lines(const Shape& shape, int dim, const std::array<ScanOperand, K>& operands, const std::array<int64_t, K>& sizes,
           bool reverse, const State& init, const F& f) {
  if (numel(shape) == 0) return;
  const int64_t n = shape[dim], first = reverse ? n - 1 : 0, by = reverse ? -1 : 1;
  Shape rest = shape;
  rest.erase(dim);
  std::array<Strides, K> strides;
  std::array<char*, K> data;
  std::array<int64_t, K> step, next;
  for (size_t k = 0; k < K; ++k) {
    strides[k] = operands[k].strides;
    step[k] = strides[k][dim] * sizes[k] * by;
    data[k] = static_cast<char*>(const_cast<void*>(operands[k].data)) + first * by * step[k];
    strides[k].erase(dim);
  }
  const StridedLoop loop(rest, strides, sizes);
  for (size_t k = 0; k < K; ++k) next[k] = loop.strides[k][loop.rank - 1];
  const int64_t inner = loop.inner(), blocks = (inner + width - 1) / width, each = n * std::min(inner, width);
  parallel_for(loop.outer() * blocks, std::max<int64_t>(1, 16384 / each), [&](int64_t begin, int64_t end) {
    State state[width];
    for (int64_t t = begin; t < end; ++t) {
      int64_t at[max_operands];
      loop.offsets(t / blocks, at);
      const int64_t left = t % blocks * width, count = std::min(width, inner - left);
      std::array<char*, K> base;
      for (size_t k = 0; k < K; ++k) base[k] = data[k] + at[k] + left * next[k];
      const auto visit = [&](State& s, int64_t i, int64_t j) {
        std::array<char*, K> p;
        for (size_t k = 0; k < K; ++k) p[k] = base[k] + i * step[k] + j * next[k];
        f(s, p, i);
      };
      if (count == 1 || std::abs(step[0]) < std::abs(next[0])) {
        for (int64_t j = 0; j < count; ++j) {
          State s = init;
          for (int64_t i = 0; i < n; ++i) visit(s, i, j);
        }
      } else {
        std::fill_n(state, count, init);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < count; ++j) visit(state[j], i, j);
      }
    }
  });
}

template <class T>
T& as(char* p) {
  return *reinterpret_cast<T*>(p);
}

/// ln Σeˣ of what has been seen, as most + ln(sum).
struct LogSum {
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  double add(double x) {
    if (x != x || x <= most) {
      sum += most == x ? 1 : std::exp(x - most);  // equal ones may be infinite
    } else {
      sum = sum * std::exp(most - x) + 1;
      most = x;
    }
    return std::isinf(most) && sum == sum ? most : most + std::log(sum);
  }
};

}  // namespace

void scan(Scan what, const Shape& shape, int dim, DType dtype, const ScanOperand& x, const ScanOperand& out,
          bool reverse) {
  dispatch(dtype, [&]<class T> {
    const auto run = [&](auto init, auto next) {
      lines<2>(shape, dim, {{out, x}}, {{sizeof(T), sizeof(T)}}, reverse, init,
               [&](auto& state, const auto& p, int64_t) { as<T>(p[0]) = convert<T>(next(state, as<T>(p[1]))); });
    };
    if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, bool>) {  // unsigned, as it may wrap
      const auto whole = [](T v) { return static_cast<uint64_t>(v); };
      if (what == Scan::sum)
        run(uint64_t{0}, [&](uint64_t& s, T v) { return static_cast<int64_t>(s += whole(v)); });
      else
        run(uint64_t{1}, [&](uint64_t& s, T v) { return static_cast<int64_t>(s *= whole(v)); });
    } else if (what == Scan::sum) {
      run(0.0, [](double& s, T v) { return s += convert<double>(v); });
    } else if (what == Scan::prod) {
      run(1.0, [](double& s, T v) { return s *= convert<double>(v); });
    } else {
      run(LogSum{}, [](LogSum& s, T v) { return s.add(convert<double>(v)); });
    }
  });
}

void scan_extreme(bool largest, const Shape& shape, int dim, DType dtype, const ScanOperand& x,
                  const ScanOperand& values, const ScanOperand& indices) {
  struct Best {
    const char* element = nullptr;
    int64_t index = 0;
  };
  dispatch(dtype, [&]<class T> {
    using C = compute_t<T>;
    const auto run = [&](auto takes_over) {
      lines<3>(shape, dim, {{values, x, indices}}, {{sizeof(T), sizeof(T), sizeof(int64_t)}}, false, Best{},
               [&](Best& best, const auto& p, int64_t i) {
                 const C v = convert<C>(as<T>(p[1]));
                 if (best.element == nullptr || v != v ||
                     takes_over(v, convert<C>(*reinterpret_cast<const T*>(best.element))))
                   best = {p[1], i};
                 as<T>(p[0]) = *reinterpret_cast<const T*>(best.element);
                 as<int64_t>(p[2]) = best.index;
               });
    };
    if (largest)
      run([](C v, C best) { return v >= best; });
    else
      run([](C v, C best) { return v <= best; });
  });
}

void linear_scan(const Shape& shape, int dim, DType dtype, const ScanOperand& a, const ScanOperand& b,
                 const ScanOperand& h, bool reverse) {
  dispatch(dtype, [&]<class T> {
    if constexpr (std::is_floating_point_v<compute_t<T>>)
      lines<3>(shape, dim, {{h, a, b}}, {{sizeof(T), sizeof(T), sizeof(T)}}, reverse, 0.0,
               [](double& s, const auto& p, int64_t) {
                 s = convert<double>(as<T>(p[2])) + convert<double>(as<T>(p[1])) * s;
                 as<T>(p[0]) = convert<T>(s);
               });
  });
}

}  // namespace tapestry::kernels
