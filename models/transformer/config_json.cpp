// A configuration as JSON, in both directions. Next: config_options.h.
#include "config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "../../autograd/error.h"
#include "../strict_json.h"

namespace tapestry {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(NormPlacement p) {
  constexpr std::string_view names[] = {"pre", "post", "double_norm", "non_residual_post"};
  return names[static_cast<size_t>(p)];
}
std::string_view name_of(Positions p) {
  constexpr std::string_view names[] = {"rope", "learned", "sinusoidal", "none"};
  return names[static_cast<size_t>(p)];
}
std::string_view name_of(AttentionSpan s) { return s == AttentionSpan::full ? "full_attention" : "sliding_attention"; }
std::string_view name_of(RopeLayout l) { return l == RopeLayout::adjacent ? "adjacent" : "half"; }
using tapestry::name_of;

template <class E>
constexpr E last_of();
template <>
constexpr NormPlacement last_of() {
  return NormPlacement::non_residual_post;
}
template <>
constexpr NormKind last_of() {
  return NormKind::layer;
}
template <>
constexpr Positions last_of() {
  return Positions::none;
}
template <>
constexpr RopeLayout last_of() {
  return RopeLayout::half;
}
template <>
constexpr AttentionSpan last_of() {
  return AttentionSpan::sliding;
}
template <>
constexpr QkNorm last_of() {
  return QkNorm::projection;
}
template <>
constexpr RopeScalingRule last_of() {
  return RopeScalingRule::llama3;
}
template <>
constexpr Activation last_of() {
  return Activation::softplus;
}

/// The fields once, for validation, reading and writing: f(name, field).
template <class Config, class F>
void each_field(Config& c, F&& f) {
  f("vocab_size", c.vocab_size);
  f("max_seq_len", c.max_seq_len);
  f("n_layers", c.n_layers);
  f("n_heads", c.n_heads);
  f("n_kv_heads", c.n_kv_heads);
  f("d_model", c.d_model);
  f("head_dim", c.head_dim);
  f("d_ff", c.d_ff);
  f("norm_placement", c.norm_placement);
  f("norm_kind", c.norm_kind);
  f("norm_eps", c.norm_eps);
  f("final_norm", c.final_norm);
  f("positions", c.positions);
  f("rope_layout", c.rope_layout);
  f("rope_theta", c.rope_theta);
  f("rope_local_theta", c.rope_local_theta);
  f("rotary_fraction", c.rotary_fraction);
  f("rope_scaling", c.rope_scaling);
  f("rope_layers", c.rope_layers);
  f("window", c.window);
  f("layer_types", c.layer_types);
  f("fused_qkv", c.fused_qkv);
  f("qk_norm", c.qk_norm);
  f("qk_norm_kind", c.qk_norm_kind);
  f("attention_scale", c.attention_scale);
  f("attention_soft_cap", c.attention_soft_cap);
  f("activation", c.activation);
  f("gated", c.gated);
  f("fused_gate_up", c.fused_gate_up);
  f("n_experts", c.n_experts);
  f("experts_per_token", c.experts_per_token);
  f("d_expert", c.d_expert);
  f("normalise_experts", c.normalise_experts);
  f("n_shared_experts", c.n_shared_experts);
  f("expert_layers", c.expert_layers);
  f("q_bias", c.q_bias);
  f("k_bias", c.k_bias);
  f("v_bias", c.v_bias);
  f("o_bias", c.o_bias);
  f("gate_bias", c.gate_bias);
  f("up_bias", c.up_bias);
  f("down_bias", c.down_bias);
  f("head_bias", c.head_bias);
  f("tied_embeddings", c.tied_embeddings);
  f("scale_embedding", c.scale_embedding);
  f("final_soft_cap", c.final_soft_cap);
  f("attention_dropout", c.attention_dropout);
  f("residual_dropout", c.residual_dropout);
  f("embedding_dropout", c.embedding_dropout);
}

template <class Scaling, class F>
void each_scaling_field(Scaling& s, F&& f) {
  f("rule", s.rule);
  f("factor", s.factor);
  f("original_max_seq_len", s.original_max_seq_len);
  f("low_freq_factor", s.low_freq_factor);
  f("high_freq_factor", s.high_freq_factor);
  f("beta_fast", s.beta_fast);
  f("beta_slow", s.beta_slow);
  f("truncate", s.truncate);
  f("attention_factor", s.attention_factor);
}

constexpr std::array<std::string_view, 7> required = {"vocab_size", "max_seq_len", "n_layers", "n_heads",
                                                      "n_kv_heads", "d_model",     "d_ff"};

// ---- Values to JSON and back

template <class T>
Json written(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return name_of(value);
  else
    return value;
}
Json written(const std::vector<AttentionSpan>& spans) {
  Json list = Json::array();
  for (const AttentionSpan s : spans) list.push_back(name_of(s));
  return list;
}
Json written(const RopeScaling& s) {
  Json object = Json::object();
  each_scaling_field(s, [&](const char* name, const auto& value) { object[name] = written(value); });
  return object;
}

[[noreturn]] void fail_value(std::string_view name, const Json& json, std::string_view expected) {
  fail<FormatError>("config: {} is {}; expected {}", name, json.dump(), expected);
}

void read(std::string_view name, const Json& json, int64_t& value) {
  if (!json.is_number_integer()) fail_value(name, json, json.is_number() ? "a whole number" : "a number");
  value = json.get<int64_t>();
}
void read(std::string_view name, const Json& json, double& value) {
  if (!json.is_number()) fail_value(name, json, "a number");
  value = json.get<double>();
}
void read(std::string_view name, const Json& json, bool& value) {
  if (!json.is_boolean()) fail_value(name, json, "true or false");
  value = json.get<bool>();
}
template <class E>
requires std::is_enum_v<E>
void read(std::string_view name, const Json& json, E& value) {
  std::string names;
  for (int i = 0; i <= static_cast<int>(last_of<E>()); ++i) {
    const auto candidate = static_cast<E>(i);
    if (json.is_string() && json.get_ref<const std::string&>() == name_of(candidate)) {
      value = candidate;
      return;
    }
    names += (i == 0 ? "one of " : ", ") + std::string(name_of(candidate));
  }
  fail_value(name, json, names);
}
template <class E>
void read(std::string_view name, const Json& json, std::vector<E>& values) {
  if (!json.is_array()) fail_value(name, json, "a list");
  values.clear();
  for (const Json& element : json) {
    E value{};
    read(name, element, value);
    values.push_back(value);
  }
}

void read(std::string_view name, const Json& json, RopeScaling& s);

/// Reads an object of known fields.
template <class Each>
void read_object(std::string_view what, const Json& json, std::span<const std::string_view> needed, Each&& each) {
  if (!json.is_object()) fail<FormatError>("{}: not a JSON object", what);
  std::set<std::string> known;
  each([&](const char* name, auto& value) {
    known.insert(name);
    const auto it = json.find(name);
    if (it != json.end())
      read(name, *it, value);
    else if (std::find(needed.begin(), needed.end(), name) != needed.end())
      fail<FormatError>("{}: {} is missing", what, name);
  });
  for (const auto& [name, value] : json.items())
    if (!known.contains(name)) fail<FormatError>("{}: unknown field {}: {}", what, name, value.dump());
}

void read(std::string_view name, const Json& json, RopeScaling& s) {
  if (!json.is_object()) fail_value(name, json, "an object");
  s = {};
  read_object("config: rope_scaling", json, {}, [&](auto&& f) { each_scaling_field(s, f); });
}

}  // namespace

std::string TransformerConfig::to_json() const {
  Json json;
  each_field(*this, [&](const char* name, const auto& value) { json[name] = written(value); });
  return json.dump(2) + "\n";
}

TransformerConfig TransformerConfig::from_json(const std::string& text) {
  const Json json = parse_strict_json("config", text);
  TransformerConfig c;
  read_object("config", json, required, [&](auto&& f) { each_field(c, f); });
  c.validate();
  return c;
}

}  // namespace tapestry
