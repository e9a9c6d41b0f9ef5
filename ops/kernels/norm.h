// Layer and RMS normalisation of rows, forward and backward.
// Not here: shapes, parameters, the differentiable definitions (../norm.cpp). Next: norm.cpp.
#pragma once

#include <cstdint>

#include "../../autograd/dtype.h"
#include "rows.h"

namespace tapestry::kernels {

/// y = x / √(mean(x²) + eps) · w over each row (Zhang & Sennrich 2019). w (d) may be null. Saves 1 / √(…) per row in
/// inv_rms (rows) unless null.
///
/// (T, W): (float, float), (double, double), (bf16, bf16), (bf16, float). Squares are summed in T's compute type over
/// blocks, blocks in double.
template <class T, class W>
void rms_norm_forward(int64_t rows, int64_t d, double eps, Rows<const T> x, const W* w, Rows<T> y,
                      compute_t<T>* inv_rms);

/// From g = dL/dy: dx = inv_rms · (g w − x̂ · mean(g w x̂)), dw = Σ_rows g x̂, with x̂ = x · inv_rms. dx.data or dw
/// null: not computed. dx may be g. dw (d) is overwritten; rows are added in a tree fixed by the shape.
template <class T, class W>
void rms_norm_backward(int64_t rows, int64_t d, Rows<const T> x, const W* w, const compute_t<T>* inv_rms,
                       Rows<const T> g, Rows<T> dx, W* dw);

/// y = (x − mean) / √(var + eps) · w + b with the biased variance (Ba, Kiros & Hinton 2016). w, b (d) may be null.
/// Saves mean and 1 / √(…) per row unless null.
template <class T, class W>
void layer_norm_forward(int64_t rows, int64_t d, double eps, Rows<const T> x, const W* w, const W* b, Rows<T> y,
                        compute_t<T>* mean, compute_t<T>* inv_std);

/// From g = dL/dy: dx = inv_std · (g w − mean(g w) − x̂ · mean(g w x̂)), dw = Σ_rows g x̂, db = Σ_rows g. Null outputs
/// are not computed.
template <class T, class W>
void layer_norm_backward(int64_t rows, int64_t d, Rows<const T> x, const W* w, const compute_t<T>* mean,
                         const compute_t<T>* inv_std, Rows<const T> g, Rows<T> dx, W* dw, W* db);

}  // namespace tapestry::kernels
