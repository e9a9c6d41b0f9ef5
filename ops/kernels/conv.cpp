// conv.cpp: conv.h as products of weights and columns, a tile of pixels at a time.
// Not a direct convolution: depthwise ones (one channel a group) pay for their columns. Next: pool.cpp.
#include "conv.h"

#include <algorithm>

#include "../../autograd/parallel.h"
#include "gemm.h"
#include "scratch.h"

namespace tapestry::kernels {
namespace {

// Note [Tiles of pixels]
// The pixels of all samples of y, laid end to end, are cut into tiles whose columns stay in the cache; small planes share
// a tile, large ones take several. A tile is one matrix product on one thread. Tiles depend on the sizes alone.
constexpr int64_t tile_elements = int64_t{1} << 16, least_pixels = 64, wanted_tiles = 8;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t tile_pixels(const ConvShape& s) {
  const int64_t fits = tile_elements / std::max<int64_t>(s.taps(), 1),
                enough_tiles = ceil_div(s.batch * s.pixels(), wanted_tiles);
  return std::max(std::min(fits, enough_tiles), least_pixels);
}

// Items a piece of a parallel loop holds, so that it is worth handing out.
int64_t grain(int64_t macs) { return std::max<int64_t>(1, (int64_t{1} << 18) / std::max<int64_t>(macs, 1)); }

struct ColumnsTag;
struct ProductTag;
struct WeightTag;
struct PlanesTag;
struct PartialsTag;

// x itself, or widened into scratch of the calling thread.
template <class T>
const compute_t<T>* widened(const T* x, int64_t n) {
  if constexpr (std::is_same_v<T, compute_t<T>>) {
    return x;
  } else {
    auto* wide = scratch<compute_t<T>, WeightTag>(n);
    for (int64_t i = 0; i < n; ++i) wide[i] = convert<compute_t<T>>(x[i]);
    return wide;
  }
}

// f(sample, pixel, at, n) for the runs of pixels of one sample in a range; `at` counts from the start of the range.
template <class F>
void for_samples(const ConvShape& s, PixelRange range, F f) {
  for (int64_t at = 0; at < range.count;) {
    const int64_t q = range.first + at, pixel = q % s.pixels(), n = std::min(s.pixels() - pixel, range.count - at);
    f(q / s.pixels(), pixel, at, n);
    at += n;
  }
}

// rows (out, count): the pixels of a range of all planes of one group of y.
template <class T>
void gather_pixels(const ConvShape& s, int64_t group, PixelRange range, const T* y, compute_t<T>* rows) {
  for_samples(s, range, [&](int64_t sample, int64_t pixel, int64_t at, int64_t n) {
    const T* from = y + (sample * s.groups + group) * s.out * s.pixels() + pixel;
    for (int64_t o = 0; o < s.out; ++o, from += s.pixels()) {
      compute_t<T>* to = rows + o * range.count + at;
      for (int64_t j = 0; j < n; ++j) to[j] = convert<compute_t<T>>(from[j]);
    }
  });
}

// A window of one element at stride 1: the planes are the columns.
bool is_matrix_product(const ConvShape& s) {
  return s.window() == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_h == 0 && s.pad_w == 0 && s.h == s.out_h &&
         s.w == s.out_w;
}

// y (batch, groups·rows, pixels) = bias + a[group] x (batch, groups·k, pixels).
template <class T>
void product_of_planes(const ConvShape& s, int64_t rows, int64_t k, Matrix<T> a, const T* x, const T* bias, T* y) {
  const int64_t n = s.pixels(), channels = s.groups * rows;
  if (bias)
    for (int64_t i = 0; i < s.batch * channels; ++i) std::fill_n(y + i * n, n, bias[i % channels]);
  gemm_batched<T, T>({{s.batch, s.groups}, {0, s.out * s.in}, {s.groups * k * n, k * n}, {channels * n, rows * n}},
                     rows, n, k, 1, a, {x, n, 1}, bias ? 1 : 0, y, n);
}

}  // namespace

template <class T>
void conv_forward(const ConvShape& s, const T* x, const T* weight, const T* bias, T* y) {
  using C = compute_t<T>;
  if (is_matrix_product(s)) return product_of_planes<T>(s, s.out, s.in, {weight, s.in, 1}, x, bias, y);
  const int64_t total = s.batch * s.pixels(), tile = tile_pixels(s), tiles = ceil_div(total, tile), taps = s.taps();
  const C* w = widened(weight, s.groups * s.out * taps);
  parallel_for(s.groups * tiles, grain(s.out * tile * taps), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t group = item / tiles, first = item % tiles * tile;
      const PixelRange range{first, std::min(tile, total - first)};
      C* columns = scratch<C, ColumnsTag>(taps * tile);
      C* product = scratch<C, ProductTag>(s.out * tile);
      im2col(s, s.in, range, x + group * s.in * s.plane(), s.groups * s.in * s.plane(), columns);
      gemm_block(false, false, s.out, range.count, taps, C(1), w + group * s.out * taps, taps, columns, range.count,
                 C(0), product, range.count);
      for_samples(s, range, [&](int64_t sample, int64_t pixel, int64_t at, int64_t n) {
        for (int64_t o = 0; o < s.out; ++o) {
          const int64_t channel = group * s.out + o;
          const C add = bias ? convert<C>(bias[channel]) : C(0);
          const C* from = product + o * range.count + at;
          T* to = y + (sample * s.groups * s.out + channel) * s.pixels() + pixel;
          for (int64_t j = 0; j < n; ++j) to[j] = convert<T>(from[j] + add);
        }
      });
    }
  });
}

