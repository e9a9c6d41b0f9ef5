// Rotary position embeddings (Su et al. 2021): their table, and the rotation, whose derivative is the rotation back.
// Not here: which frequencies long contexts take (nn/rope.h). Used on q and k before attention.cpp.
// Next: attention.cpp.
#include "kernels/rope.h"

#include <cmath>
#include <utility>
#include <vector>

#include "../autograd/function.h"
#include "error_text.h"
#include "ops.h"
#include "rows.h"

namespace tapestry {
namespace {

/// x (B, H, T, Dh), (B, T, Dh) or (T, Dh) as heads.
template <class T>
kernels::HeadRows<T> heads(const Tensor& x, T* data) {
  const Strides& s = x.strides();
  const int r = x.dim();
  return {data, r > 2 ? s[0] : 0, r > 3 ? s[1] : 0, s[r - 2]};
}

/// Memory in the order of x's dims, so that a view of (B, T, H·Dh) stays one.
Tensor empty_like_heads(const Tensor& x) {
  const bool heads_inside = x.dim() == 4 && x.strides()[1] < x.strides()[2];
  return heads_inside ? detail::empty_heads(x.shape(), x.dtype()) : empty(x.shape(), x.dtype());
}

struct Rope {
  static constexpr std::string_view name = "rope",
                                    formula = "(a, b) → (a cos − b sin, a sin + b cos) at angle p θ^(−2i/r)",
                                    vjp = "g rotated by the opposite angle";
  RopeLayout layout;
  bool inverse = false;

  Tensor forward(Context& c, const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions) const {
    c.save(cos, sin, positions);
    const int r = x.dim();
    const kernels::RopeSize size{
        .batch = r > 2 ? x.size(0) : 1,
        .heads = r > 3 ? x.size(1) : 1,
        .len = x.size(-2),
        .width = x.size(-1),
        .pairs = cos.size(1),
        .layout = layout == RopeLayout::adjacent ? kernels::RopePairs::adjacent : kernels::RopePairs::half};
    const Tensor from = detail::contiguous_rows(x), y = empty_like_heads(from);
    const Tensor cosines = dense(cos), sines = dense(sin), at = positions.defined() ? dense(positions) : positions;
    const int64_t batch_stride = at.defined() && at.dim() == 2 && at.size(0) > 1 ? at.size(1) : 0;
    detail::dispatch_floating(x.dtype(), [&]<class T> {
      kernels::rope<T>(size, heads(from, from.data<T>()), cosines.data<compute_t<T>>(), sines.data<compute_t<T>>(),
                       at.defined() ? at.data<int64_t>() : nullptr, batch_stride, inverse,
                       heads(y, detail::fresh<T>(y)));
    });
    return y;
  }

