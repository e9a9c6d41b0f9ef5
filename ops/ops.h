// The API page: every public op, one declaration and one comment. The derivative of each stands beside the code that computes it (see the .cpp
// of its family), and all of them in docs/ops.md.
// Not here: making tensors (autograd/factory.h), what a tensor knows of itself (autograd/tensor.h).
//
// Shapes: B batch, T time, D width, H heads, Dh head width, V vocabulary. Two tensors of an op have one dtype (DTypeError otherwise; convert with
// to()) and broadcast as in NumPy (ShapeError otherwise). dims may be negative. Nothing is written in place.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "../autograd/dtype.h"
#include "../autograd/factory.h"
#include "../autograd/tensor.h"

namespace tapestry {

// ---------------------------------------------------------------- pointwise (ops/pointwise*.cpp)

Tensor neg(const Tensor& x);    ///< −x
Tensor abs(const Tensor& x);    ///< |x|; derivative 0 at 0
Tensor sign(const Tensor& x);   ///< −1, 0 or 1; derivative 0
Tensor exp(const Tensor& x);    ///< eˣ
Tensor exp2(const Tensor& x);   ///< 2ˣ
Tensor expm1(const Tensor& x);  ///< eˣ − 1
Tensor log(const Tensor& x);    ///< ln x
Tensor log2(const Tensor& x);
Tensor log10(const Tensor& x);
Tensor log1p(const Tensor& x);       ///< ln(1 + x)
Tensor sqrt(const Tensor& x);        ///< √x; derivative +inf at 0, but an upstream 0 stays 0
Tensor rsqrt(const Tensor& x);       ///< 1/√x
Tensor square(const Tensor& x);      ///< x²
Tensor reciprocal(const Tensor& x);  ///< 1/x
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor asin(const Tensor& x);
Tensor acos(const Tensor& x);
Tensor atan(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor asinh(const Tensor& x);
Tensor acosh(const Tensor& x);
Tensor atanh(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor erf(const Tensor& x);         ///< 2/√π ∫₀ˣ e^(−t²) dt
Tensor erfc(const Tensor& x);        ///< 1 − erf x, accurate in the tail
Tensor sigmoid(const Tensor& x);     ///< 1/(1 + e⁻ˣ)
Tensor logsigmoid(const Tensor& x);  ///< ln sigmoid(x)
Tensor softplus(const Tensor& x);    ///< ln(1 + eˣ)
Tensor relu(const Tensor& x);        ///< max(x, 0); derivative 0 at 0
Tensor leaky_relu(const Tensor& x, double slope = 0.01);
Tensor soft_cap(const Tensor& x,
                double cap);  ///< cap·tanh(x/cap); ValueError unless the cap is positive and finite. Bello et al. 2016
Tensor elu(const Tensor& x, double alpha = 1);   ///< x where x > 0, else α(eˣ − 1); Clevert et al. 2015
Tensor celu(const Tensor& x, double alpha = 1);  ///< max(x, 0) + min(α(e^(x/α) − 1), 0); Barron 2017
Tensor selu(const Tensor& x);                    ///< scaled elu; Klambauer et al. 2017
Tensor relu6(const Tensor& x);                   ///< min(max(x, 0), 6)
Tensor hardtanh(const Tensor& x, double low = -1, double high = 1);  ///< clamp whose derivative is 0 at the bounds
Tensor hardsigmoid(const Tensor& x);                                 ///< relu6(x + 3)/6
Tensor hardswish(const Tensor& x);                                   ///< x·relu6(x + 3)/6; Howard et al. 2019
Tensor softsign(const Tensor& x);                                    ///< x/(1 + |x|)
Tensor mish(const Tensor& x);                                        ///< x·tanh(softplus(x)); Misra 2019
Tensor softshrink(const Tensor& x, double lambda = 0.5);             ///< x moved towards 0 by λ, 0 within
Tensor hardshrink(const Tensor& x, double lambda = 0.5);             ///< x, 0 where |x| ≤ λ
Tensor tanhshrink(const Tensor& x);                                  ///< x − tanh x
Tensor silu(const Tensor& x);                                        ///< x·sigmoid(x); Elfwing et al. 2017
Tensor gelu(const Tensor& x);                                        ///< x·Φ(x) by erf; Hendrycks & Gimpel 2016
Tensor gelu_tanh(const Tensor& x);                                   ///< x/2·(1 + tanh(√(2/π)(x + 0.044715x³)))
Tensor relu_squared(const Tensor& x);                                ///< max(x, 0)²; So et al. 2021
/// min(max(x, low), high); the gradient passes at the bounds. NaN stays NaN. ValueError unless low ≤ high.
Tensor clamp(const Tensor& x, double low, double high);
Tensor floor(const Tensor& x);  ///< derivative 0
Tensor ceil(const Tensor& x);   ///< derivative 0
Tensor round(const Tensor& x);  ///< half to even; derivative 0
Tensor trunc(const Tensor& x);  ///< towards 0; derivative 0
Tensor frac(const Tensor& x);   ///< x − trunc x; derivative 1
/// ln(x/(1 − x)), the inverse of sigmoid.
Tensor logit(const Tensor& x);
/// Replaces NaN, +inf and −inf; the gradient of a replaced element is 0.
Tensor nan_to_num(const Tensor& x, double nan = 0, double posinf = 0, double neginf = 0);
/// xᵖ; x⁰ is 1 with derivative 0.
Tensor pow(const Tensor& x, double p);
/// aᵇ with both derivatives; d/db at a = 0, b > 0 is 0.
Tensor pow(const Tensor& a, const Tensor& b);

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);      ///< floating dtypes only
Tensor maximum(const Tensor& a, const Tensor& b);  ///< ties share the gradient in halves; NaN wins
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor atan2(const Tensor& y, const Tensor& x);      ///< the angle of (x, y); derivative 0 at the origin
Tensor hypot(const Tensor& a, const Tensor& b);      ///< √(a² + b²) without overflow; derivative 0 at the origin
Tensor fmod(const Tensor& a, const Tensor& b);       ///< a − b·trunc(a/b): the sign of a; i64, too
Tensor remainder(const Tensor& a, const Tensor& b);  ///< a − b·floor(a/b): the sign of b, as in Python; i64, too
Tensor floor_divide(const Tensor& a,
                    const Tensor& b);            ///< floor(a/b); i64, too (ValueError for a zero divisor); derivative 0
Tensor xlogy(const Tensor& a, const Tensor& b);  ///< a·ln b, 0 where a = 0
Tensor logaddexp(const Tensor& a, const Tensor& b);  ///< ln(eᵃ + eᵇ) without overflow
Tensor copysign(const Tensor& a, const Tensor& b);   ///< |a| with the sign of b
/// a + w·(b − a), all three with gradients.
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
Tensor lerp(const Tensor& a, const Tensor& b, double weight);
/// x where x > 0, else weight·x; weight holds one number or one per channel (dim 1).
Tensor prelu(const Tensor& x, const Tensor& weight);
/// g·d, but 0 where g is 0 whatever d is: keeps masked gradients 0 beside an infinite factor.
Tensor mul0(const Tensor& g, const Tensor& d);

// A number operand takes the tensor's dtype and is an attribute of the op, not a tensor. i64 takes whole numbers only (DTypeError otherwise).
Tensor add(const Tensor& a, double b);
Tensor sub(const Tensor& a, double b);
Tensor sub(double a, const Tensor& b);
Tensor mul(const Tensor& a, double b);
Tensor div(const Tensor& a, double b);
Tensor div(double a, const Tensor& b);
Tensor maximum(const Tensor& a, double b);
Tensor minimum(const Tensor& a, double b);
Tensor fmod(const Tensor& a, double b);
Tensor remainder(const Tensor& a, double b);
Tensor floor_divide(const Tensor& a, double b);

inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator+(const Tensor& a, double b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, double b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, double b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, double b) { return div(a, b); }
inline Tensor operator+(double a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(double a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(double a, const Tensor& b) { return mul(b, a); }
inline Tensor operator/(double a, const Tensor& b) { return div(a, b); }
// Compound operators rebind the handle: y *= 2 means y = y * 2.
template <class B>
Tensor& operator+=(Tensor& a, const B& b) {
  return a = a + b;
}
template <class B>
Tensor& operator-=(Tensor& a, const B& b) {
  return a = a - b;
}
template <class B>
Tensor& operator*=(Tensor& a, const B& b) {
  return a = a * b;
}
template <class B>
Tensor& operator/=(Tensor& a, const B& b) {
  return a = a / b;
}

// Comparisons give bool tensors and have no derivative. With NaN all but != are false.
Tensor equal(const Tensor& a, const Tensor& b);
Tensor not_equal(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);
Tensor equal(const Tensor& a, double b);
Tensor not_equal(const Tensor& a, double b);
Tensor less(const Tensor& a, double b);
Tensor less_equal(const Tensor& a, double b);
Tensor greater(const Tensor& a, double b);
Tensor greater_equal(const Tensor& a, double b);
inline Tensor operator<(const Tensor& a, const Tensor& b) { return less(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return less_equal(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return greater(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return greater_equal(a, b); }
inline Tensor operator==(const Tensor& a, const Tensor& b) { return equal(a, b); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return not_equal(a, b); }
inline Tensor operator<(const Tensor& a, double b) { return less(a, b); }
inline Tensor operator<=(const Tensor& a, double b) { return less_equal(a, b); }
inline Tensor operator>(const Tensor& a, double b) { return greater(a, b); }
inline Tensor operator>=(const Tensor& a, double b) { return greater_equal(a, b); }
inline Tensor operator==(const Tensor& a, double b) { return equal(a, b); }
inline Tensor operator!=(const Tensor& a, double b) { return not_equal(a, b); }
Tensor isnan(const Tensor& x);
Tensor isfinite(const Tensor& x);
Tensor isinf(const Tensor& x);
/// |a − b| ≤ atol + rtol·|b|, as bool; equal infinities are close, NaN is close to nothing.
Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8);
bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8);  ///< isclose everywhere
Tensor logical_not(const Tensor& x);                                                      ///< bool
Tensor logical_and(const Tensor& a, const Tensor& b);                                     ///< bool
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_xor(const Tensor& a, const Tensor& b);

/// a where condition (bool) is true, else b; all three broadcast. The branch not taken gets gradient exactly 0.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, double b);
Tensor where(const Tensor& condition, double a, const Tensor& b);
/// `value` where mask is true, else x.
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);
/// The elements as another dtype; to bf16 rounds once, to bool is != 0, to i64 truncates (what lies past its ends becomes them, NaN 0). The gradient is converted back.
Tensor to(const Tensor& x, DType dtype);
/// The values of x with the gradient of y passed through unchanged to y: y + (x − y) without its derivative; shapes and dtypes equal.
/// The straight-through estimator of Bengio et al. 2013: straight_through(round(y), y).
Tensor straight_through(const Tensor& x, const Tensor& y);

// ---------------------------------------------------------------- views and shape (ops/views.cpp)
// Views share storage: reshape (where strides allow), view, flatten, transpose, permute, mT, expand, squeeze, unsqueeze, slice, select, split, chunk, unbind,
// flip, movedim, diagonal, unfold, as_strided, meshgrid.

/// The elements in row-major order under a new shape, one size may be −1. A view where the strides allow it, else a copy.
Tensor reshape(const Tensor& x, const Shape& shape);
/// As reshape, but ShapeError where a copy would be needed.
Tensor view(const Tensor& x, const Shape& shape);
/// Dims first … last become one.
Tensor flatten(const Tensor& x, int64_t first = 0, int64_t last = -1);
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
Tensor permute(const Tensor& x, const Dims& dims);
Tensor mT(const Tensor& x);  ///< the last two dims swapped
/// Dims of size 1 repeated (stride 0), new dims in front; −1 keeps a size. Adjoint of sum_to.
Tensor expand(const Tensor& x, const Shape& shape);
/// Sums over the dims that expand() from `shape` would repeat. Adjoint of expand.
Tensor sum_to(const Tensor& x, const Shape& shape);
Tensor squeeze(const Tensor& x);               ///< all dims of size 1 dropped
Tensor squeeze(const Tensor& x, int64_t dim);  ///< unchanged unless of size 1
Tensor unsqueeze(const Tensor& x, int64_t dim);
/// x[…, start:stop:step, …] along dim, as in Python: negative start and stop count from the end and are clamped; a negative step runs backwards.
Tensor slice(const Tensor& x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step = 1);
Tensor select(const Tensor& x, int64_t dim, int64_t index);     ///< one index, the dim dropped
Tensors split(const Tensor& x, int64_t size, int64_t dim = 0);  ///< pieces of `size`, the last may be smaller
Tensors split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim);  ///< pieces of these sizes
Tensors chunk(const Tensor& x, int64_t chunks, int64_t dim = 0);                 ///< at most `chunks` equal pieces
Tensors unbind(const Tensor& x, int64_t dim = 0);
Tensor cat(std::span<const Tensor> xs, int64_t dim = 0);
Tensor stack(std::span<const Tensor> xs, int64_t dim = 0);
inline Tensor cat(std::initializer_list<Tensor> xs, int64_t dim = 0) {
  return cat(std::span<const Tensor>(xs.begin(), xs.size()), dim);
}
inline Tensor stack(std::initializer_list<Tensor> xs, int64_t dim = 0) {
  return stack(std::span<const Tensor>(xs.begin(), xs.size()), dim);
}
Tensor contiguous(const Tensor& x);  ///< x itself, or a row-major copy
Tensor clone(const Tensor& x);       ///< always a row-major copy
/// `before` and `after` elements of `value` added along dim; negative amounts cut.
Tensor pad(const Tensor& x, int64_t dim, int64_t before, int64_t after, double value = 0);
/// Zeros above (tril) or below (triu) the given diagonal of the last two dims.
Tensor tril(const Tensor& x, int64_t diagonal = 0);
Tensor triu(const Tensor& x, int64_t diagonal = 0);
Tensor flip(const Tensor& x, const Dims& dims);
/// Elements moved by `shifts[i]` along dims[i], those that leave come in at the other end.
Tensor roll(const Tensor& x, const std::vector<int64_t>& shifts, const Dims& dims);
Tensor movedim(const Tensor& x, int64_t from, int64_t to);
/// The entries (i, i + offset) of dims dim0 and dim1 as a new last dim; a view.
Tensor diagonal(const Tensor& x, int64_t offset = 0, int64_t dim0 = -2, int64_t dim1 = -1);
/// The last dim laid on the given diagonal of a new square of zeros; the adjoint of diagonal.
Tensor diag_embed(const Tensor& x, int64_t offset = 0);
/// x copied repeats[d] times along each dim; more repeats than dims put new dims in front.
Tensor repeat(const Tensor& x, const std::vector<int64_t>& repeats);
/// Each slice along dim copied `repeats` times beside itself, or repeats[i] times (i64, one per slice).
Tensor repeat_interleave(const Tensor& x, int64_t repeats, int64_t dim);
Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, int64_t dim);
/// Grids of the given vectors, indexed ij: out[k][i₀, i₁, …] = xs[k][i_k].
Tensors meshgrid(std::span<const Tensor> xs);
/// The view of x's storage with these sizes and strides (in elements), beginning `offset` elements after x's first element.
/// Elements of x on one position share its gradient. ShapeError where the view leaves the storage, or reads a position x does not cover while x needs a
/// gradient.
Tensor as_strided(const Tensor& x, const Shape& shape, const std::vector<int64_t>& strides, int64_t offset = 0);
/// Windows of `size` every `step` along dim, as a new last dim; a view.
Tensor unfold(const Tensor& x, int64_t dim, int64_t size, int64_t step);
/// unfold's adjoint: sums the windows back into a dim of `length`.
Tensor fold(const Tensor& windows, int64_t dim, int64_t length, int64_t step);

// ---------------------------------------------------------------- reductions (ops/reduce.cpp, statistics.cpp, scan.cpp)
// dims: any set, negative counts from the end, empty means all. keepdim keeps them as size 1.
// Sums of f32 and bf16 keep their accuracy over 2²⁵ elements; results do not depend on the thread count.

Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  ///< floating dtypes; NaN over nothing
/// Largest element; ties share the gradient evenly. ShapeError over nothing.
Tensor amax(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor amin(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor max(const Tensor& x);  ///< amax over all
Tensor min(const Tensor& x);
/// {values, indices (i64)} along one dim; the first of equal elements counts and takes the gradient.
std::array<Tensor, 2> max(const Tensor& x, int64_t dim, bool keepdim = false);
std::array<Tensor, 2> min(const Tensor& x, int64_t dim, bool keepdim = false);
/// Index (i64) of the first largest element: along dim, or in row-major order over all.
Tensor argmax(const Tensor& x, std::optional<int64_t> dim = {}, bool keepdim = false);
Tensor argmin(const Tensor& x, std::optional<int64_t> dim = {}, bool keepdim = false);
Tensor any(const Tensor& x, const Dims& dims = {}, bool keepdim = false);  ///< bool
Tensor all(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// ‖x‖₂; no overflow before the root; gradient 0 at 0.
Tensor norm(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// ln Σ eˣ; −inf with gradient 0 where all are −inf.
Tensor logsumexp(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor cumsum(const Tensor& x, int64_t dim);
Tensor diff(const Tensor& x, int64_t dim = -1);  ///< x[i + 1] − x[i] along dim
Tensor cumprod(const Tensor& x, int64_t dim);
Tensor logcumsumexp(const Tensor& x, int64_t dim);
/// {values, indices (i64)}: the largest (smallest) so far along dim; the latest of equal elements counts and takes the gradient, as in PyTorch. After
/// a NaN all are NaN.
std::array<Tensor, 2> cummax(const Tensor& x, int64_t dim);
std::array<Tensor, 2> cummin(const Tensor& x, int64_t dim);
/// Product; exact gradients with any number of zeros.
Tensor prod(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// Σ(x − mean)²/(n − correction); two passes, so no cancellation. NaN where n ≤ correction.
Tensor var(const Tensor& x, const Dims& dims = {}, bool keepdim = false, double correction = 1);
/// The standard deviation √var; gradient 0 where it is 0. (`std` would be ambiguous after `using namespace tapestry`.)
Tensor stddev(const Tensor& x, const Dims& dims = {}, bool keepdim = false, double correction = 1);
/// (Σ|x|ᵖ)^(1/p), p ≥ 0 or ±inf (largest, smallest |x|; ties share), p = 0 counts; no overflow before the root; gradient 0 at 0.
/// Not an overload of norm: norm(x, {1}) would be a p.
Tensor vector_norm(const Tensor& x, double p, const Dims& dims = {}, bool keepdim = false);
/// x/max(‖x‖ₚ, eps) along dim.
Tensor normalize(const Tensor& x, double p = 2, int64_t dim = -1, double eps = 1e-12);
Tensor count_nonzero(const Tensor& x, const Dims& dims = {});  ///< i64
/// {values, indices} of the middle element along dim, the lower one of two; NaN first. The element takes the gradient.
std::array<Tensor, 2> median(const Tensor& x, int64_t dim, bool keepdim = false);
Tensor median(const Tensor& x);
/// The q-quantile, 0 ≤ q ≤ 1, linear between neighbours; gradients to the two. NaN where there is one.
Tensor quantile(const Tensor& x, double q, int64_t dim, bool keepdim = false);

// ---------------------------------------------------------------- sorting (ops/sort.cpp)
// Stable: equal elements keep their order. NaN counts as larger than every number. Values carry the gradient, indices are i64.

/// {values, indices} along dim.
std::array<Tensor, 2> sort(const Tensor& x, int64_t dim = -1, bool descending = false);
Tensor argsort(const Tensor& x, int64_t dim = -1, bool descending = false);
/// {values, indices} of the k largest (smallest) along dim, in order, earlier ones first among equals.
std::array<Tensor, 2> topk(const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true);
/// {values, indices} of the k-th smallest along dim, k from 1.
std::array<Tensor, 2> kthvalue(const Tensor& x, int64_t k, int64_t dim = -1, bool keepdim = false);
/// Where in the ascending last dim of `sorted` each value belongs (i64): before equal elements, with `right` after them. Leading dims match, or sorted has rank 1.
Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false);

// ---------------------------------------------------------------- indexing (ops/index.cpp)
// Indices are i64; out of range is an IndexError naming position and value. Repeated targets add up in a fixed order.

/// Rows of table (V, D) at ids (any shape): ids.shape + [D]. Row padding_idx, if given, gets no gradient.
Tensor embedding(const Tensor& table, const Tensor& ids, std::optional<int64_t> padding_idx = {});
/// out[i][j] = x[index[i][j]][j] along dim 0, and so on; index has x's rank and fits inside x in the other dims.
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);
/// x with src added at index along dim; src has index's shape; the adjoint of gather.
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
/// x[…, index, …] along dim, index of rank 1 (negative counts from the end).
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);
/// x with the slices of src added at index along dim; the adjoint of index_select.
Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype = DType::i64);
/// x with src put at index along dim; of several that meet, the last in row-major order stays and takes the gradient.
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
/// gather with x and index broadcast in the dims other than dim.
Tensor take_along_dim(const Tensor& x, const Tensor& index, int64_t dim);

/// One place of index(): all of a dim, one number, a slice, an i64 tensor (they broadcast together) or a bool mask.
struct Index {
  enum class Kind : uint8_t { all, number, range, tensor } kind = Kind::all;
  int64_t number = 0;
  std::optional<int64_t> start = {}, stop = {};
  int64_t step = 1;
  Tensor tensor = {};
  Index() = default;                                   // all of the dim
  Index(int64_t i) : kind(Kind::number), number(i) {}  // NOLINT(google-explicit-constructor): spelled in lists
  Index(int i) : Index(int64_t{i}) {}                  // NOLINT(google-explicit-constructor)
  Index(Tensor t) : kind(Kind::tensor), tensor(std::move(t)) {}  // NOLINT(google-explicit-constructor)
};
inline Index all_of_dim() { return {}; }
Index range(std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step = 1);
/// x[indices…] as NumPy has it: numbers and ranges are views; i64 tensors broadcast together and, if they stand side by side, their dims take the
/// place of the first, else they come first (a number beside tensors counts as one of them); a bool tensor stands for the indices where it is true. Negative numbers count from the end.
Tensor index(const Tensor& x, const std::vector<Index>& indices);
/// x with `values` (broadcast) put where index() reads; `accumulate` adds, else the last of several that meet stays and takes the gradient.
Tensor index_put(const Tensor& x, const std::vector<Index>& indices, const Tensor& values, bool accumulate = false);
Tensor masked_select(const Tensor& x, const Tensor& mask);  ///< elements where mask (broadcast) is true, rank 1
/// x with the elements where mask is true taken from src in order. ShapeError if src is too short.
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& src);
Tensor nonzero(const Tensor& x);  ///< (n, rank) i64: positions of the nonzero elements, row-major
/// Counts of 0, 1, … in ids (i64, ≥ 0), at least min_length of them.
Tensor bincount(const Tensor& ids, int64_t min_length = 0);

/// Rows of x (N, …) reduced over equal segment ids (i64, (N), any order) into (segments, …): sums; means, 0 for an empty segment; largest elements, ties share
/// the gradient evenly, −inf for an empty segment.
Tensor segment_sum(const Tensor& x, const Tensor& ids, int64_t segments);
Tensor segment_mean(const Tensor& x, const Tensor& ids, int64_t segments);
Tensor segment_max(const Tensor& x, const Tensor& ids, int64_t segments);

// ---------------------------------------------------------------- products (ops/matmul.cpp, products.cpp, einsum.cpp, distance.cpp)

/// (…, M, K)·(…, K, N), batch dims broadcast; a vector on either side acts as a row or column and its dim is dropped. All dtypes but bool.
Tensor matmul(const Tensor& a, const Tensor& b);
/// x (…, in) · weight (out, in)ᵀ + bias (out). f32 parameters go with bf16 x: rounded for the product, their gradients f32.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
Tensor outer(const Tensor& a, const Tensor& b);  ///< (n), (m) → (n, m)
Tensor dot(const Tensor& a, const Tensor& b);    ///< Σ aᵢbᵢ of two vectors
/// Sums products over the dims of a and b named in pairs.
Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& dims_a, const Dims& dims_b);
/// Einstein's sums: "ij,jk->ik", "bij,bjk", "…ii->…i" (three dots), repeated letters, no arrow for the letters met once in alphabetic order.
/// ValueError naming the letter or operand at fault.
Tensor einsum(std::string_view equation, std::span<const Tensor> xs);
inline Tensor einsum(std::string_view equation, std::initializer_list<Tensor> xs) {
  return einsum(equation, std::span<const Tensor>(xs.begin(), xs.size()));
}
/// yₖ = aᵀ Wₖ b + biasₖ for a (…, n), b (…, m), weight (k, n, m), bias (k).
Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias = {});
Tensor trace(const Tensor& x);                                     ///< Σ of the diagonal of the last two dims
Tensor kron(const Tensor& a, const Tensor& b);                     ///< Kronecker product of two matrices
Tensor cross(const Tensor& a, const Tensor& b, int64_t dim = -1);  ///< vector product along a dim of size 3
/// Distances ‖aᵢ − bⱼ‖ₚ of rows: (…, n, d), (…, m, d) → (…, n, m), p = 1 or 2; gradient 0 at distance 0.
Tensor cdist(const Tensor& a, const Tensor& b, double p = 2);
/// a·b/(max(‖a‖, eps)·max(‖b‖, eps)) along dim.
Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim = -1, double eps = 1e-8);

