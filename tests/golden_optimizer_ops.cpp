// Golden ops of optimizers: the outputs are what they leave behind; nothing is differentiated through them.
// Next: golden_check.cpp.
#include "../optim/adam.h"
#include "../optim/adamw.h"
#include "../optim/clip.h"
#include "../optim/optimizer.h"
#include "../optim/schedule.h"
#include "../optim/sgd.h"
#include "golden_ops.h"

namespace tapestry::golden {
namespace {

/// A leaf of its own with these values.
Tensor leaf(const Tensor& values) { return clone(values.detach()).requires_grad_(); }

/// p after every step with the rows of g as gradients, where `has` says so; one rate for all steps or one each.
template <class Rule>
std::pair<Tensor, typename Rule::State> trajectory(const Args& a, typename Rule::Options options) {
  const Tensor p = leaf(a["p"]), has = a.find("has");
  const std::vector<double> rates = a.given("lrs") ? a.numbers("lrs") : std::vector<double>{};
  options.lr = rates.empty() ? a.number("lr", 0) : rates[0];
  Optimizer<Rule> optimizer({{"p", p}}, options);
  Tensors after;
  for (int64_t t = 0; t < a["g"].size(0); ++t) {
    if (!rates.empty()) optimizer.set_lr(rates[static_cast<size_t>(t)]);
    if (!has.defined() || select(has, 0, t).template item<bool>()) p.set_grad(clone(select(a["g"].detach(), 0, t)));
    optimizer.step();
    optimizer.zero_grad();
    after.push_back(clone(p.detach()));
  }
  return {stack(std::span<const Tensor>(after.data(), after.size())), optimizer.state("p")};
}

Outputs adam(const Args& a) {
  const std::string kind = a.text("kind", "");
  Adam::Options o{.beta1 = a.number("beta1", 0),
                  .beta2 = a.number("beta2", 0),
                  .eps = a.number("eps", 0),
                  .weight_decay = a.number("weight_decay", 0),
                  .amsgrad = a.flag("amsgrad")};
  const auto [p, state] = kind == "adam_l2"
                              ? trajectory<Adam>(a, o)
                              : trajectory<AdamW>(a, {.beta1 = o.beta1,
                                                      .beta2 = o.beta2,
                                                      .eps = o.eps,
                                                      .weight_decay = o.weight_decay,
                                                      .decay = kind == "adamw_decay_last" ? Decay::last : Decay::first,
                                                      .amsgrad = o.amsgrad});
  Outputs out{{"p", p}, {"m", state.exp_avg}, {"v", state.exp_avg_sq}};
  if (o.amsgrad) out["vmax"] = state.max_exp_avg_sq;
  return out;
}

Outputs sgd(const Args& a) {
  const auto [p, state] = trajectory<SGD>(a, {.momentum = a.number("momentum", 0),
                                              .dampening = a.number("dampening", 0),
                                              .weight_decay = a.number("weight_decay", 0),
                                              .nesterov = a.flag("nesterov")});
  Outputs out{{"p", p}};
  if (state.momentum_buffer.defined()) out["buf"] = state.momentum_buffer;
  return out;
}

Outputs clipped(const Args& a) {
  NamedTensors parameters;
  for (const auto& [name, g] : a.tensors()) {
    const Tensor p = leaf(zeros_like(g));
    p.set_grad(clone(g.detach()));
    parameters.emplace_back(name, p);
  }
  parameters.emplace_back("without", leaf(ones({3}, a.dtype)));
  Outputs out{{"norm", scalar(clip_grad_norm_(parameters, a.number("max_norm", 0)), a.dtype)}};
  for (const auto& [name, p] : parameters)
    if (p.grad().defined()) out[name] = p.grad();
  return out;
}

Outputs cosine(const Args& a) {
  const CosineWithWarmup schedule{.lr_max = a.number("lr_max", 0),
                                  .lr_min = a.number("lr_min", 0),
                                  .warmup_steps = a.integer("warmup_iters", 0),
                                  .total_steps = a.integer("cos_cycle_iters", 0)};
  std::vector<double> rates;
  for (const auto step : a["it"].to_vector<int64_t>()) rates.push_back(schedule(step));
  return {{"y", a["it"]}, {"lr", from(rates)}};
}

/// w (2, 3) after a step on |y − w x|², y = (x₀ + x₁, −x₂), for every row x of xs.
Tensor regression(const Args& a, Decay decay) {
  const Tensor w = leaf(a["w0"]), xs = a["xs"].detach();
  Optimizer<AdamW> optimizer({{"w", w}}, {.decay = decay});
  const Tensor truth = to(tensor<double>({{1, 1, 0}, {0, 0, -1}}), a.dtype);
  for (int64_t t = 0; t < xs.size(0); ++t) {
    const Tensor x = select(xs, 0, t);
    sum(square(matmul(truth, x) - matmul(w, x))).backward();
    optimizer.step();
    optimizer.zero_grad();
  }
  return w.detach();
}

constexpr Op rows[] = {
    {"adam", adam},
    {"sgd", sgd},
    {"clip_grad_norm", clipped},
    {"cosine_lr", cosine},
    {"adamw_regression",
     [](const Args& a) {
       return Outputs{{"decay_first", regression(a, Decay::first)}, {"decay_last", regression(a, Decay::last)}};
     }},
};

}  // namespace

std::span<const Op> optimizer_ops() { return rows; }

}  // namespace tapestry::golden
