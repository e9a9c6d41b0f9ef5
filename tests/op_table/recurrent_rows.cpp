// Rows of recurrent cells and sequences.
// "(x twice)" rows feed one input computed from another: a fused op whose recorded walk did not stop at its inputs
// would count twice.
#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

constexpr Bounds fused = {1e-12, 4e-6, 0x1p-7};
constexpr Bounds composed = {1e-12, 4e-6, 0x1p-5};  // what feeds the op rounds to bf16

using Line = std::vector<double>;

/// w v + b; an undefined b is empty.
Line affine(const Array& w, const Line& v, const Array& b) {
  Line y;
  for (int64_t i = 0; i < w.shape[0]; ++i) {
    double sum = b.values.empty() ? 0 : b({i});
    for (int64_t k = 0; k < w.shape[1]; ++k) sum += w({i, k}) * v[static_cast<size_t>(k)];
    y.push_back(sum);
  }
  return y;
}

/// One state and one cell after a step, from the two sums of every gate.
struct Unit {
  double h, c;
};
using Step = Unit (*)(const double* s, const double* u, Unit last);

Unit tanh_step(const double* s, const double* u, Unit) { return {std::tanh(s[0] + u[0]), 0}; }
Unit relu_step(const double* s, const double* u, Unit) { return {std::max(s[0] + u[0], 0.0), 0}; }
Unit lstm_step(const double* s, const double* u, Unit last) {
  const double i = reference::sigmoid(s[0] + u[0]), f = reference::sigmoid(s[1] + u[1]);
  const double c = f * last.c + i * std::tanh(s[2] + u[2]);
  return {reference::sigmoid(s[3] + u[3]) * std::tanh(c), c};
}
Unit gru_step(const double* s, const double* u, Unit last) {
  const double r = reference::sigmoid(s[0] + u[0]), z = reference::sigmoid(s[1] + u[1]);
  return {(1 - z) * std::tanh(s[2] + r * u[2]) + z * last.h, 0};
}

/// {states, last state} of x, h, w_ih, w_hh, b_ih, b_hh; with a cell after h also {…, last cell}.
template <Step step, bool has_cell = false>
Arrays sequence(const Arrays& a) {
  const Array& x = a[0];
  Array h = a[1], c = has_cell ? a[2] : a[1];
  const auto weights = a.begin() + (has_cell ? 3 : 2);
  const int64_t batch = h.shape[0], width = h.shape[1], gates = width == 0 ? 0 : weights[0].shape[0] / width;
  Array states{{x.shape[0], batch, width}, {}};
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    for (int64_t b = 0; b < batch; ++b) {
      const Line s = affine(weights[0], reference::line(x, 2, {t, b, 0}), weights[2]);
      const Line u = affine(weights[1], reference::line(h, 1, {b, 0}), weights[3]);
      for (int64_t j = 0; j < width; ++j) {
        double from_x[4], from_h[4];
        for (int64_t k = 0; k < gates; ++k) {
          from_x[k] = s[static_cast<size_t>(k * width + j)];
          from_h[k] = u[static_cast<size_t>(k * width + j)];
        }
        const Unit unit = step(from_x, from_h, {h({b, j}), c({b, j})});
        h({b, j}) = unit.h;
        c({b, j}) = unit.c;
      }
    }
    states.values.insert(states.values.end(), h.values.begin(), h.values.end());
  }
  return has_cell ? Arrays{states, h, c} : Arrays{states, h};
}

/// The same for one step of x (B, in), without the sequence.
template <Step step, bool has_cell = false>
Arrays cell(Arrays a) {
  a[0].shape.insert(0, 1);
  Arrays results = sequence<step, has_cell>(a);
  results.erase(results.begin());
  return results;
}

/// `op` of a[0], …, and a state that depends on it.
Arrays with_states_of(Arrays a, Arrays (*op)(const Arrays&), int states) {
  Array h{{a[0].shape[1], a[0].shape[2]}, {}};
  for (int64_t i = 0; i < h.shape[0] * h.shape[1]; ++i) h.values.push_back(2 * a[0].values[static_cast<size_t>(i)]);
  for (int i = 0; i < states; ++i) a.insert(a.begin() + 1, h);
  return op(a);
}