// ---------------------------------------------------------------- linear algebra (ops/linalg.cpp, factorize.cpp; through LAPACK)
// Square or tall matrices in the last two dims, f32 and f64; leading dims are a batch. A singular matrix, one that is not positive definite and the
// like are a ValueError naming the place in the batch.

/// A⁻¹b for b (…, n, k). Like matmul, b of rank 1 is a vector.
Tensor solve(const Tensor& a, const Tensor& b);
/// A⁻¹b reading one triangle of A only.
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool unit_diagonal = false);
Tensor inverse(const Tensor& a);
/// L with LLᵀ = A, reading the lower triangle; the gradient is symmetric.
Tensor cholesky(const Tensor& a);
std::array<Tensor, 2> qr(const Tensor& a);  ///< reduced {Q, R} for (…, m, n) of full rank; R's diagonal is ≥ 0
/// {eigenvalues ascending, eigenvectors in columns} of symmetric A, reading the lower triangle. Vectors have no sign of their own: gradients mean something for
/// functions that do not depend on it. AutogradError in backward where values coincide and vectors are used.
std::array<Tensor, 2> eigh(const Tensor& a);
/// Reduced {U, S descending, Vᵀ}; gradients as for eigh, and S > 0 where U and V are used.
std::array<Tensor, 3> svd(const Tensor& a);
Tensor det(const Tensor& a);
std::array<Tensor, 2> slogdet(
    const Tensor& a);  ///< {sign, ln|det|}; the sign has derivative 0; a singular A gives {0, −inf}

