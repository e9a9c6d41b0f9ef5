// Golden ops of layers, norms, softmax and the losses of language models, through the modules where there is one.
// Next: golden_attention_ops.cpp.
#include "../models/transformer/sampler.h"
#include "../nn/batch_norm.h"
#include "../nn/conv.h"
#include "../nn/feed_forward.h"
#include "../nn/group_norm.h"
#include "../nn/linear.h"
#include "../nn/norm.h"
#include "../nn/pool.h"
#include "../nn/positions.h"
#include "../nn/visitor.h"
#include "golden_ops.h"

namespace tapestry::golden {
namespace {

Tensor linear_layer(const Args& a) {
  const Tensor& w = a["w"];
  std::map<std::string, Tensor> values{{"weight", w}};
  if (a.has("b")) values["bias"] = a["b"];
  return bound(Linear(w.size(1), w.size(0), LinearOptions{.bias = a.has("b")}), values)(a["x"]);
}

Tensor feed_forward(const Args& a) {
  const bool gated = a.has("w3"), bias = a.has("b1");
  const Tensor& w1 = a["w1"];
  const FeedForwardOptions options{.activation = activation_named(a.text("act", "silu")),
                                   .gated = gated,
                                   .gate_bias = gated && bias,
                                   .up_bias = bias,
                                   .down_bias = bias};
  const std::string first = gated ? "gate_proj." : "up_proj.";
  std::map<std::string, Tensor> values{{first + "weight", w1}, {"down_proj.weight", a["w2"]}};
  if (gated) values["up_proj.weight"] = a["w3"];
  if (bias) values[first + "bias"] = a["b1"], values["down_proj.bias"] = a["b2"];
  if (gated && bias) values["up_proj.bias"] = a["b3"];
  return bound(FeedForward(w1.size(1), w1.size(0), options), values)(a["x"]);
}

Tensor rms_norm_layer(const Args& a) {
  const Tensor& x = a["x"];
  return bound(RMSNorm(x.size(-1), RMSNormOptions{.eps = a.number("eps", 0)}), {{"weight", a["g"]}})(x);
}

Tensor layer_norm_layer(const Args& a) {
  const Tensor& x = a["x"];
  const double eps = a.number("eps", 0);
  if (!a.has("g")) return layer_norm(x, {}, {}, eps);
  std::map<std::string, Tensor> values{{"weight", a["g"]}};
  if (a.has("b")) values["bias"] = a["b"];
  return bound(LayerNorm(x.size(-1), LayerNormOptions{.eps = eps, .bias = a.has("b")}), values)(x);
}

Pair pair(const Args& a, const char* attr, int64_t otherwise) {
  const Dims d = a.given(attr) ? a.dims(attr) : Dims{otherwise};
  return {d[0], d[d.rank() - 1]};
}

template <class Layer>
Tensor conv_layer(const Args& a) {
  const Tensor& w = a["w"];
  constexpr bool transposed = std::is_same_v<Layer, ConvTranspose2d>;
  const ConvLayerOptions o{.stride = pair(a, "stride", 1),
                           .padding = pair(a, "padding", 0),
                           .groups = a.integer("groups", 1),
                           .output_padding = pair(a, "output_padding", 0),
                           .bias = a.has("b")};
  const int64_t in = w.size(transposed ? 0 : 1) * (transposed ? 1 : o.groups),
                out = w.size(transposed ? 1 : 0) * (transposed ? o.groups : 1);
  std::map<std::string, Tensor> values{{"weight", w}};
  if (a.has("b")) values["bias"] = a["b"];
  if constexpr (std::is_same_v<Layer, Conv1d>)
    return bound(Layer(in, out, w.size(2), o), values)(a["x"]);
  else
    return bound(Layer(in, out, Pair(w.size(2), w.size(3)), o), values)(a["x"]);
}

Outputs batch_norm_layer(const Args& a) {
  BatchNorm1d m(a["x"].size(1), {.eps = a.number("eps", 0), .momentum = a.number("momentum", 0)});
  to(m, a.dtype);
  m.train(a.flag("training"));
  m.state.running_mean.copy_(a["rm"].detach());
  m.state.running_var.copy_(a["rv"].detach());
  set_parameters(m, {{"weight", a["g"]}, {"bias", a["b"]}});
  const Tensor y = m(a["x"]);
  return {{"y", y}, {"running_mean", m.state.running_mean}, {"running_var", m.state.running_var}};
}

CrossEntropyOptions loss_options(const Args& a) {
  const std::string how = a.text("reduction", "mean");
  return {.ignore_index = a.integer("ignore_index", no_ignore_index),
          .reduction = how == "none"  ? Reduction::none
                       : how == "sum" ? Reduction::sum
                                      : Reduction::mean,
          .label_smoothing = a.number("smoothing", 0),
          .z_loss = a.number("coef", 0)};
}

Tensor loss(const Args& a) {
  return cross_entropy(a["logits"], a.has("targets") ? a["targets"] : a["t"], loss_options(a));
}

Tensor sampling(const Args& a) {
  const std::vector<float> logits = a["logits"].to_vector();
  const Shape shape = a["logits"].shape();
  const SamplerOptions options{
      .temperature = a.number("temperature", 1), .top_k = a.integer("top_k", 0), .top_p = a.number("top_p", 1)};
  const auto width = static_cast<size_t>(shape[1]);
  std::vector<double> all;
  for (size_t row = 0; row < logits.size(); row += width)
    for (const double p : probabilities(std::span(logits).subspan(row, width), options)) all.push_back(p);
  return to(from(all, shape), a.dtype);
}

constexpr Op rows[] = {
    {"linear", linear_layer},
    {"ffn", feed_forward},
    {"swiglu", feed_forward},
    {"geglu", feed_forward},
    {"geglu_tanh", feed_forward},
    {"reglu", feed_forward},
    {"glu_ffn", feed_forward},
    {"bilinear", feed_forward},
    {"glu", [](const Args& a) { return sigmoid(linear(a["x"], a["w1"])) * linear(a["x"], a["w2"]); }},
    {"glu_bias",
     [](const Args& a) { return linear(a["x"], a["w1"], a["b1"]) * sigmoid(linear(a["x"], a["w2"], a["b2"])); }},
    {"glu_split",
     [](const Args& a) {
       const Tensors halves = chunk(a["x"], 2, -1);
       return halves[0] * sigmoid(halves[1]);
     }},

    {"rms_norm", rms_norm_layer},
    {"rms_norm_plus_one", [](const Args& a) { return rms_norm(a["x"], 1.0 + a["g"], a.number("eps", 0)); }},
    {"rms_norm_bf16",  // our order of rounding: once, after the gain
     [](const Args& a) {
       const double eps = a.number("eps", 0);
       return Outputs{{"y", rms_norm_layer(a)},
                      {"seed000_order", rms_norm(to(a["x"], DType::bf16), to(a["g"], DType::bf16), eps)}};
     }},
    {"layer_norm", layer_norm_layer},
    {"layer_norm_2d",
     [](const Args& a) {
       return reshape(layer_norm(flatten(a["x"], 1), flatten(a["g"]), flatten(a["b"]), a.number("eps", 0)),
                      a["x"].shape());
     }},
    {"group_norm",
     [](const Args& a) {
       const GroupNorm m(a.integer("groups", 1), a["x"].size(1), {.eps = a.number("eps", 0)});
       return bound(m, {{"weight", a["g"]}, {"bias", a["b"]}})(a["x"]);
     }},
    {"instance_norm", [](const Args& a) { return instance_norm(a["x"], {}, {}, a.number("eps", 0)); }},
    {"batch_norm", batch_norm_layer},

    {"conv1d", conv_layer<Conv1d>},
    {"conv2d", conv_layer<Conv2d>},
    {"conv_transpose2d", conv_layer<ConvTranspose2d>},
    {"max_pool1d",
     [](const Args& a) { return MaxPool1d(a.integer("kernel", 0), {.stride = Pair(a.integer("stride", 0))})(a["x"]); }},

    {"softmax", [](const Args& a) { return softmax(a["x"], a.integer("dim", -1)); }},
    {"log_softmax", [](const Args& a) { return log_softmax(a["x"], a.integer("dim", -1)); }},
    {"cross_entropy", loss},
    {"perplexity", [](const Args& a) { return exp(loss(a)); }},
    {"z_loss", [](const Args& a) { return a.number("coef", 0) * mean(square(logsumexp(a["logits"], {-1}))); }},
    {"ce_plus_z", loss},
    {"softcap", [](const Args& a) { return soft_cap(a["x"], a.number("cap", 0)); }},
    {"capped_loss",
     [](const Args& a) { return cross_entropy(soft_cap(a["logits"], a.number("cap", 0)), a["targets"]); }},
    {"sinusoidal",
     [](const Args& a) {
       const Tensor &x = a["x"], &at = a["pos"];
       const Tensor table = sinusoidal_positions(max(at).item<int64_t>() + 1, x.size(-1), a.dtype);
       return x + index_select(table, 0, at);
     }},
    {"learned_positions", [](const Args& a) { return a["x"] + embedding(a["table"], a["pos"]); }},
    {"sampling_probabilities", sampling},
};

}  // namespace

std::span<const Op> layer_ops() { return rows; }

}  // namespace tapestry::golden
