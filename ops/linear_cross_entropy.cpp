// Cross-entropy of a linear layer's logits without the logits: rows are taken in chunks, and the gradients of a chunk are computed in forward,
// while its logits are at hand.
// Not cross-entropy of logits that exist (cross_entropy.cpp). Next: loss.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "../autograd/function.h"
#include "../autograd/parallel.h"
#include "activation_table.h"
#include "error_text.h"
#include "kernels/cross_entropy.h"
#include "kernels/gemm.h"
#include "kernels/pointwise_lanes.h"
#include "ops.h"
#include "rows.h"
#include "targets.h"

namespace tapestry {
namespace {

/// Rows of logits held at once: enough that the weight, which every chunk reads anew, is not what costs, in few megabytes for small vocabularies.
int64_t chunk_rows(int64_t asked, int64_t rows, int64_t classes) {
  constexpr int64_t least = 256, elements = int64_t{1} << 20;
  const int64_t wanted = asked > 0 ? asked : std::max(least, elements / std::max<int64_t>(classes, 1) / 64 * 64);
  return std::min(wanted, rows);
}

/// Adds the columns of x (rows, width) to sums.
template <class C>
void add_columns(int64_t rows, int64_t width, const C* x, double* sums) {
  parallel_for(width, 1 + 32768 / (rows + 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = begin; j < end; ++j) sums[j] += static_cast<double>(x[i * width + j]);
  });
}

/// Logits of a chunk and what is made of them; `slopes` and `narrow` only where gradients need them.
struct Chunk {
  int64_t rows;
  Tensor logits, lse;  // f64 beside f64, else f32
  Tensor slopes;       // the gradient by capped logits
  Tensor narrow;       // the gradient rounded to bf16, as the products take it
};

struct LinearCrossEntropy {
  static constexpr std::string_view name = "linear_cross_entropy",
                                    formula = "y = cross_entropy(soft_cap(x wᵀ + b), t), by chunks of rows",
                                    vjp =
                                        "s = ∂y/∂(x wᵀ + b), made in forward: dx = g s w, dw = g sᵀ x, db = g Σ_rows s";
  LinearCrossEntropyOptions options;

  Tensor composite(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& targets) const {
    Tensor logits = linear(x, weight, bias);
    if (options.f32_loss) logits = detail::in_dtype(logits, detail::compute_dtype(x.dtype()));
    return cross_entropy(options.soft_cap == 0 ? logits : soft_cap(logits, options.soft_cap), targets,
                         {.ignore_index = options.ignore_index,
                          .reduction = options.reduction,
                          .label_smoothing = options.label_smoothing,
                          .z_loss = options.z_loss});
  }

  Tensor forward(Context& c, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& targets) const {
    const int64_t classes = weight.size(0), rows = targets.numel();
    const int64_t kept = detail::kept_targets(name, targets, classes, options.ignore_index);
    const double share = options.reduction == Reduction::sum ? 1 : kept == 0 ? 0 : 1 / static_cast<double>(kept);
    const DType wide = detail::compute_dtype(x.dtype());
    const Tensor w = detail::in_dtype(weight, x.dtype()),
                 b = bias.defined() ? dense(to(detail::in_dtype(bias, x.dtype()), wide)) : bias, t = dense(targets);
    const detail::RowView input = detail::rows_of(x);
    // The weight's gradient is summed over the chunks, so it stays wide until it is whole.
    const Tensor dx = c.needs(0) ? empty(x.shape(), x.dtype()) : Tensor{};
    Tensor dw = c.needs(1) ? zeros(weight.shape(), wide) : Tensor{};
    std::vector<double> db(static_cast<size_t>(c.needs(2) ? classes : 0));
    double total = 0;
    detail::dispatch_floating(x.dtype(), [&]<class T> {
      using C = compute_t<T>;
      const bool differentiate = dx.defined() || dw.defined() || c.needs(2);
      const Chunk chunk = make_chunk(chunk_rows(options.chunk, rows, classes), classes, x.dtype(), differentiate);
      for (int64_t begin = 0; begin < rows; begin += chunk.rows) {
        const int64_t n = std::min(chunk.rows, rows - begin), width = weight.size(1);
        const kernels::Matrix<T> in{input.data<T>() + begin * input.stride, input.stride, 1},
            layer{w.data<T>(), w.strides()[0], w.strides()[1]}, layer_t{layer.data, layer.col_stride, layer.row_stride};
        const int64_t* const at = t.data<int64_t>() + begin;
        C *const logits = detail::fresh<C>(chunk.logits), *const lse = detail::fresh<C>(chunk.lse);
        if (b.defined())
          for (int64_t i = 0; i < n; ++i) std::copy_n(b.data<C>(), classes, logits + i * classes);
        kernels::gemm<T, C>(n, classes, width, 1, in, layer_t, b.defined() ? 1 : 0, logits, classes);
        cap(chunk.logits, n);
        total += kernels::cross_entropy_forward<C>(n, classes, logits, classes, at, options.ignore_index, nullptr, lse,
                                                   options.label_smoothing, nullptr, options.z_loss)
                     .loss;
        if (!differentiate) continue;
        C* const slopes = chunk.slopes.defined() ? detail::fresh<C>(chunk.slopes) : logits;
        kernels::cross_entropy_backward<C>(n, classes, logits, classes, at, options.ignore_index, lse, share, nullptr,
                                           slopes, classes, options.label_smoothing, nullptr, options.z_loss);
        uncap(chunk, n);
        if (c.needs(2)) add_columns(n, classes, slopes, db.data());
        const kernels::Matrix<T> s{narrowed<T>(chunk, slopes, n), classes, 1}, s_t{s.data, 1, classes};
        if (dx.defined())
          kernels::gemm<T, T>(n, width, classes, 1, s, layer, 0, detail::fresh<T>(dx) + begin * width, width);
        if (dw.defined()) kernels::gemm<T, C>(classes, width, n, 1, s_t, in, 1, detail::fresh<C>(dw), width);
      }
    });
    if (dw.defined()) dw = detail::in_dtype(dw, weight.dtype());
    c.save(dx, dw, c.needs(2) ? to(from(db, {classes}), bias.dtype()) : Tensor{});
    return scalar(total * share, options.f32_loss ? wide : x.dtype());
  }