// ---------------------------------------------------------------- softmax, norms, losses

/// e^(x − max)/Σ along dim. A row of −inf is NaN.
Tensor softmax(const Tensor& x, int64_t dim);
Tensor log_softmax(const Tensor& x, int64_t dim);

/// (x − mean)/√(var + eps)·weight + bias over the last dim, var divided by n; Ba et al. 2016. weight and bias (D) may be undefined.
Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);
/// x/√(mean(x²) + eps)·weight over the last dim; Zhang & Sennrich 2019. Sums in f32 for bf16 x; the result has x's dtype.
Tensor rms_norm(const Tensor& x, const Tensor& weight = {}, double eps = 1e-5);

/// (x − mean)/√(var + eps)·weight + bias over dims other than dim 1 (channels) of x (B, C, …): with `training` over the batch, else by running_mean and
/// running_var (C). Training updates both in place: (1 − momentum)·old + momentum·new, the variance unbiased. Ioffe & Szegedy 2015.
struct BatchNormOptions {
  bool training = false;
  double momentum = 0.1;
  double eps = 1e-5;
};
Tensor batch_norm(const Tensor& x, Tensor running_mean, Tensor running_var, const Tensor& weight = {},
                  const Tensor& bias = {}, BatchNormOptions options = {});
/// Normalises each sample over groups of channels of x (B, C, …); weight and bias (C). Wu & He 2018.
Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
/// group_norm with one channel a group; Ulyanov et al. 2016.
Tensor instance_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);

