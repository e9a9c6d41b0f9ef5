// Recurrent layers over sequences, stacked and in both directions, and their cells for one step.
// Not here: the recurrences (ops/recurrent.cpp).
// Next: containers.h.
#pragma once

#include <array>
#include <vector>

#include "module.h"

namespace tapestry {

struct RecurrentOptions {
  int64_t num_layers = 1;  ///< each reads the outputs of the one before
  bool bias = true;
  bool batch_first = false;    ///< x is (B, T, in) and the output (B, T, …); else (T, B, …). States are as they are
  double dropout = 0;          ///< on the outputs of all layers but the last, while training
  bool bidirectional = false;  ///< each layer has a second direction, which reads from the end; outputs side by side
};

/// Of one layer in one direction: (gates·H, in), (gates·H, H), (gates·H), (gates·H). All start uniform in ±1/√H.
struct RecurrentWeights {
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;

  RecurrentWeights(int64_t gates, int64_t in, int64_t hidden, bool bias);
  /// Names with `suffix` behind: weight_ih_l0.
  void visit(Visitor& v, const std::string& suffix);
};

/// What RNN, LSTM and GRU share: the weights under PyTorch's names (weight_ih_l0, …, bias_hh_l0, weight_ih_l0_reverse,
/// …), and how layers and directions follow one another.
struct RecurrentStack {
  RecurrentOptions options;
  int64_t input_size, hidden_size;
  std::vector<RecurrentWeights> weights;  // layer 0, layer 0 reversed, layer 1, …

  /// ValueError, which names `layer`, unless the sizes and num_layers are at least 1 and dropout is in [0, 1].
  RecurrentStack(const char* layer, int64_t gates, int64_t input, int64_t hidden, RecurrentOptions o);
  [[nodiscard]] int64_t directions() const { return options.bidirectional ? 2 : 1; }
  void visit(Visitor& v);
};

/// Outputs (T, B, directions·H) and the last states (num_layers·directions, B, H).
struct RNNOutput {
  Tensor output, h;
};

/// States (num_layers·directions, B, H) of an LSTM, or (B, H) of its cell; undefined: zeros.
struct LSTMState {
  Tensor h = {}, c = {};
};
struct LSTMOutput {
  Tensor output;
  LSTMState state;
};

/// hₜ = tanh(W_ih xₜ + b_ih + W_hh hₜ₋₁ + b_hh), or relu of it; Elman 1990.
struct RNN : Layer<RNN> {
  RecurrentStack stack;
  bool relu;

  RNN(int64_t input_size, int64_t hidden_size, RecurrentOptions options = {}, bool use_relu = false);
  /// ShapeError unless x is (T, B, input_size), or (B, T, input_size) with batch_first, and h has the states' shape.
  [[nodiscard]] RNNOutput forward(const Tensor& x, const Tensor& h = {}) const;
  void visit(Visitor& v) override { stack.visit(v); }
};

/// Long short-term memory, gates in the order i, f, g, o; Hochreiter & Schmidhuber 1997, Gers et al. 2000.
///
///     const LSTM lstm(8, 16, {.num_layers = 2, .batch_first = true});
///     const auto [output, state] = lstm(x);        // x (B, T, 8), output (B, T, 16)
///     const auto [more, next] = lstm(y, state);    // reads on
struct LSTM : Layer<LSTM> {
  RecurrentStack stack;

  LSTM(int64_t input_size, int64_t hidden_size, RecurrentOptions options = {});
  [[nodiscard]] LSTMOutput forward(const Tensor& x, const LSTMState& state = {}) const;
  void visit(Visitor& v) override { stack.visit(v); }
};

/// Gated recurrent unit, gates in the order r, z, n; Cho et al. 2014, the reset gate on the product as in PyTorch.
struct GRU : Layer<GRU> {
  RecurrentStack stack;

  GRU(int64_t input_size, int64_t hidden_size, RecurrentOptions options = {});
  [[nodiscard]] RNNOutput forward(const Tensor& x, const Tensor& h = {}) const;
  void visit(Visitor& v) override { stack.visit(v); }
};

struct RecurrentCellOptions {
  bool bias = true;
};

/// One step of RNN: x (B, in) and h (B, H), zeros if undefined, to h′ (B, H).
struct RNNCell : Layer<RNNCell> {
  RecurrentWeights weights;
  bool relu;

  RNNCell(int64_t input_size, int64_t hidden_size, RecurrentCellOptions options = {}, bool use_relu = false);
  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& h = {}) const;
  void visit(Visitor& v) override { weights.visit(v, ""); }
};

/// One step of LSTM.
struct LSTMCell : Layer<LSTMCell> {
  RecurrentWeights weights;

  LSTMCell(int64_t input_size, int64_t hidden_size, RecurrentCellOptions options = {});
  [[nodiscard]] LSTMState forward(const Tensor& x, const LSTMState& state = {}) const;
  void visit(Visitor& v) override { weights.visit(v, ""); }
};

/// One step of GRU.
struct GRUCell : Layer<GRUCell> {
  RecurrentWeights weights;

  GRUCell(int64_t input_size, int64_t hidden_size, RecurrentCellOptions options = {});
  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& h = {}) const;
  void visit(Visitor& v) override { weights.visit(v, ""); }
};

}  // namespace tapestry
