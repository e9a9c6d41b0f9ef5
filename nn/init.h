// Initialisers: random values written into a parameter in place.
// A call draws one ticket (autograd/random.h): values depend on the seed, the module path and the number of the call,
// on nothing else; so a model built by the same code after manual_seed(s) starts alike everywhere. Next: linear.h.
#pragma once

#include "../autograd/tensor.h"

namespace tapestry::init {

void normal_(const Tensor& t, double mean = 0, double std = 1);
/// Uniform in [low, high).
void uniform_(const Tensor& t, double low, double high);
/// Normal with mean 0 and this σ before cutting; values outside [low, high] (absolute, not in σ) are drawn again, so
/// the result's deviation is smaller: 0.98658 σ for cuts at ±3σ. ValueError if the cuts keep less than a thousandth of
/// the normal.
void truncated_normal_(const Tensor& t, double std, double low, double high);

/// Glorot & Bengio 2010: σ² = gain²·2/(in + out), in and out times the receptive field for weights (out, in, …).
void xavier_normal_(const Tensor& weight, double gain = 1);
void xavier_uniform_(const Tensor& weight, double gain = 1);
/// He et al. 2015: σ² = gain²/in; the default gain √2 is relu's.
void kaiming_normal_(const Tensor& weight, double gain = 1.4142135623730951);
void kaiming_uniform_(const Tensor& weight, double gain = 1.4142135623730951);

/// Linear's default: truncated normal, σ² = 2/(in + out), cut at ±3σ.
void linear_(const Tensor& weight);
/// Embedding's default for a table (V, D): truncated normal, σ = 1/√D, cut at −2 and 2 absolute.
void embedding_(const Tensor& table);

/// 1/√(2·n_layers): what the last projection of each of a Transformer's 2·n_layers branches is multiplied by to keep
/// the variance of the sum (Radford et al. 2019).
double residual_scale(int64_t n_layers);
/// t·factor in place.
void scale_(const Tensor& t, double factor);

/// While it lives, the initialisers called on this thread leave the memory as it is: for modules all of whose values are
/// read from a file next.
class Skip {
 public:
  Skip();
  ~Skip();
  Skip(const Skip&) = delete;
  Skip& operator=(const Skip&) = delete;

 private:
  bool outer_;
};

}  // namespace tapestry::init