enum class Reduction { none, sum, mean };
inline constexpr int64_t no_ignore_index = INT64_MIN;
struct CrossEntropyOptions {
  int64_t ignore_index = -100;  ///< rows with this target have loss 0 and gradient 0
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0;  ///< the target is (1 − s)·one-hot + s/V; Szegedy et al. 2016
  Tensor weight = {};          ///< (V): class c's term times weight[c]; the mean divides by the kept targets' weights
  double z_loss =
      0;  ///< adds z_loss·(ln Σ e^logits)² to every kept row's loss, which weight[target] then weighs; PaLM, 2022
};
/// −ln softmax(logits)[target] for logits (…, V) and targets (…) i64, by logsumexp. The mean is over kept rows; over none it is 0.
/// IndexError naming position and value for a target outside [0, V). The result has the logits' dtype; bf16 rows are summed in f32.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, CrossEntropyOptions options = {});
struct LinearCrossEntropyOptions {
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;   ///< mean or sum
  double label_smoothing = 0, z_loss = 0;  ///< as cross_entropy's
  double soft_cap = 0;                     ///< logits become soft_cap(logits, cap); 0 leaves them
  int64_t chunk = 0;                       ///< rows of logits held at once; 0: as many as stay in cache
  bool f32_loss = false;                   ///< the loss of bf16 x is f32: a sum over many rows is not rounded to 8 bits
};
/// cross_entropy(soft_cap(linear(x, weight, bias)), targets) for x (…, D), weight (V, D), bias (V) or undefined and targets (…), without ever holding the
/// (…, V) logits: rows are taken in chunks, and the gradients of a chunk are computed while its logits are at hand. ValueError for Reduction::none.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& targets,
                            LinearCrossEntropyOptions options = {});
