// Construction of recurrent layers and the order in which their layers and directions run.
// Next: recurrent.h.
#include "recurrent.h"

#include <cmath>

#include "../autograd/error.h"
#include "../ops/ops.h"
#include "init.h"

namespace tapestry {
namespace {

/// gates of a cell that is constructed, after the sizes are checked.
int64_t checked(const char* layer, int64_t gates, int64_t input_size, int64_t hidden_size) {
  if (input_size < 1 || hidden_size < 1)
    fail<ValueError>("{}: input_size {} and hidden_size {} must be at least 1", layer, input_size, hidden_size);
  return gates;
}

Tensor backwards(const Tensor& x) { return slice(x, 0, {}, {}, -1); }

Tensor state_or_zeros(const Tensor& state, const Tensor& x, int64_t hidden) {
  return state.defined() ? state : zeros({x.size(0), hidden}, x.dtype());
}

/// Runs sequence(x, first states, weights) for every layer and direction: {output, last states, …}.
template <size_t n, class Sequence>
std::array<Tensor, n + 1> run(const char* layer, const RecurrentStack& layers, Tensor x,
                              const std::array<Tensor, n>& first, bool training, const Sequence& sequence) {
  const RecurrentOptions& o = layers.options;
  const int64_t directions = layers.directions(), all = o.num_layers * directions;
  if (x.dim() != 3 || x.size(2) != layers.input_size)
    fail<ShapeError>("{}: x is {}; it must be {} with in = {}", layer, x.describe(),
                     o.batch_first ? "(B, T, in)" : "(T, B, in)", layers.input_size);
  if (o.batch_first) x = transpose(x, 0, 1);
  const Shape shape = {all, x.size(1), layers.hidden_size};
  for (size_t i = 0; i < n; ++i)
    if (first[i].defined() && first[i].shape() != shape)
      fail<ShapeError>("{}: state {} is {}, x is {}; it must be {}", layer, i == 0 ? "h" : "c", first[i].describe(),
                       x.describe(), to_string(shape));
  const Tensor start = zeros({x.size(1), layers.hidden_size}, x.dtype());
  std::array<std::vector<Tensor>, n> last;
  for (int64_t at = 0; at < all;) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < directions; ++d, ++at) {
      std::array<Tensor, n> state;
      for (size_t i = 0; i < n; ++i) state[i] = first[i].defined() ? select(first[i], 0, at) : start;
      const auto results = sequence(d == 0 ? x : backwards(x), state, layers.weights[static_cast<size_t>(at)]);
      outputs.push_back(d == 0 ? results[0] : backwards(results[0]));
      for (size_t i = 0; i < n; ++i) last[i].push_back(results[i + 1]);
    }
    x = directions == 1 ? outputs[0] : cat(outputs, -1);
    if (training && o.dropout > 0 && at < all) x = dropout(x, o.dropout);
  }
  std::array<Tensor, n + 1> results = {o.batch_first ? transpose(x, 0, 1) : x};
  for (size_t i = 0; i < n; ++i) results[i + 1] = stack(last[i]);
  return results;
}

}  // namespace

RecurrentWeights::RecurrentWeights(int64_t gates, int64_t in, int64_t hidden, bool bias) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  const auto make = [&](const Shape& shape) {
    Parameter p(empty(shape, DType::f32));
    init::uniform_(p, -bound, bound);
    return p;
  };
  weight_ih = make({gates * hidden, in});
  weight_hh = make({gates * hidden, hidden});
  if (!bias) return;
  bias_ih = make({gates * hidden});
  bias_hh = make({gates * hidden});
}

void RecurrentWeights::visit(Visitor& v, const std::string& suffix) {
  v.parameter("weight_ih" + suffix, weight_ih);
  v.parameter("weight_hh" + suffix, weight_hh);
  v.parameter("bias_ih" + suffix, bias_ih);
  v.parameter("bias_hh" + suffix, bias_hh);
}

