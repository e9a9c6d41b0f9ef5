// norm.cpp: norm.h as one forward and one backward kernel, with and without centring.
// Not batch norm. Next: softmax.cpp.
#include "norm.h"

#include <cmath>

#include "../../autograd/parallel.h"
#include "lanes_memory.h"
#include "scratch.h"

namespace tapestry::kernels {
namespace {

// Rows per piece of the backward pass, whose sums over rows are one partial each.
constexpr int64_t block_rows = 64;

int64_t row_grain(int64_t d) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(d, 1)); }

// x̂ = (x − mean) · inv, 0 in the lanes past `count`.
template <bool centred, class T, class C = compute_t<T>>
Lanes<C> normalised(const T* x, int64_t count, C mean, C inv) {
  if constexpr (centred)
    return (load(x, count, mean) - Lanes<C>(mean)) * Lanes<C>(inv);
  else
    return load(x, count) * Lanes<C>(inv);
}

template <bool centred, class T, class W>
void forward(int64_t rows, int64_t d, double eps, Rows<const T> x, const W* w, const W* b, Rows<T> y,
             compute_t<T>* means, compute_t<T>* invs) {
  using C = compute_t<T>;
  parallel_for(rows, row_grain(d), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* in = x.data + i * x.stride;
      T* out = y.data + i * y.stride;
      C mean = 0;
      if constexpr (centred)
        mean = static_cast<C>(sum_lanes<C>(d, [&](int64_t j, int64_t count) { return load(in + j, count); }) /
                              static_cast<double>(d));
      const double squares = sum_lanes<C>(d, [&](int64_t j, int64_t count) {
        const Lanes<C> v = normalised<centred>(in + j, count, mean, C(1));
        return v * v;
      });
      const C inv = static_cast<C>(1 / std::sqrt(squares / static_cast<double>(d) + eps));
      for_lanes<C>(d, [&](int64_t j, int64_t count) {
        Lanes<C> v = normalised<centred>(in + j, count, mean, inv);
        if (w) v *= load(w + j, count);
        if (b) v += load(b + j, count);
        store(v, out + j, count);
      });
      if (means) means[i] = mean;
      if (invs) invs[i] = inv;
    }
  });
}

struct PartialTag;

template <bool centred, class T, class W>
void backward(int64_t rows, int64_t d, Rows<const T> x, const W* w, const compute_t<T>* means, const compute_t<T>* invs,
              Rows<const T> g, Rows<T> dx, W* dw, W* db) {
  using C = compute_t<T>;
  const int64_t blocks = (rows + block_rows - 1) / block_rows;
  const int64_t sums = (dw ? 1 : 0) + (db ? 1 : 0);
  C* const partials = scratch<C, PartialTag>(sums * blocks * d);
  const auto row = [&](int64_t i, C* dw_part, C* db_part) {
    const T *in = x.data + i * x.stride, *up = g.data + i * g.stride;
    const C mean = centred ? means[i] : C(0), inv = invs[i];
    const auto weighted = [&](int64_t j, int64_t count) {
      const Lanes<C> v = load(up + j, count);
      return w ? v * load(w + j, count) : v;
    };
    const auto hat = [&](int64_t j, int64_t count) { return normalised<centred>(in + j, count, mean, inv); };
    Lanes<C> mean_gw(C(0)), mean_gwx(C(0));
    if (dx.data) {
      const auto n = static_cast<double>(d);
      if constexpr (centred) mean_gw = Lanes<C>(static_cast<C>(sum_lanes<C>(d, weighted) / n));
      const double gwx = sum_lanes<C>(d, [&](int64_t j, int64_t count) { return weighted(j, count) * hat(j, count); });
      mean_gwx = Lanes<C>(static_cast<C>(gwx / n));
    }
    T* out = dx.data ? dx.data + i * dx.stride : nullptr;
    for_lanes<C>(d, [&](int64_t j, int64_t count) {
      const Lanes<C> up_j = load(up + j, count), hat_j = hat(j, count);
      if (dw_part) store(load(dw_part + j, count) + up_j * hat_j, dw_part + j, count);
      if (db_part) store(load(db_part + j, count) + up_j, db_part + j, count);
      if (out) store(Lanes<C>(inv) * (weighted(j, count) - mean_gw - hat_j * mean_gwx), out + j, count);
    });
  };
  parallel_for(blocks, std::max<int64_t>(1, row_grain(d) / block_rows), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      C* part = partials + sums * block * d;
      std::fill(part, part + sums * d, C(0));
      for (int64_t i = block * block_rows; i < std::min((block + 1) * block_rows, rows); ++i)
        row(i, dw ? part : nullptr, db ? part + (sums - 1) * d : nullptr);
    }
  });
  if (sums == 0) return;
  parallel_for(d, std::max<int64_t>(64, row_grain(blocks)), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      double total[2] = {0, 0};
      for (int64_t block = 0; block < blocks; ++block)
        for (int64_t s = 0; s < sums; ++s) total[s] += static_cast<double>(partials[(sums * block + s) * d + j]);
      if (dw) dw[j] = convert<W>(static_cast<C>(total[0]));
      if (db) db[j] = convert<W>(static_cast<C>(total[sums - 1]));
    }
  });
}

}  // namespace

template <class T, class W>
void rms_norm_forward(int64_t rows, int64_t d, double eps, Rows<const T> x, const W* w, Rows<T> y,
                      compute_t<T>* inv_rms) {
  forward<false, T, W>(rows, d, eps, x, w, nullptr, y, nullptr, inv_rms);
}

template <class T, class W>
void rms_norm_backward(int64_t rows, int64_t d, Rows<const T> x, const W* w, const compute_t<T>* inv_rms,
                       Rows<const T> g, Rows<T> dx, W* dw) {
  backward<false, T, W>(rows, d, x, w, nullptr, inv_rms, g, dx, dw, nullptr);
}

template <class T, class W>
void layer_norm_forward(int64_t rows, int64_t d, double eps, Rows<const T> x, const W* w, const W* b, Rows<T> y,
                        compute_t<T>* mean, compute_t<T>* inv_std) {
  forward<true, T, W>(rows, d, eps, x, w, b, y, mean, inv_std);
}

template <class T, class W>
void layer_norm_backward(int64_t rows, int64_t d, Rows<const T> x, const W* w, const compute_t<T>* mean,
                         const compute_t<T>* inv_std, Rows<const T> g, Rows<T> dx, W* dw, W* db) {
  backward<true, T, W>(rows, d, x, w, mean, inv_std, g, dx, dw, db);
}

#define TAPESTRY_NORM(T, W)                                                                                            \
  template void rms_norm_forward<T, W>(int64_t, int64_t, double, Rows<const T>, const W*, Rows<T>, compute_t<T>*);     \
  template void rms_norm_backward<T, W>(int64_t, int64_t, Rows<const T>, const W*, const compute_t<T>*, Rows<const T>, \
                                        Rows<T>, W*);                                                                  \
  template void layer_norm_forward<T, W>(int64_t, int64_t, double, Rows<const T>, const W*, const W*, Rows<T>,         \
                                         compute_t<T>*, compute_t<T>*);                                                \
  template void layer_norm_backward<T, W>(int64_t, int64_t, Rows<const T>, const W*, const compute_t<T>*,              \
                                          const compute_t<T>*, Rows<const T>, Rows<T>, W*, W*);
TAPESTRY_NORM(float, float)
TAPESTRY_NORM(double, double)
TAPESTRY_NORM(bf16, bf16)
TAPESTRY_NORM(bf16, float)
#undef TAPESTRY_NORM

}  // namespace tapestry::kernels