/// −log_probs[target], reduced as cross_entropy. ValueError for label smoothing.
Tensor nll_loss(const Tensor& log_probs, const Tensor& targets, CrossEntropyOptions options = {});
/// (x − target)²; the shapes must be equal (ShapeError), as a broadcast loss is a silent mistake.
Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
/// max(x, 0) − x·t + ln(1 + e^(−|x|)); the shapes must be equal.
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
/// −t·ln p − (1 − t)·ln(1 − p) with the logarithms held at −100 or more, as PyTorch has it.
Tensor binary_cross_entropy(const Tensor& p, const Tensor& target, Reduction reduction = Reduction::mean);
Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
/// d²/2 where |d| ≤ delta, else delta·(|d| − delta/2); Huber 1964.
Tensor huber_loss(const Tensor& x, const Tensor& target, double delta = 1, Reduction reduction = Reduction::mean);
/// huber_loss/beta; l1_loss at beta 0.
Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, double beta = 1, Reduction reduction = Reduction::mean);
/// Σ t·(ln t − log_q), 0 where t = 0; the mean divides by x.size(0) (batchmean), the only one that is the divergence.
Tensor kl_div(const Tensor& log_q, const Tensor& target, Reduction reduction = Reduction::mean);
/// max(0, 1 − t·x) for targets ±1.
Tensor hinge_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
/// (ln v + (x − μ)²/v)/2 for a variance v > 0, held at eps or more; Nix & Weigend 1994.
Tensor gaussian_nll_loss(const Tensor& mean, const Tensor& target, const Tensor& variance, double eps = 1e-6,
                         Reduction reduction = Reduction::mean);
