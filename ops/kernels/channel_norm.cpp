// channel_norm.cpp: every pass runs over slabs, the `inner` elements of one channel of one sample; sums of slabs are kept in double and then added up per set
// and per channel, in the order of samples and channels.
#include "channel_norm.h"

#include <algorithm>

#include "../../autograd/parallel.h"
#include "lanes_memory.h"
#include "scratch.h"

namespace tapestry::kernels {
namespace {

struct FirstTag;
struct SecondTag;
struct SetTag;

int64_t grain(int64_t work) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(work, 1)); }

// f(slab, sample, channel) for all slabs.
template <class F>
void for_slabs(const ChannelSets& sets, F f) {
  parallel_for(sets.batch * sets.channels, grain(sets.inner), [&](int64_t begin, int64_t end) {
    int64_t sample = begin / sets.channels, channel = begin % sets.channels;
    for (int64_t slab = begin; slab < end; ++slab) {
      f(slab, sample, channel);
      if (++channel == sets.channels) channel = 0, ++sample;
    }
  });
}

// total[set] = Σ factor(channel) · part[slab] over the slabs of each set.
template <class F>
void add_up_sets(const ChannelSets& sets, const double* part, F factor, double* total) {
  if (sets.groups != 0) {
    const int64_t width = sets.channels / sets.groups;
    parallel_for(sets.count(), grain(width), [&](int64_t begin, int64_t end) {
      for (int64_t set = begin; set < end; ++set) {
        total[set] = 0;
        const int64_t first = set % sets.groups * width;
        for (int64_t k = 0; k < width; ++k) total[set] += factor(first + k) * part[set * width + k];
      }
    });
    return;
  }
  parallel_for(sets.channels, std::max<int64_t>(16, grain(sets.batch)), [&](int64_t begin, int64_t end) {
    std::fill(total + begin, total + end, 0.0);
    for (int64_t n = 0; n < sets.batch; ++n)
      for (int64_t c = begin; c < end; ++c) total[c] += factor(c) * part[n * sets.channels + c];
  });
}

// total[channel] = Σ part[slab] over the batch.
template <class W>
void add_up_channels(const ChannelSets& sets, const double* part, W* total) {
  parallel_for(sets.channels, std::max<int64_t>(16, grain(sets.batch)), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double sum = 0;
      for (int64_t n = 0; n < sets.batch; ++n) sum += part[n * sets.channels + c];
      total[c] = convert<W>(static_cast<compute_t<W>>(sum));
    }
  });
}

}  // namespace

template <class T>
void channel_moments(const ChannelSets& sets, const T* x, double* mean, double* variance) {
  using C = compute_t<T>;
  const int64_t inner = sets.inner;
  const auto n = static_cast<double>(sets.elements());
  auto* part = scratch<double, FirstTag>(sets.batch * sets.channels);
  const auto one = [](int64_t) { return 1.0; };
  for_slabs(sets, [&](int64_t slab, int64_t, int64_t) {
    const T* from = x + slab * inner;
    part[slab] = inner == 1 ? convert<double>(from[0])
                            : sum_lanes<C>(inner, [&](int64_t j, int64_t count) { return load(from + j, count); });
  });
  add_up_sets(sets, part, one, mean);
  for (int64_t set = 0; set < sets.count(); ++set) mean[set] /= n;
  for_slabs(sets, [&](int64_t slab, int64_t sample, int64_t channel) {
    const T* from = x + slab * inner;
    const double m = mean[sets.of(sample, channel)];
    if (inner == 1) {
      const double d = convert<double>(from[0]) - m;
      part[slab] = d * d;
      return;
    }
    const C rounded = static_cast<C>(m);
    part[slab] = sum_lanes<C>(inner, [&](int64_t j, int64_t count) {
      const Lanes<C> d = load(from + j, count, rounded) - Lanes<C>(rounded);
      return d * d;
    });
  });
  add_up_sets(sets, part, one, variance);
  for (int64_t set = 0; set < sets.count(); ++set) variance[set] /= n;
}

template <class T, class W>
void channel_norm_forward(const ChannelSets& sets, const T* x, const compute_t<T>* mean, const compute_t<T>* inv_std,
                          const W* w, const W* b, T* y) {
  using C = compute_t<T>;
  const int64_t inner = sets.inner;
  for_slabs(sets, [&](int64_t slab, int64_t sample, int64_t channel) {
    const int64_t set = sets.of(sample, channel);
    const C m = mean[set], scale = w ? inv_std[set] * convert<C>(w[channel]) : inv_std[set];
    const C shift = b ? convert<C>(b[channel]) : C(0);
    const T* from = x + slab * inner;
    T* to = y + slab * inner;
    if (inner == 1) {
      to[0] = convert<T>((convert<C>(from[0]) - m) * scale + shift);
      return;
    }
    for_lanes<C>(inner, [&](int64_t j, int64_t count) {
      store((load(from + j, count) - Lanes<C>(m)) * Lanes<C>(scale) + Lanes<C>(shift), to + j, count);
    });
  });
}