  Grads backward(Context& c, const Tensor& g) const {
    return {apply(Rope{layout, !inverse}, g, c.saved(0), c.saved(1), c.saved(2)), {}, {}, {}};
  }
};

void check(const Tensor& x, const RopeTable& table) {
  detail::require_floating("rope", x);
  const Tensor &cos = table.cos, &sin = table.sin;
  detail::require_defined("rope", cos);
  detail::require_defined("rope", sin);
  if (cos.dim() != 2 || cos.shape() != sin.shape())
    fail<ShapeError>("rope: cos is {}, sin is {}; both must be (positions, r/2): see rope_table", cos.describe(),
                     sin.describe());
  if (x.dim() < 2 || x.dim() > 4 || x.size(-1) < 2 * cos.size(1))
    fail<ShapeError>(
        "rope: x is {}, the table {} rotates {} entries; x must be (B, H, T, Dh), (B, T, Dh) or (T, Dh) with Dh ≥ {}",
        x.describe(), cos.describe(), 2 * cos.size(1), 2 * cos.size(1));
  const DType wanted = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  if (cos.dtype() != wanted || sin.dtype() != wanted)
    fail<DTypeError>("rope: x is {}, the table is {}; it must be {}: see rope_table", x.describe(), cos.describe(),
                     name_of(wanted));
  if (cos.requires_grad() || sin.requires_grad())
    fail<AutogradError>("rope: the table requires a gradient, but rope gives none to it; detach() it");
}

void check_positions(const Tensor& x, int64_t rows, const Tensor& positions) {
  const int64_t len = x.size(-2), batch = x.dim() > 2 ? x.size(0) : 1;
  if (!positions.defined()) {
    if (len > rows) fail<IndexError>("rope: x is {}: {} positions, the table has {}", x.describe(), len, rows);
    return;
  }
  if (positions.dtype() != DType::i64)
    fail<DTypeError>("rope: positions is {}; it must be i64: convert with to(x, DType::i64)", positions.describe());
  const bool fits =
      positions.dim() == 1 || (positions.dim() == 2 && (positions.size(0) == batch || positions.size(0) == 1));
  if (!fits || positions.size(-1) != len)
    fail<ShapeError>("rope: positions is {}, x is {}; it must be [{}] or [{}, {}]", positions.describe(), x.describe(),
                     len, batch, len);
  const Tensor p = dense(positions);
  for (int64_t i = 0; i < p.numel(); ++i) {
    const int64_t value = p.data<int64_t>()[i];
    if (value >= 0 && value < rows) continue;
    const Dims at = p.dim() == 1 ? Dims{i} : Dims{i / len, i % len};
    fail<IndexError>("rope: position {} at {} is out of range for a table of {} positions", value, to_string(at), rows);
  }
}

RopeTable empty_table(int64_t max_positions, int64_t pairs, DType dtype) {
  if (max_positions < 0) fail<ValueError>("rope_table: max_positions is {}; it must be 0 or more", max_positions);
  if (dtype != DType::f32 && dtype != DType::f64)
    fail<DTypeError>("rope_table: dtype is {}; it must be f32 (which bf16 activations use too) or f64", name_of(dtype));
  return {empty({max_positions, pairs}, dtype), empty({max_positions, pairs}, dtype)};
}

RopeTable filled(RopeTable table, std::span<const double> frequencies, double factor) {
  const int64_t positions = table.cos.size(0), pairs = table.cos.size(1);
  const auto fill = [&]<class T>(T* cos, T* sin) {
    kernels::rope_table(positions, pairs, frequencies.data(), cos, sin, factor);
  };
  if (table.cos.dtype() == DType::f32)
    fill(detail::fresh<float>(table.cos), detail::fresh<float>(table.sin));
  else
    fill(detail::fresh<double>(table.cos), detail::fresh<double>(table.sin));
  return table;
}

}  // namespace

RopeTable rope_table(int64_t max_positions, int64_t rotary_dim, double theta, DType dtype) {
  if (rotary_dim < 0 || rotary_dim % 2 != 0)
    fail<ValueError>("rope_table: rotary_dim is {}; pairs are rotated, so it must be even", rotary_dim);
  if (!(theta > 0)) fail<ValueError>("rope_table: theta is {}; it must be positive", theta);
  // Before the frequencies: a size that cannot be is an error at once.
  RopeTable table = empty_table(max_positions, rotary_dim / 2, dtype);
  std::vector<double> frequencies;
  for (int64_t i = 0; i < rotary_dim; i += 2)
    frequencies.push_back(std::pow(theta, -static_cast<double>(i) / static_cast<double>(rotary_dim)));
  return filled(std::move(table), frequencies, 1);
}

RopeTable rope_table(int64_t max_positions, std::span<const double> frequencies, double factor, DType dtype) {
  for (size_t i = 0; i < frequencies.size(); ++i)
    if (!std::isfinite(frequencies[i]))
      fail<ValueError>("rope_table: frequency {} is {}; it must be finite", i, frequencies[i]);
  if (!std::isfinite(factor)) fail<ValueError>("rope_table: factor is {}; it must be finite", factor);
  return filled(empty_table(max_positions, static_cast<int64_t>(frequencies.size()), dtype), frequencies, factor);
}

Tensor rope(const Tensor& x, const RopeTable& table, const Tensor& positions, RopeLayout layout) {
  check(x, table);
  check_positions(x, table.cos.size(0), positions);
  return apply(Rope{layout}, x, table.cos, table.sin, positions);
}

}  // namespace tapestry