/// softmax((logits + Gumbel noise)/tau) along dim; `hard` gives one-hot values with the soft gradient. Jang et al. 2017. The noise is a function of a ticket.
Tensor gumbel_softmax(const Tensor& logits, double tau = 1, bool hard = false, int64_t dim = -1);

// ---------------------------------------------------------------- convolution and pooling (ops/conv.cpp, pool.cpp, interpolate.cpp)
// x is (B, C, L) or (B, C, H, W); a pair holds one number per spatial dim, both used for 2-d, the second ignored for 1-d.

struct Pair {
  int64_t h = 0, w = 0;
  constexpr Pair(int64_t both) : h(both), w(both) {}  // NOLINT(google-explicit-constructor): stride = 2 means both
  constexpr Pair(int64_t rows, int64_t columns) : h(rows), w(columns) {}
};
struct ConvOptions {
  Pair stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  Pair output_padding = 0;  ///< transposed only
};
/// Cross-correlation of x with weight (out, C/groups, K) + bias (out); as PyTorch's conv1d.
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, ConvOptions options = {});
/// The same with weight (out, C/groups, Kh, Kw).
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, ConvOptions options = {});
/// The gradient of conv1d by its input as an op: weight (C, out/groups, K).
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, ConvOptions options = {});
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, ConvOptions options = {});