template <class T, class W>
void channel_norm_backward(const ChannelSets& sets, const T* x, const compute_t<T>* mean, const compute_t<T>* inv_std,
                           const W* w, const T* g, bool fixed, T* dx, W* dw, W* db) {
  using C = compute_t<T>;
  const int64_t inner = sets.inner, slabs = sets.batch * sets.channels;
  const bool moves = dx && !fixed;  // the statistics move with x
  auto* sum_g = scratch<double, FirstTag>(slabs);
  auto* sum_gx = scratch<double, SecondTag>(slabs);
  if (moves || dw || db)
    for_slabs(sets, [&](int64_t slab, int64_t sample, int64_t channel) {
      const int64_t set = sets.of(sample, channel);
      const C m = mean[set], inv = inv_std[set];
      const T *from = x + slab * inner, *up = g + slab * inner;
      if (inner == 1) {
        sum_g[slab] = convert<double>(up[0]);
        sum_gx[slab] = static_cast<double>(convert<C>(up[0]) * ((convert<C>(from[0]) - m) * inv));
        return;
      }
      sum_g[slab] = sum_lanes<C>(inner, [&](int64_t j, int64_t count) { return load(up + j, count); });
      sum_gx[slab] = sum_lanes<C>(inner, [&](int64_t j, int64_t count) {
        return load(up + j, count) * (load(from + j, count, m) - Lanes<C>(m)) * Lanes<C>(inv);
      });
    });
  if (dw) add_up_channels(sets, sum_gx, dw);
  if (db) add_up_channels(sets, sum_g, db);
  if (!dx) return;
  const auto weight = [&](int64_t c) { return w ? convert<double>(w[c]) : 1.0; };
  const auto n = static_cast<double>(sets.elements());
  double* mean_g = scratch<double, SetTag>(2 * sets.count());
  double* mean_gx = mean_g + sets.count();
  if (moves) {
    add_up_sets(sets, sum_g, weight, mean_g);
    add_up_sets(sets, sum_gx, weight, mean_gx);
  }
  for_slabs(sets, [&](int64_t slab, int64_t sample, int64_t channel) {
    const int64_t set = sets.of(sample, channel);
    const C m = mean[set], inv = inv_std[set], scale = w ? inv * convert<C>(w[channel]) : inv;
    const T *from = x + slab * inner, *up = g + slab * inner;
    T* to = dx + slab * inner;
    if (!moves) {
      for_lanes<C>(inner,
                   [&](int64_t j, int64_t count) { store(load(up + j, count) * Lanes<C>(scale), to + j, count); });
      return;
    }
    const C a = inv * static_cast<C>(mean_g[set] / n), r = inv * inv * static_cast<C>(mean_gx[set] / n);
    if (inner == 1) {
      to[0] = convert<T>(convert<C>(up[0]) * scale - a - (convert<C>(from[0]) - m) * r);
      return;
    }
    for_lanes<C>(inner, [&](int64_t j, int64_t count) {
      const Lanes<C> d = load(from + j, count) - Lanes<C>(m);
      store(load(up + j, count) * Lanes<C>(scale) - Lanes<C>(a) - d * Lanes<C>(r), to + j, count);
    });
  });
}

template void channel_moments<float>(const ChannelSets&, const float*, double*, double*);
template void channel_moments<double>(const ChannelSets&, const double*, double*, double*);
template void channel_moments<bf16>(const ChannelSets&, const bf16*, double*, double*);

#define TAPESTRY_CHANNEL_NORM(T, W)                                                                                 \
  template void channel_norm_forward<T, W>(const ChannelSets&, const T*, const compute_t<T>*, const compute_t<T>*,  \
                                           const W*, const W*, T*);                                                 \
  template void channel_norm_backward<T, W>(const ChannelSets&, const T*, const compute_t<T>*, const compute_t<T>*, \
                                            const W*, const T*, bool, T*, W*, W*);
TAPESTRY_CHANNEL_NORM(float, float)
TAPESTRY_CHANNEL_NORM(double, double)
TAPESTRY_CHANNEL_NORM(bf16, bf16)
TAPESTRY_CHANNEL_NORM(bf16, float)
#undef TAPESTRY_CHANNEL_NORM

}  // namespace tapestry::kernels