template <class T>
void conv_input_gradient(const ConvShape& s, const T* g, const T* weight, const T* bias, T* dx) {
  using C = compute_t<T>;
  if (is_matrix_product(s)) return product_of_planes<T>(s, s.in, s.out, {weight, 1, s.in}, g, bias, dx);
  // Windows overlap, so an item owns whole planes: some samples of some channels of one group.
  const int64_t tile = tile_pixels(s), taps = s.taps(), window = s.window(), plane = s.plane();
  const int64_t samples =
      std::clamp<int64_t>(tile / std::max<int64_t>(s.pixels(), 1), 1, std::max<int64_t>(s.batch, 1));
  const int64_t runs = ceil_div(s.batch, samples);
  const int64_t cuts = std::clamp<int64_t>(wanted_tiles / std::max<int64_t>(runs * s.groups, 1), 1,
                                           std::max<int64_t>(taps / least_pixels, 1));
  const int64_t channels = std::max<int64_t>(ceil_div(s.in, cuts), 1), parts = ceil_div(s.in, channels);
  const C* w = widened(weight, s.groups * s.out * taps);
  parallel_for(
      runs * s.groups * parts, grain(samples * s.pixels() * s.out * channels * window),
      [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t first_sample = item / (s.groups * parts) * samples, group = item / parts % s.groups,
                        channel = item % parts * channels;
          const int64_t n_samples = std::min(samples, s.batch - first_sample), n = std::min(channels, s.in - channel);
          const int64_t all = s.groups * s.in, place = (first_sample * all + group * s.in + channel) * plane;
          // The planes are added up where they belong, or in a wider copy.
          constexpr bool in_place = std::is_same_v<T, C>;
          const int64_t sample_stride = (in_place ? all : n) * plane;
          C* planes = nullptr;
          if constexpr (in_place)
            planes = dx + place;
          else
            planes = scratch<C, PlanesTag>(n_samples * sample_stride);
          for (int64_t b = 0; b < n_samples; ++b)
            for (int64_t c = 0; c < n; ++c)
              std::fill_n(planes + b * sample_stride + c * plane, plane,
                          bias ? convert<C>(bias[group * s.in + channel + c]) : C(0));
          const int64_t last = (first_sample + n_samples) * s.pixels();
          for (int64_t first = first_sample * s.pixels(); first < last; first += tile) {
            const PixelRange range{first, std::min(tile, last - first)};
            C* gs = scratch<C, ProductTag>(s.out * tile);
            C* columns = scratch<C, ColumnsTag>(n * window * tile);
            gather_pixels(s, group, range, g, gs);
            gemm_block(true, false, n * window, range.count, s.out, C(1), w + group * s.out * taps + channel * window,
                       taps, gs, range.count, C(0), columns, range.count);
            const PixelRange own{range.first - first_sample * s.pixels(), range.count};
            col2im(s, n, own, columns, planes, sample_stride);
          }
          if constexpr (!in_place)
            for (int64_t b = 0; b < n_samples; ++b)
              for (int64_t i = 0; i < n * plane; ++i)
                dx[place + b * all * plane + i] = convert<T>(planes[b * sample_stride + i]);
        }
      });
}

template <class T>
void conv_weight_gradient(const ConvShape& s, const T* x, const T* g, T* dweight) {
  using C = compute_t<T>;
  const int64_t total = s.batch * s.pixels(), tile = tile_pixels(s), tiles = ceil_div(total, tile), taps = s.taps();
  const int64_t size = s.groups * s.out * taps;
  // A block of tiles adds up a partial sum; fewer blocks where the partial sums are large.
  const int64_t wanted = std::clamp<int64_t>((int64_t{1} << 23) / std::max<int64_t>(size, 1), 4, 16);
  const int64_t per_block = std::max<int64_t>(ceil_div(tiles, wanted), 1), blocks = ceil_div(tiles, per_block);
  C* const partials = scratch<C, PartialsTag>(blocks * size);
  parallel_for(blocks * s.groups, grain(per_block * tile * s.out * taps), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t block = item / s.groups, group = item % s.groups;
      C* sum = partials + block * size + group * s.out * taps;
      for (int64_t t = block * per_block; t < std::min((block + 1) * per_block, tiles); ++t) {
        const PixelRange range{t * tile, std::min(tile, total - t * tile)};
        C* columns = scratch<C, ColumnsTag>(taps * tile);
        C* gs = scratch<C, ProductTag>(s.out * tile);
        im2col(s, s.in, range, x + group * s.in * s.plane(), s.groups * s.in * s.plane(), columns);
        gather_pixels(s, group, range, g, gs);
        gemm_block(false, true, s.out, taps, range.count, C(1), gs, range.count, columns, range.count,
                   C(t == block * per_block ? 0 : 1), sum, taps);
      }
    }
  });
  parallel_for(size, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double sum = 0;
      for (int64_t block = 0; block < blocks; ++block) sum += static_cast<double>(partials[block * size + i]);
      dweight[i] = convert<T>(static_cast<C>(sum));
    }
  });
}

#define TAPESTRY_CONV(T)                                                                    \
  template void conv_forward<T>(const ConvShape&, const T*, const T*, const T*, T*);        \
  template void conv_input_gradient<T>(const ConvShape&, const T*, const T*, const T*, T*); \
  template void conv_weight_gradient<T>(const ConvShape&, const T*, const T*, T*);
TAPESTRY_CONV(float)
TAPESTRY_CONV(double)
TAPESTRY_CONV(bf16)
#undef TAPESTRY_CONV

}  // namespace tapestry::kernels
