// Gemma 3, the text model: queries and keys normalised, two rotary bases, one layer in six full. Gemma Team 2025.
// Next: olmo2.cpp.
#include "../common_fields.h"
#include "gemma.h"

namespace tapestry::hf {
namespace {

constexpr double absent_theta = 1e6, absent_local_theta = 1e4;

/// Newer files: {"full_attention": {"rope_theta": …}, "sliding_attention": {…}}.
void read_rope_parameters(ConfigFields& o, TransformerConfig& c) {
  if (auto full = o.object("full_attention")) read_rope_object(*full, c, c.rope_theta, c.rope_scaling);
  if (auto sliding = o.object("sliding_attention")) {
    RopeScaling none;
    read_rope_object(*sliding, c, c.rope_local_theta, none);
    if (none.rule != RopeScalingRule::none) o.refuse("sliding_attention", "sliding layers are never scaled here");
  }
  o.finish("rope_parameters");
}

void both_rope_fields(ConfigFields& f, TransformerConfig& c) {
  f.number("rope_theta", c.rope_theta, absent_theta);
  if (!f.is_reading() && c.rope_local_theta == 0) c.rope_local_theta = absent_local_theta;  // of no layer
  f.number("rope_local_base_freq", c.rope_local_theta, absent_local_theta);
  if (!f.is_reading()) return write_rope_scaling(f, c);
  if (auto o = f.object("rope_scaling")) read_rope_object(*o, c, c.rope_theta, c.rope_scaling);
  auto o = f.object("rope_parameters");
  if (!o) return;
  const TransformerConfig before = c;
  c.rope_scaling = {};
  read_rope_parameters(*o, c);
  if ((f.given("rope_theta") && c.rope_theta != before.rope_theta) ||
      (f.given("rope_local_base_freq") && c.rope_local_theta != before.rope_local_theta) ||
      (f.given("rope_scaling") && !(c.rope_scaling == before.rope_scaling)))
    f.refuse("rope_parameters", "but rope_theta, rope_local_base_freq and rope_scaling say something else");
}

void fields(ConfigFields& f, TransformerConfig& c) {
  gemma_fields(f, c);
  if (f.is_reading()) c.qk_norm = QkNorm::head, c.qk_norm_kind = NormKind::rms_unit_offset;
  both_rope_fields(f, c);
  int64_t every = 6;
  if (f.is_reading()) {
    f.integer("_sliding_window_pattern", every, 6);
    f.integer("sliding_window_pattern", every, every);
  }
  if (every < 1) f.refuse("sliding_window_pattern", "it must be at least 1");
  gemma_window_fields(f, c, every);
}

constexpr std::span<const NameRow> names[] = {embedding_names, attention_names, qk_norm_names, feed_forward_names,
                                              gemma_norm_names};

}  // namespace

const Family gemma3_text{.model_type = "gemma3_text",
                         .architecture = "Gemma3ForCausalLM",
                         .fields = fields,
                         .names = names,
                         .ignored = rope_buffers};

}  // namespace tapestry::hf