constexpr Input weight(int64_t rows, int64_t columns) { return real(rows, columns).in(-1, 1); }

constexpr OpRow rows[] = {
    {.name = "rnn_cell",
     .formula = "h′ = tanh(s) or relu(s), s = x w_ihᵀ + b_ih + h w_hhᵀ + b_hh",
     .vjp = "ds = g(1 − h′²), dx = ds w_ih, dh = ds w_hh, dw_ih = dsᵀ x, dw_hh = dsᵀ h, db = Σ_rows ds",
     .fn = [](Args a) { return rnn_cell(a[0], a[1], a[2], a[3], a[4], a[5]); },
     .ref = [](const Arrays& a) { return cell<tanh_step>(a); },
     .composite = [](Args a) { return tanh(linear(a[0], a[2], a[4]) + linear(a[1], a[3], a[5])); },
     .samples = {{{real(2, 3), real(2, 4), weight(4, 3), weight(4, 4), real(4), real(4)}},
                 {{real(1, 2), real(1, 3), weight(3, 2), weight(3, 3), undefined, real(3)}}},
     .empty = {{real(0, 3), real(0, 2), weight(2, 3), weight(2, 2), real(2), real(2)}},
     .errors = {{[] {
                   (void)rnn_cell(zeros({2, 3, 1}), zeros({2, 4}), zeros({4, 3}), zeros({4, 4}));
                 },
                 "rnn_cell: x is [2, 3, 1] f32; it must be (B, in)"}},
     .bounds = fused},
    {.name = "rnn_cell (relu)",
     .formula = "h′ = relu(s)",
     .vjp = "ds = g where h′ > 0, the rest as rnn_cell",
     .fn = [](Args a) { return rnn_cell(a[0], a[1], a[2], a[3], a[4], a[5], true); },
     .ref = [](const Arrays& a) { return cell<relu_step>(a); },
     .composite = [](Args a) { return relu(linear(a[0], a[2], a[4]) + linear(a[1], a[3], a[5])); },
     .samples = {{{real(2, 3), real(2, 4), weight(4, 3), weight(4, 4), real(4), real(4)}}},
     .empty = {{real(2, 0), real(2, 2), weight(2, 0), weight(2, 2), real(2), real(2)}},
     .errors = {{[] {
                   (void)rnn_cell(zeros({2, 3}), zeros({2, 4}), zeros({4, 3}), zeros({8, 4}));
                 },
                 "rnn_cell: w_hh is [8, 4] f32; it must be (H, H)"}},
     .bounds = fused},
    {.name = "lstm_cell",
     .formula = "h′ = o tanh(c′), c′ = f c + i g; (i f g o) = (σ σ tanh σ)(x w_ihᵀ + b_ih + h w_hhᵀ + b_hh)",
     .vjp = "one step of lstm",
     .fn = [](Args a) { return lstm_cell(a[0], a[1], a[2], a[3], a[4], a[5], a[6]); },
     .ref = [](const Arrays& a) { return cell<lstm_step, true>(a); },
     .samples = {{{real(2, 3), real(2, 4), real(2, 4), weight(16, 3), weight(16, 4), real(16), real(16)}},
                 {{real(1, 2), real(1, 3), real(1, 3), weight(12, 2), weight(12, 3), real(12), undefined}}},
     .empty = {{real(0, 3), real(0, 2), real(0, 2), weight(8, 3), weight(8, 2), real(8), real(8)}},
     .errors = {{[] {
                   (void)lstm_cell(zeros({2, 3}), zeros({2, 4}), zeros({1, 4}), zeros({16, 3}), zeros({16, 4}));
                 },
                 "lstm_cell: c is [1, 4] f32, x is [2, 3] f32, w_hh is [16, 4] f32; c must be [2, 4]"}},
     .bounds = fused},
    {.name = "gru_cell",
     .formula = "h′ = (1 − z) n + z h; (r z) = σ(s + u), n = tanh(s + r u), s = x w_ihᵀ + b_ih, u = h w_hhᵀ + b_hh",
     .vjp = "one step of gru",
     .fn = [](Args a) { return gru_cell(a[0], a[1], a[2], a[3], a[4], a[5]); },
     .ref = [](const Arrays& a) { return cell<gru_step>(a); },
     .samples = {{{real(2, 3), real(2, 4), weight(12, 3), weight(12, 4), real(12), real(12)}},
                 {{real(1, 2), real(1, 3), weight(9, 2), weight(9, 3), undefined, undefined}}},
     .empty = {{real(0, 3), real(0, 2), weight(6, 3), weight(6, 2), real(6), real(6)}},
     .errors = {{[] {
                   (void)gru_cell(zeros({2, 3}), zeros({2, 4}), zeros({12, 4}), zeros({12, 4}));
                 },
                 "gru_cell: w_ih is [12, 4] f32, x is [2, 3] f32, w_hh is [12, 4] f32; w_ih must be [12, 3]"}},
     .bounds = fused},
    {.name = "rnn",
     .fn = [](Args a) { return rnn(a[0], a[1], a[2], a[3], a[4], a[5]); },
     .ref = [](const Arrays& a) { return sequence<tanh_step>(a); },
     .samples = {{{real(3, 2, 3), real(2, 4), weight(4, 3), weight(4, 4), real(4), real(4)}},
                 {{real(2, 1, 2), real(1, 3), weight(3, 2), weight(3, 3), undefined, undefined}}},
     .empty = {{real(0, 2, 3), real(2, 4), weight(4, 3), weight(4, 4), real(4), real(4)}},
     .large = {{real(6, 128, 32), real(128, 192), weight(192, 32), weight(192, 192), real(192), real(192)}},
     .errors = {{[] {
                   (void)rnn(zeros({2, 3}), zeros({2, 4}), zeros({4, 3}), zeros({4, 4}));
                 },
                 "rnn: x is [2, 3] f32; it must be (T, B, in)"}},
     .bounds = fused},
    {.name = "rnn (relu)",
     .fn = [](Args a) { return rnn(a[0], a[1], a[2], a[3], a[4], {}, true); },
     .ref =
         [](const Arrays& a) {
           return sequence<relu_step>({a[0], a[1], a[2], a[3], a[4], Array{}});
         },
     .samples = {{{real(3, 2, 3), real(2, 4), weight(4, 3), weight(4, 4), real(4)}}},
     .empty = {{real(3, 0, 3), real(0, 4), weight(4, 3), weight(4, 4), real(4)}},
     .errors = {{[] {
                   (void)rnn(zeros({1, 2, 3}), zeros({2, 4}), zeros({4, 3}), zeros({4, 4}), zeros({4}), zeros({3}));
                 },
                 "rnn: b_hh is [3] f32, x is [1, 2, 3] f32, w_hh is [4, 4] f32; b_hh must be [4]"}},
     .bounds = fused},
    {.name = "rnn (x twice)",
     .fn = [](Args a) { return rnn(a[0], 2 * select(a[0], 0, 0), a[1], a[2]); },
     .ref =
         [](const Arrays& a) {
           return with_states_of({a[0], a[1], a[2], Array{}, Array{}}, sequence<tanh_step>, 1);
         },
     .samples = {{{real(2, 2, 3), weight(3, 3), weight(3, 3)}}},
     .empty = {{real(2, 0, 3), weight(3, 3), weight(3, 3)}},
     .errors = {{[] {
                   (void)rnn(zeros({1, 2, 3}), zeros({2, 4}, DType::f64), zeros({4, 3}), zeros({4, 4}));
                 },
                 "rnn: dtypes differ: x is [1, 2, 3] f32, h is [2, 4] f64; convert with to(x, DType::f64)"}},
     .bounds = composed},
    {.name = "lstm",
     .fn = [](Args a) { return lstm(a[0], a[1], a[2], a[3], a[4], a[5], a[6]); },
     .ref = [](const Arrays& a) { return sequence<lstm_step, true>(a); },
     .samples = {{{real(3, 2, 2), real(2, 3), real(2, 3), weight(12, 2), weight(12, 3), real(12), real(12)}},
                 {{real(2, 1, 2), real(1, 2), real(1, 2), weight(8, 2), weight(8, 2), undefined, undefined}}},
     .empty = {{real(0, 2, 2), real(2, 3), real(2, 3), weight(12, 2), weight(12, 3), real(12), real(12)}},
     .large = {{real(6, 64, 32), real(64, 128), real(64, 128), weight(512, 32), weight(512, 128), real(512),
                real(512)}},
     .errors =
         {{[] {
             (void)lstm(zeros({1, 2, 3}), zeros({2, 4}), zeros({2, 4}), zeros({12, 3}), zeros({12, 4}));
           },
           "lstm: w_hh is [12, 4] f32; it must be (4H, H)"},
          {[] {
             (void)lstm(zeros({1, 2, 3}), zeros({2, 4}), zeros({2, 4}), zeros({16, 3}), zeros({16, 4}, DType::f64));
           },
           "lstm: dtypes differ: x is [1, 2, 3] f32, w_hh is [16, 4] f64; convert with to(x, DType::f64)"}},
     .bounds = fused},
    {.name = "lstm (x twice)",
     .fn =
         [](Args a) {
           const Tensor state = 2 * select(a[0], 0, 0);
           return lstm(a[0], state, state, a[1], a[2]);
         },
     .ref =
         [](const Arrays& a) {
           return with_states_of({a[0], a[1], a[2], Array{}, Array{}}, sequence<lstm_step, true>, 2);
         },
     .samples = {{{real(2, 2, 2), weight(8, 2), weight(8, 2)}}},
     .empty = {{real(2, 0, 2), weight(8, 2), weight(8, 2)}},
     .errors = {{[] {
                   (void)lstm(zeros({1, 2, 3}), zeros({4, 2}), zeros({2, 4}), zeros({16, 3}), zeros({16, 4}));
                 },
                 "lstm: h is [4, 2] f32, x is [1, 2, 3] f32, w_hh is [16, 4] f32; h must be [2, 4]"}},
     .bounds = composed},
    {.name = "gru",
     .fn = [](Args a) { return gru(a[0], a[1], a[2], a[3], a[4], a[5]); },
     .ref = [](const Arrays& a) { return sequence<gru_step>(a); },
     .samples = {{{real(3, 2, 2), real(2, 3), weight(9, 2), weight(9, 3), real(9), real(9)}},
                 {{real(2, 1, 2), real(1, 2), weight(6, 2), weight(6, 2), undefined, undefined}}},
     .empty = {{real(0, 2, 2), real(2, 3), weight(9, 2), weight(9, 3), real(9), real(9)}},
     .large = {{real(6, 64, 32), real(64, 128), weight(384, 32), weight(384, 128), real(384), real(384)}},
     .errors = {{[] {
                   (void)gru(zeros({1, 2, 3}, DType::i64), zeros({2, 4}), zeros({12, 3}), zeros({12, 4}));
                 },
                 "gru: needs a floating dtype, got [1, 2, 3] i64"},
                {[] {
                   (void)gru(zeros({1, 2, 3}), {}, zeros({12, 3}), zeros({12, 4}));
                 },
                 "gru: the tensor is undefined"}},
     .bounds = fused},
    {.name = "gru (x twice)",
     .fn = [](Args a) { return gru(a[0], 2 * select(a[0], 0, 0), a[1], a[2]); },
     .ref =
         [](const Arrays& a) {
           return with_states_of({a[0], a[1], a[2], Array{}, Array{}}, sequence<gru_step>, 1);
         },
     .samples = {{{real(2, 2, 2), weight(6, 2), weight(6, 2)}}},
     .empty = {{real(2, 0, 2), weight(6, 2), weight(6, 2)}},
     .errors = {{[] {
                   (void)gru(zeros({1, 2, 3}), zeros({2, 4}), zeros({12, 3}), zeros({12, 4}), zeros({3}));
                 },
                 "gru: b_ih is [3] f32, x is [1, 2, 3] f32, w_hh is [12, 4] f32; b_ih must be [12]"}},
     .bounds = composed},
};

}  // namespace

std::span<const OpRow> recurrent_rows() { return rows; }

}  // namespace tapestry::op_table
