// Rotary positions in config.json: rope_theta with rope_scaling, or rope_parameters, which holds both.
// Next: families/llama.cpp.
#include <cmath>

#include "../../../autograd/error.h"
#include "common_fields.h"

namespace tapestry::hf {
namespace {

/// 0.1·m·ln s + 1: what YaRN multiplies the tables by for a weight m.
double yarn_factor(double s, double m) { return s <= 1 ? 1 : 0.1 * m * std::log(s) + 1; }

void read_yarn(ConfigFields& o, const TransformerConfig& c, RopeScaling& s) {
  s.rule = RopeScalingRule::yarn;
  o.number("factor", s.factor);
  o.integer("original_max_position_embeddings", s.original_max_seq_len, c.max_seq_len);
  o.number("beta_fast", s.beta_fast, 32);
  o.number("beta_slow", s.beta_slow, 1);
  o.flag("truncate", s.truncate, true);
  double m = 0, m_all = 0;
  o.number_or_null("attention_factor", s.attention_factor);
  o.number("mscale", m, 0);
  o.number("mscale_all_dim", m_all, 0);
  if (s.attention_factor == 0 && m != 0 && m_all != 0)
    s.attention_factor = yarn_factor(s.factor, m) / yarn_factor(s.factor, m_all);
}

void read_scaling(ConfigFields& o, const TransformerConfig& c, const std::string& type, RopeScaling& s) {
  s = {};
  if (type == "default") return;
  if (type == "linear") {
    s.rule = RopeScalingRule::linear;
    o.number("factor", s.factor);
  } else if (type == "dynamic") {
    s.rule = RopeScalingRule::dynamic;
    o.number("factor", s.factor);
    o.integer("original_max_position_embeddings", s.original_max_seq_len, c.max_seq_len);
    if (s.original_max_seq_len != c.max_seq_len)
      o.refuse("original_max_position_embeddings",
               fmt::format("dynamic frequencies that change with every length up to max_position_embeddings {} are not "
                           "here",
                           c.max_seq_len));
  } else if (type == "yarn") {
    read_yarn(o, c, s);
  } else if (type == "llama3") {
    s.rule = RopeScalingRule::llama3;
    o.number("factor", s.factor);
    o.integer("original_max_position_embeddings", s.original_max_seq_len);
    o.number("low_freq_factor", s.low_freq_factor);
    o.number("high_freq_factor", s.high_freq_factor);
  } else {
    o.refuse(o.given("rope_type") ? "rope_type" : "type", "it must be default, linear, dynamic, yarn or llama3");
  }
}

}  // namespace

void read_rope_object(ConfigFields& o, const TransformerConfig& c, double& theta, RopeScaling& scaling) {
  std::string type, old_type;
  o.text("type", old_type, "");
  o.text("rope_type", type, old_type);
  if (type.empty()) type = "default";
  if (!old_type.empty() && old_type != type) o.refuse("type", fmt::format("but rope_type is '{}'", type));
  o.number("rope_theta", theta, theta);
  read_scaling(o, c, type, scaling);
  o.finish(type == "default" ? "this object" : fmt::format("rope_type {}", type));
}

void write_rope_scaling(ConfigFields& f, const TransformerConfig& c) {
  using enum RopeScalingRule;
  RopeScaling s = c.rope_scaling;
  if (s.rule != linear && s.rule != dynamic && s.rule != yarn && s.rule != llama3) return f.put("rope_scaling", "null");
  ConfigFields o = *f.object("rope_scaling");
  o.put("rope_type", fmt::format("\"{}\"", name_of(s.rule)));
  o.number("factor", s.factor);
  if (s.rule == linear) return;
  o.integer("original_max_position_embeddings", s.original_max_seq_len);
  if (s.rule == llama3) {
    o.number("low_freq_factor", s.low_freq_factor);
    o.number("high_freq_factor", s.high_freq_factor);
  }
  if (s.rule != yarn) return;
  o.number("beta_fast", s.beta_fast);
  o.number("beta_slow", s.beta_slow);
  o.flag("truncate", s.truncate, true);
  o.number_or_null("attention_factor", s.attention_factor);
}

void rope_fields(ConfigFields& f, TransformerConfig& c, double absent_theta) {
  f.number("rope_theta", c.rope_theta, absent_theta);
  if (!f.is_reading()) return write_rope_scaling(f, c);
  if (auto o = f.object("rope_scaling")) read_rope_object(*o, c, c.rope_theta, c.rope_scaling);
  auto o = f.object("rope_parameters");
  if (!o) return;
  double theta = c.rope_theta;
  RopeScaling scaling;
  o->must_be("partial_rotary_factor", "1.0", "heads of this family turn whole");
  read_rope_object(*o, c, theta, scaling);
  if ((f.given("rope_theta") && theta != c.rope_theta) || (f.given("rope_scaling") && !(scaling == c.rope_scaling)))
    f.refuse("rope_parameters", "but rope_theta and rope_scaling say something else");
  c.rope_theta = theta;
  c.rope_scaling = scaling;
}

}  // namespace tapestry::hf