struct PoolOptions {
  std::optional<Pair> stride = {};  ///< the window's size unless given
  Pair padding = 0;                 ///< at most half the window
  Pair dilation = 1;                ///< max pooling only
  bool count_include_pad = true;    ///< average pooling: padding counts as zeros
  bool ceil_mode = false;
};
/// The first largest of a window takes the gradient; padding never wins; NaN does.
Tensor max_pool1d(const Tensor& x, int64_t window, PoolOptions options = {});
Tensor max_pool2d(const Tensor& x, Pair window, PoolOptions options = {});
Tensor avg_pool1d(const Tensor& x, int64_t window, PoolOptions options = {});
Tensor avg_pool2d(const Tensor& x, Pair window, PoolOptions options = {});
/// Output i averages (or takes the largest of) inputs floor(i·L/out) … ceil((i + 1)·L/out).
Tensor adaptive_avg_pool1d(const Tensor& x, int64_t out);
Tensor adaptive_avg_pool2d(const Tensor& x, Pair out);
Tensor adaptive_max_pool1d(const Tensor& x, int64_t out);
Tensor adaptive_max_pool2d(const Tensor& x, Pair out);
enum class Interpolation { nearest, bilinear };  ///< bilinear is linear for (B, C, L)
/// x resized to `size` pixels; PyTorch's pixel centres (align_corners = false) unless asked.
Tensor interpolate(const Tensor& x, Pair size, Interpolation mode = Interpolation::nearest, bool align_corners = false);