RecurrentStack::RecurrentStack(const char* layer, int64_t gates, int64_t input, int64_t hidden, RecurrentOptions o)
    : options(o), input_size(input), hidden_size(hidden) {
  checked(layer, gates, input, hidden);
  if (o.num_layers < 1) fail<ValueError>("{}: num_layers is {}; it must be at least 1", layer, o.num_layers);
  if (!(0 <= o.dropout && o.dropout <= 1))
    fail<ValueError>("{}: dropout is {}, which is not in [0, 1]", layer, o.dropout);
  for (int64_t i = 0; i < o.num_layers; ++i)
    for (int64_t d = 0; d < directions(); ++d)
      weights.emplace_back(gates, i == 0 ? input : directions() * hidden, hidden, o.bias);
}

void RecurrentStack::visit(Visitor& v) {
  int64_t at = 0;
  for (RecurrentWeights& w : weights) {
    w.visit(v, "_l" + std::to_string(at / directions()) + (at % directions() == 0 ? "" : "_reverse"));
    ++at;
  }
}

RNN::RNN(int64_t input_size, int64_t hidden_size, RecurrentOptions options, bool use_relu)
    : stack("RNN", 1, input_size, hidden_size, options), relu(use_relu) {}

RNNOutput RNN::forward(const Tensor& x, const Tensor& h) const {
  const auto results = run<1>("RNN", stack, x, {h}, is_training(),
                              [&](const Tensor& in, const std::array<Tensor, 1>& s, const RecurrentWeights& w) {
                                return rnn(in, s[0], w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh, relu);
                              });
  return {results[0], results[1]};
}

LSTM::LSTM(int64_t input_size, int64_t hidden_size, RecurrentOptions options)
    : stack("LSTM", 4, input_size, hidden_size, options) {}

LSTMOutput LSTM::forward(const Tensor& x, const LSTMState& state) const {
  const auto results = run<2>("LSTM", stack, x, {state.h, state.c}, is_training(),
                              [](const Tensor& in, const std::array<Tensor, 2>& s, const RecurrentWeights& w) {
                                return lstm(in, s[0], s[1], w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh);
                              });
  return {results[0], {results[1], results[2]}};
}

GRU::GRU(int64_t input_size, int64_t hidden_size, RecurrentOptions options)
    : stack("GRU", 3, input_size, hidden_size, options) {}

RNNOutput GRU::forward(const Tensor& x, const Tensor& h) const {
  const auto results = run<1>("GRU", stack, x, {h}, is_training(),
                              [](const Tensor& in, const std::array<Tensor, 1>& s, const RecurrentWeights& w) {
                                return gru(in, s[0], w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh);
                              });
  return {results[0], results[1]};
}

RNNCell::RNNCell(int64_t input_size, int64_t hidden_size, RecurrentCellOptions options, bool use_relu)
    : weights(checked("RNNCell", 1, input_size, hidden_size), input_size, hidden_size, options.bias), relu(use_relu) {}

Tensor RNNCell::forward(const Tensor& x, const Tensor& h) const {
  return rnn_cell(x, state_or_zeros(h, x, weights.weight_hh.size(1)), weights.weight_ih, weights.weight_hh,
                  weights.bias_ih, weights.bias_hh, relu);
}

LSTMCell::LSTMCell(int64_t input_size, int64_t hidden_size, RecurrentCellOptions options)
    : weights(checked("LSTMCell", 4, input_size, hidden_size), input_size, hidden_size, options.bias) {}

LSTMState LSTMCell::forward(const Tensor& x, const LSTMState& state) const {
  const int64_t hidden = weights.weight_hh.size(1);
  const auto [h, c] = lstm_cell(x, state_or_zeros(state.h, x, hidden), state_or_zeros(state.c, x, hidden),
                                weights.weight_ih, weights.weight_hh, weights.bias_ih, weights.bias_hh);
  return {h, c};
}

GRUCell::GRUCell(int64_t input_size, int64_t hidden_size, RecurrentCellOptions options)
    : weights(checked("GRUCell", 3, input_size, hidden_size), input_size, hidden_size, options.bias) {}

Tensor GRUCell::forward(const Tensor& x, const Tensor& h) const {
  return gru_cell(x, state_or_zeros(h, x, weights.weight_hh.size(1)), weights.weight_ih, weights.weight_hh,
                  weights.bias_ih, weights.bias_hh);
}

}  // namespace tapestry
