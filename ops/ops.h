// The API page: every public op, one declaration and one comment. The derivative of each stands beside the code that computes it (see the .cpp
// of its family), and all of them in docs/ops.md.
// Not here: making tensors (autograd/factory.h), what a tensor knows of itself (autograd/tensor.h).
//
// Shapes: B batch, T time, D width, H heads, Dh head width, V vocabulary. Two tensors of an op have one dtype (DTypeError otherwise; convert with
// to()) and broadcast as in NumPy (ShapeError otherwise). dims may be negative. Nothing is written in place.
#pragma once

#include <optional>
#include <vector>

#include "../autograd/dtype.h"
#include "../autograd/factory.h"
#include "../autograd/tensor.h"

namespace tapestry {

// ---------------------------------------------------------------- pointwise (ops/pointwise.cpp)

Tensor neg(const Tensor& x);         ///< −x
Tensor abs(const Tensor& x);         ///< |x|; derivative 0 at 0
Tensor sign(const Tensor& x);        ///< −1, 0 or 1; derivative 0
Tensor exp(const Tensor& x);         ///< eˣ
Tensor expm1(const Tensor& x);       ///< eˣ − 1
Tensor log(const Tensor& x);         ///< ln x
Tensor log1p(const Tensor& x);       ///< ln(1 + x)
Tensor sqrt(const Tensor& x);        ///< √x; derivative +inf at 0, but an upstream 0 stays 0
Tensor rsqrt(const Tensor& x);       ///< 1/√x
Tensor square(const Tensor& x);      ///< x²
Tensor reciprocal(const Tensor& x);  ///< 1/x
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor erf(const Tensor& x);         ///< 2/√π ∫₀ˣ e^(−t²) dt
Tensor sigmoid(const Tensor& x);     ///< 1/(1 + e⁻ˣ)
Tensor logsigmoid(const Tensor& x);  ///< ln sigmoid(x)
Tensor softplus(const Tensor& x);    ///< ln(1 + eˣ)
Tensor relu(const Tensor& x);        ///< max(x, 0); derivative 0 at 0
Tensor leaky_relu(const Tensor& x, double slope = 0.01);
Tensor silu(const Tensor& x);          ///< x·sigmoid(x); Elfwing et al. 2017
Tensor gelu(const Tensor& x);          ///< x·Φ(x) by erf; Hendrycks & Gimpel 2016
Tensor gelu_tanh(const Tensor& x);     ///< x/2·(1 + tanh(√(2/π)(x + 0.044715x³)))
Tensor relu_squared(const Tensor& x);  ///< max(x, 0)²; So et al. 2021
/// min(max(x, low), high); the gradient passes at the bounds. NaN stays NaN. ValueError unless low ≤ high.
Tensor clamp(const Tensor& x, double low, double high);
Tensor floor(const Tensor& x);  ///< derivative 0
Tensor ceil(const Tensor& x);   ///< derivative 0
Tensor round(const Tensor& x);  ///< half to even; derivative 0
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
Tensor logical_not(const Tensor& x);                   ///< bool
Tensor logical_and(const Tensor& a, const Tensor& b);  ///< bool
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_xor(const Tensor& a, const Tensor& b);

/// a where condition (bool) is true, else b; all three broadcast. The branch not taken gets gradient exactly 0.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, double b);
Tensor where(const Tensor& condition, double a, const Tensor& b);
/// `value` where mask is true, else x.
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);
/// The elements as another dtype; to bf16 rounds once, to bool is != 0, to i64 truncates. The gradient is converted back.
Tensor to(const Tensor& x, DType dtype);

// ---------------------------------------------------------------- views and shape (ops/views.cpp)
// Views share storage: reshape (where strides allow), view, flatten, transpose, permute, mT, expand, squeeze, unsqueeze, slice, select, split, chunk, unbind.

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

// ---------------------------------------------------------------- reductions (ops/reduce.cpp)
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

// ---------------------------------------------------------------- indexing (ops/index.cpp)
// Indices are i64; out of range is an IndexError naming position and value. Repeated targets add up in a fixed order.

