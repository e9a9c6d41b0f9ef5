// im2col.cpp: both directions walk the same segments, runs of pixels of one row of y.
// Next: conv.cpp.
#include "im2col.h"

#include <algorithm>

namespace tapestry::kernels {
namespace {

/// n neighbouring pixels of one row of y and what a tap reads for them: nothing for the first `before`, then `inside`
/// elements of x from `source` on, stride_w apart, and nothing for the rest.
struct Segment {
  int64_t row, column;  // in the columns
  int64_t source;       // in x
  int64_t n, before, inside;
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class F>
void for_segments(const ConvShape& s, int64_t channels, PixelRange range, int64_t sample_stride, F f) {
  if (range.count == 0) return;
  const int64_t sample0 = range.first / s.pixels(), row0 = range.first % s.pixels() / s.out_w,
                column0 = range.first % s.out_w;
  int64_t row = 0;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t k = 0; k < s.kh; ++k)
      for (int64_t l = 0; l < s.kw; ++l, ++row) {
        const int64_t shift_h = k * s.dilation_h - s.pad_h, shift_w = l * s.dilation_w - s.pad_w;
        // Pixels of a row whose source is inside: [low, high).
        const int64_t low = shift_w >= 0 ? 0 : ceil_div(-shift_w, s.stride_w),
                      high = s.w <= shift_w ? 0 : ceil_div(s.w - shift_w, s.stride_w);
        int64_t plane = sample0 * sample_stride + c * s.plane(), i = row0, j = column0;
        for (int64_t done = 0; done < range.count;) {
          const int64_t n = std::min(s.out_w - j, range.count - done), y = i * s.stride_h + shift_h;
          const bool outside = y < 0 || y >= s.h;
          const int64_t from = outside ? j + n : std::clamp(low, j, j + n), to = std::clamp(high, from, j + n);
          f(Segment{row, done, plane + y * s.w + from * s.stride_w + shift_w, n, from - j, to - from});
          done += n;
          j = 0;
          if (++i == s.out_h) i = 0, plane += sample_stride;
        }
      }
}

}  // namespace

template <class T>
void im2col(const ConvShape& s, int64_t channels, PixelRange range, const T* x, int64_t sample_stride,
            compute_t<T>* columns) {
  using C = compute_t<T>;
  for_segments(s, channels, range, sample_stride, [&](const Segment& part) {
    C* to = columns + part.row * range.count + part.column;
    const T* from = x + part.source;  // read where part.inside > 0 only
    C* const end = to + part.n;
    to = std::fill_n(to, part.before, C(0));
    if (s.stride_w == 1)
      for (int64_t j = 0; j < part.inside; ++j) to[j] = convert<C>(from[j]);
    else
      for (int64_t j = 0; j < part.inside; ++j) to[j] = convert<C>(from[j * s.stride_w]);
    std::fill(to + part.inside, end, C(0));
  });
}

template <class C>
void col2im(const ConvShape& s, int64_t channels, PixelRange range, const C* columns, C* x, int64_t sample_stride) {
  for_segments(s, channels, range, sample_stride, [&](const Segment& part) {
    const C* from = columns + part.row * range.count + part.column + part.before;
    C* to = x + part.source;
    if (s.stride_w == 1)
      for (int64_t j = 0; j < part.inside; ++j) to[j] += from[j];
    else
      for (int64_t j = 0; j < part.inside; ++j) to[j * s.stride_w] += from[j];
  });
}

template void im2col<float>(const ConvShape&, int64_t, PixelRange, const float*, int64_t, float*);
template void im2col<double>(const ConvShape&, int64_t, PixelRange, const double*, int64_t, double*);
template void im2col<bf16>(const ConvShape&, int64_t, PixelRange, const bf16*, int64_t, float*);
template void col2im<float>(const ConvShape&, int64_t, PixelRange, const float*, float*, int64_t);
template void col2im<double>(const ConvShape&, int64_t, PixelRange, const double*, double*, int64_t);

}  // namespace tapestry::kernels
