// References of softmax, norms, losses, rotary positions and attention, from their definitions. Next: norm_rows.cpp.
#pragma once

#include "../../autograd/random.h"
#include "reference.h"

namespace tapestry::op_table::reference {

using Line = std::vector<double>;

inline Line soft_max(Line x) {
  const double lse = log_sum_exp(x);
  for (double& v : x) v = std::exp(v - lse);
  return x;
}

/// x / sqrt(mean(x²) + eps), or with the mean taken off first, over the last dim; then times w plus b where given.
inline Array normalised(const Arrays& a, bool centred, double eps) {
  Array y = along(a[0], -1, [&](Line x) {
    const auto n = static_cast<double>(x.size());
    const double mean = centred ? total(x) / n : 0;
    double square = 0;
    for (double& v : x) v -= mean;
    for (const double v : x) square += v * v;
    for (double& v : x) v /= std::sqrt(square / n + eps);
    return x;
  });
  for_each(y.shape, [&](const Dims& i) {
    const Dims last = {i[i.rank() - 1]};
    if (a.size() > 1 && !a[1].values.empty()) y(i) *= a[1](last);
    if (a.size() > 2 && !a[2].values.empty()) y(i) += a[2](last);
  });
  return y;
}

/// -x[target] (+ ln Σ eˣ) per row of x; then all, their sum or their mean (reduction 0, 1, 2) over rows whose target
/// is not `ignored`.
inline Array picked_loss(const Array& x, const Array& targets, int64_t ignored, int64_t reduction, bool normalise) {
  double sum = 0;
  int64_t kept = 0;
  Array losses = build(targets.shape, [&](const Dims& i) {
    if (targets.number(i) == ignored) return 0.0;
    Dims at = i;
    at.push_back(targets.number(i));
    const double loss = (normalise ? log_sum_exp(line(x, at.rank() - 1, at)) : 0) - x(at);
    sum += loss;
    ++kept;
    return loss;
  });
  if (reduction == 0) return losses;
  return {{}, {reduction == 1 || kept == 0 ? sum : sum / static_cast<double>(kept)}};
}

/// Σ_c q_c w_c (-ln softmax(x)_c) + z w_t lse² per row with q = (1 - s)·one-hot + s/V; the mean divides by the kept
/// targets' weights.
inline Array weighted_loss(const Array& x, const Array& targets, const Array* weight, double s, int64_t reduction,
                           double z = 0) {
  double sum = 0, kept = 0;
  const int64_t classes = x.shape[x.shape.rank() - 1];
  Array losses = build(targets.shape, [&](const Dims& i) {
    const int64_t target = targets.number(i);
    if (target == -100) return 0.0;
    Dims row = i;
    row.push_back(0);
    const double lse = log_sum_exp(line(x, row.rank() - 1, row));
    double loss = z * lse * lse * (weight ? (*weight)({target}) : 1);
    for (int64_t c = 0; c < classes; ++c) {
      Dims at = i;
      at.push_back(c);
      const double q = (c == target ? 1 - s : 0) + s / static_cast<double>(classes);
      loss += q * (weight ? (*weight)({c}) : 1) * (lse - x(at));
    }
    sum += loss;
    kept += weight ? (*weight)({target}) : 1;
    return loss;
  });
  if (reduction == 0) return losses;
  return {{}, {reduction == 1 || kept == 0 ? sum : sum / kept}};
}

/// x wᵀ + b, capped where cap > 0, for x (…, D), w (V, D) and b (V) or nothing.
inline Array layer(const Array& x, const Array& w, const Array& b, double cap) {
  Shape shape = x.shape;
  const int last = shape.rank() - 1;
  shape[last] = w.shape[0];
  return build(shape, [&](const Dims& i) {
    double sum = b.values.empty() ? 0 : b({i[last]});
    for (int64_t d = 0; d < w.shape[1]; ++d) sum += x(replaced(i, last, d)) * w({i[last], d});
    return cap > 0 ? cap * std::tanh(sum / cap) : sum;
  });
}

/// f(x, t) at every element, then all, sum or mean.
template <class F>
Array pair_loss(const Array& x, const Array& t, int64_t reduction, F&& f) {
  const Array losses = build(x.shape, [&](const Dims& i) { return f(x(i), t(i)); });
  if (reduction == 0) return losses;
  const double sum = total(losses.values);
  return {{}, {reduction == 1 ? sum : sum / static_cast<double>(losses.values.size())}};
}

/// Pairs of the first r entries turned by position · theta^(-2i/r).
inline Array rotated(const Array& x, const Array* positions, int64_t r, double theta, bool half) {
  Array y = x;
  for_each(x.shape, [&](const Dims& i) {
    const int last = i.rank() - 1;
    if (i[last] >= r) return;
    const int64_t pair = half ? i[last] % (r / 2) : i[last] / 2;
    const bool first = half ? i[last] < r / 2 : i[last] % 2 == 0;
    double p = static_cast<double>(i[last - 1]);
    if (positions != nullptr)
      p = positions->shape.rank() == 1 ? (*positions)({i[last - 1]})
                                       : (*positions)({positions->shape[0] == 1 ? 0 : i[0], i[last - 1]});
    const double angle = p * std::pow(theta, -2.0 * static_cast<double>(pair) / static_cast<double>(r));
    const double other =
        x(replaced(i, last, half ? (first ? i[last] + r / 2 : i[last] - r / 2) : (first ? i[last] + 1 : i[last] - 1)));
    y(i) = first ? x(i) * std::cos(angle) - other * std::sin(angle) : other * std::sin(angle) + x(i) * std::cos(angle);
  });
  return y;
}

struct AttentionTerms {
  int64_t window = 0;  // 0: none
  double cap = 0;      // 0: none
  double dropout = 0;  // by the next ticket
};

/// softmax(q kᵀ/√d, capped and masked) v; a row that may attend nothing is 0. Ranks 2 to 4.
inline Array attention(const Arrays& a, bool causal, const AttentionTerms& terms = {}) {
  Array q = a[0], k = a[1], v = a[2];
  const int rank = q.shape.rank();
  for (Array* x : {&q, &k, &v}) {
    if (rank == 2) x->shape.insert(0, 1);
    if (rank <= 3) x->shape.insert(1, 1);
  }
  const int64_t keys = k.shape[2], repeat = k.shape[1] == 0 ? 1 : q.shape[1] / k.shape[1], late = keys - q.shape[2];
  const auto may = [&](const Dims& at) {  // B, H, Tq, Tk
    if (causal && at[3] > at[2] + late) return false;
    if (terms.window > 0 && at[3] <= at[2] + late - terms.window) return false;
    if (a.size() < 4) return true;
    Array mask = a[3];
    if (mask.shape.rank() == 3) mask.shape.insert(1, 1);
    return mask.broadcast(at) != 0;
  };
  const Ticket ticket = terms.dropout > 0 ? draw_ticket() : Ticket{};
  Array y = build({q.shape[0], q.shape[1], q.shape[2], v.shape[3]}, [&](const Dims& i) {
    Line scores;
    for (int64_t t = 0; t < keys; ++t) {
      double s = 0;
      for (int64_t d = 0; d < q.shape[3]; ++d) s += q({i[0], i[1], i[2], d}) * k({i[0], i[1] / repeat, t, d});
      s /= std::sqrt(static_cast<double>(q.shape[3]));
      if (terms.cap > 0) s = terms.cap * std::tanh(s / terms.cap);
      scores.push_back(may({i[0], i[1], i[2], t}) ? s : -inf);
    }
    if (largest(scores) == -inf) return 0.0;
    scores = soft_max(scores);
    if (terms.dropout > 0)
      for (int64_t t = 0; t < keys; ++t) {
        const int64_t place = ((i[0] * q.shape[1] + i[1]) * q.shape[2] + i[2]) * keys + t;
        const double u = uniform_f32(ticket.word(static_cast<uint64_t>(place)));
        scores[static_cast<size_t>(t)] *= u >= terms.dropout ? 1 / (1 - terms.dropout) : 0;
      }
    double sum = 0;
    for (int64_t t = 0; t < keys; ++t) sum += scores[static_cast<size_t>(t)] * v({i[0], i[1] / repeat, t, i[3]});
    return sum;
  });
  if (rank <= 3) y.shape.erase(1);
  if (rank == 2) y.shape.erase(0);
  return y;
}

/// softmax((x + Gumbel noise of the next ticket)/tau) along dim.
inline Array gumbel_softmax(const Array& x, int dim, double tau) {
  const Ticket ticket = draw_ticket();
  Array y = x;
  for (size_t i = 0; i < y.values.size(); ++i) {
    const double u = std::max(static_cast<double>(uniform_f32(ticket.word(i))), 0x1p-25);
    y.values[i] = (y.values[i] - std::log(-std::log(u))) / tau;
  }
  return along(y, dim, soft_max);
}

/// x/(1 - p) where the word of the next ticket keeps it.
inline Array dropped(const Array& x, double p) {
  const Ticket ticket = draw_ticket();
  Array y = x;
  for (size_t i = 0; i < y.values.size(); ++i)
    y.values[i] = static_cast<double>(uniform_f32(ticket.word(i))) >= p ? y.values[i] / (1 - p) : 0;
  return y;
}

}  // namespace tapestry::op_table::reference