/// Rows of table (V, D) at ids (any shape): ids.shape + [D].
Tensor embedding(const Tensor& table, const Tensor& ids);
/// out[i][j] = x[index[i][j]][j] along dim 0, and so on; index has x's rank and fits inside x in the other dims.
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);
/// x with src added at index along dim; src has index's shape; the adjoint of gather.
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
/// x[…, index, …] along dim, index of rank 1 (negative counts from the end).
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);
/// x with the slices of src added at index along dim; the adjoint of index_select.
Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype = DType::i64);

// ---------------------------------------------------------------- products (ops/matmul.cpp)

/// (…, M, K)·(…, K, N), batch dims broadcast; a vector on either side acts as a row or column and its dim is dropped. All dtypes but bool.
Tensor matmul(const Tensor& a, const Tensor& b);
/// x (…, in) · weight (out, in)ᵀ + bias (out). f32 parameters go with bf16 x: rounded for the product, their gradients f32.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// ---------------------------------------------------------------- softmax, norms, losses

/// e^(x − max)/Σ along dim. A row of −inf is NaN.
Tensor softmax(const Tensor& x, int64_t dim);
Tensor log_softmax(const Tensor& x, int64_t dim);

/// (x − mean)/√(var + eps)·weight + bias over the last dim, var divided by n; Ba et al. 2016. weight and bias (D) may be undefined.
Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);
/// x/√(mean(x²) + eps)·weight over the last dim; Zhang & Sennrich 2019. Sums in f32 for bf16 x; the result has x's dtype.
Tensor rms_norm(const Tensor& x, const Tensor& weight = {}, double eps = 1e-5);

enum class Reduction { none, sum, mean };
inline constexpr int64_t no_ignore_index = INT64_MIN;
struct CrossEntropyOptions {
  int64_t ignore_index = -100;  ///< rows with this target have loss 0 and gradient 0
  Reduction reduction = Reduction::mean;
};
/// −ln softmax(logits)[target] for logits (…, V) and targets (…) i64, by logsumexp. The mean is over kept rows; over none it is 0.
/// IndexError naming position and value for a target outside [0, V). The result has the logits' dtype; bf16 rows are summed in f32.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, CrossEntropyOptions options = {});
/// −log_probs[target], reduced as cross_entropy.
Tensor nll_loss(const Tensor& log_probs, const Tensor& targets, CrossEntropyOptions options = {});
/// (x − target)²; the shapes must be equal (ShapeError), as a broadcast loss is a silent mistake.
Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
/// max(x, 0) − x·t + ln(1 + e^(−|x|)); the shapes must be equal.
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);

// ---------------------------------------------------------------- attention and rotary positions

enum class RopeLayout { adjacent, half };
/// cos and sin tables for rope(): built in f64, stored in `dtype`.
struct RopeTable {
  Tensor cos, sin;  // (positions, r/2) for r rotated dims
};
/// Row p holds cos(p·θ^(−2i/r)) and sin(…), p in [0, max_positions); Su et al. 2021. dtype is f32 (for f32 and bf16 activations) or f64.
/// ValueError for odd r.
RopeTable rope_table(int64_t max_positions, int64_t rotary_dim, double theta = 10000.0, DType dtype = DType::f32);
/// Rotates the first r entries of the last dim of x (B, H, T, Dh) or (B, T, Dh) or (T, Dh) by position: pairs (x₂ᵢ, x₂ᵢ₊₁) (adjacent) or (xᵢ, xᵢ₊r/2) (half).
/// positions: i64 (T) or (B or 1, T), undefined for 0 … T−1. IndexError for a position outside the table.
Tensor rope(const Tensor& x, const RopeTable& table, const Tensor& positions = {},
            RopeLayout layout = RopeLayout::adjacent);

struct AttentionOptions {
  Tensor mask =
      {};  ///< bool, true = may attend: (Tq, Tk), (B, Tq, Tk) meaning (B, 1, Tq, Tk), or (B, H, Tq, Tk); any size may be 1
  bool causal = false;  ///< query i of Tq attends keys up to i + Tk − Tq
  double scale = 0;     ///< 0: 1/√Dh
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