// ---------------------------------------------------------------- recurrent (ops/recurrent.cpp)
// Gates in PyTorch's order; w_ih (gates·H, in), w_hh (gates·H, H), biases (gates·H) may be undefined. Sequences x are (T, B, in).

/// tanh (or relu) of x·w_ihᵀ + b_ih + h·w_hhᵀ + b_hh; Elman 1990.
Tensor rnn_cell(const Tensor& x, const Tensor& h, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih = {},
                const Tensor& b_hh = {}, bool relu = false);
/// {h', c'}; gates i, f, g, o; Hochreiter & Schmidhuber 1997.
std::array<Tensor, 2> lstm_cell(const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& w_ih,
                                const Tensor& w_hh, const Tensor& b_ih = {}, const Tensor& b_hh = {});
/// h'; gates r, z, n, the reset gate applied to the product as in PyTorch; Cho et al. 2014.
Tensor gru_cell(const Tensor& x, const Tensor& h, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih = {},
                const Tensor& b_hh = {});
/// A whole sequence, fused: {outputs (T, B, H), last h (B, H)}; for the LSTM also last c.
std::array<Tensor, 2> rnn(const Tensor& x, const Tensor& h, const Tensor& w_ih, const Tensor& w_hh,
                          const Tensor& b_ih = {}, const Tensor& b_hh = {}, bool relu = false);
std::array<Tensor, 3> lstm(const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& w_ih, const Tensor& w_hh,
                           const Tensor& b_ih = {}, const Tensor& b_hh = {});
std::array<Tensor, 2> gru(const Tensor& x, const Tensor& h, const Tensor& w_ih, const Tensor& w_hh,
                          const Tensor& b_ih = {}, const Tensor& b_hh = {});

// ---------------------------------------------------------------- attention and rotary positions

enum class RopeLayout { adjacent, half };
/// cos and sin tables for rope(): built in f64, stored in `dtype`.
struct RopeTable {
  Tensor cos, sin;  // (positions, r/2) for r rotated dims
};
/// Row p holds cos(p·θ^(−2i/r)) and sin(…), p in [0, max_positions); Su et al. 2021. dtype is f32 (for f32 and bf16 activations) or f64.
/// ValueError for odd r.
RopeTable rope_table(int64_t max_positions, int64_t rotary_dim, double theta = 10000.0, DType dtype = DType::f32);
/// The table for given frequencies, one a pair: factor·cos(p·frequencies[i]) and factor·sin(…). Long contexts scale them (nn/rope.h).
RopeTable rope_table(int64_t max_positions, std::span<const double> frequencies, double factor = 1,
                     DType dtype = DType::f32);
/// Rotates the first r entries of the last dim of x (B, H, T, Dh) or (B, T, Dh) or (T, Dh) by position: pairs (x₂ᵢ, x₂ᵢ₊₁) (adjacent) or (xᵢ, xᵢ₊r/2) (half).
/// positions: i64 (T) or (B or 1, T), undefined for 0 … T−1. IndexError for a position outside the table.
Tensor rope(const Tensor& x, const RopeTable& table, const Tensor& positions = {},
            RopeLayout layout = RopeLayout::adjacent);

struct AttentionOptions {
  Tensor mask =
      {};  ///< bool, true = may attend: (Tq, Tk), (B, Tq, Tk) meaning (B, 1, Tq, Tk), or (B, H, Tq, Tk); any size may be 1
  bool causal = false;  ///< query i of Tq attends keys up to i + Tk − Tq
  double scale = 0;     ///< 0: 1/√Dh
  int64_t window =
      0;  ///< W > 0: of the keys up to i + Tk − Tq only the last W, the query's own among them; needs causal (Beltagy et al. 2020)
  double soft_cap =
      0;  ///< scores become soft_cap(scale·q·kᵀ, cap) before they are masked; 0 leaves them (Gemma 2, 2024)
  double dropout =
      0;  ///< of the probabilities; ValueError unless 0 ≤ p ≤ 1. Uses the unfused path, which holds (Tq, Tk) scores
};
/// softmax(q·kᵀ·scale, masked)·v for q (B, H, Tq, Dh), k and v (B, Hkv, Tk, Dh or Dv), Hkv dividing H: query head h reads h/(H/Hkv). Rank 3 and 2 inputs are
/// taken as H = 1 (and B = 1). A query that may attend nothing gives 0 with gradient 0.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, AttentionOptions options = {});

/// silu(gate)·up, fused; the heart of SwiGLU (Shazeer 2020).
Tensor swiglu(const Tensor& gate, const Tensor& up);

/// Inverted dropout: 0 with probability p, else x/(1 − p). The mask is a function of a ticket drawn at the call (autograd/random.h) and never stored.
/// p = 1 gives zeros. ValueError unless 0 ≤ p ≤ 1.
Tensor dropout(const Tensor& x, double p);

}  // namespace tapestry