  Grads backward(Context& c, const Tensor& g) const {
    const double up = g.item();
    const auto scaled = [&](int i) {
      const Tensor made = c.needs(i) ? c.saved(i) : Tensor{};
      return !made.defined() || up == 1 ? made : up == 0 ? zeros(made.shape(), made.dtype()) : made * up;
    };
    return {scaled(0), scaled(1), scaled(2), {}};
  }

 private:
  [[nodiscard]] Chunk make_chunk(int64_t rows, int64_t classes, DType dtype, bool differentiate) const {
    const DType wide = detail::compute_dtype(dtype);
    const auto block = [&](bool wanted, DType of) { return wanted ? empty({rows, classes}, of) : Tensor{}; };
    return {rows, block(true, wide), empty({rows}, wide), block(differentiate && options.soft_cap != 0, wide),
            block(differentiate && dtype == DType::bf16, dtype)};
  }

  /// The first n rows of a chunk's logits, capped.
  void cap(const Tensor& logits, int64_t n) const {
    if (options.soft_cap == 0) return;
    kernels::map<kernels::LanesLoop>({n, logits.size(1)}, logits.dtype(), rows::soft_cap(options.soft_cap).f,
                                     {detail::out(logits)}, {detail::in(logits)});
  }
  /// The gradient by capped logits as that by the logits.
  void uncap(const Chunk& chunk, int64_t n) const {
    if (options.soft_cap == 0) return;
    const kernels::Input y = detail::in(chunk.logits);
    kernels::map<kernels::LanesLoop>({n, chunk.logits.size(1)}, chunk.logits.dtype(),
                                     rows::soft_cap(options.soft_cap).dx, {detail::out(chunk.slopes)},
                                     {detail::in(chunk.slopes), y, y});
  }

  template <class T, class C>
  static const T* narrowed(const Chunk& chunk, const C* slopes, int64_t n) {
    if constexpr (std::is_same_v<T, C>) {
      return slopes;
    } else {
      const kernels::Input wide{slopes, chunk.logits.dtype(), chunk.logits.strides()};
      kernels::map<kernels::LanesLoop>({n, chunk.logits.size(1)}, chunk.logits.dtype(), [](auto v) { return v; },
                                       {detail::out(chunk.narrow)}, {wide});
      return chunk.narrow.data<T>();
    }
  }
};

}  // namespace

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& targets,
                            LinearCrossEntropyOptions options) {
  constexpr const char* op = "linear_cross_entropy";
  detail::require_linear(op, x, weight, bias);
  detail::require_target_rows(op, "x", x, targets);
  detail::require_classes(op, "weight", weight, weight.size(0), targets);
  detail::require_loss_terms(op, options.label_smoothing, options.z_loss);
  if (options.reduction == Reduction::none)
    fail<ValueError>("{}: reduction is none; it must be sum or mean: cross_entropy gives each row's loss", op);
  if (!(options.soft_cap >= 0 && std::isfinite(options.soft_cap)))
    fail<ValueError>("{}: soft_cap is {}; it must be 0 (none) or positive and finite", op, options.soft_cap);
  if (options.chunk < 0) fail<ValueError>("{}: chunk is {}; it must be 0 (any) or more", op, options.chunk);
  return apply(LinearCrossEntropy{options}, x, weight, bias, targets);
}

}  // namespace tapestry
