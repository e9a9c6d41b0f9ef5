// Golden ops of recurrent sequences, through the modules.
// Next: golden_model_ops.cpp.
#include "../nn/recurrent.h"
#include "golden_ops.h"

namespace tapestry::golden {
namespace {

std::map<std::string, Tensor> weights(const Args& a) {
  return {{"weight_ih_l0", a["wi"]}, {"weight_hh_l0", a["wh"]}, {"bias_ih_l0", a["bi"]}, {"bias_hh_l0", a["bh"]}};
}

/// A state (B, H) as that of the only layer.
Tensor of_one_layer(const Tensor& state) { return unsqueeze(state, 0); }

template <class M>
Outputs without_cell(const Args& a) {
  const Tensor& w = a["wi"];
  const auto [y, h] = bound(M(w.size(1), a["h0"].size(1)), weights(a))(a["x"], of_one_layer(a["h0"]));
  return {{"y", y}, {"h", squeeze(h, 0)}};
}

Outputs with_cell(const Args& a) {
  const Tensor& w = a["wi"];
  const auto [y, state] = bound(LSTM(w.size(1), a["h0"].size(1)), weights(a))(
      a["x"], LSTMState{of_one_layer(a["h0"]), of_one_layer(a["c0"])});
  return {{"y", y}, {"h", squeeze(state.h, 0)}, {"c", squeeze(state.c, 0)}};
}

constexpr Op rows[] = {{"rnn_tanh", without_cell<RNN>}, {"lstm", with_cell}, {"gru", without_cell<GRU>}};

}  // namespace

std::span<const Op> recurrent_ops() { return rows; }

}  // namespace tapestry::golden
