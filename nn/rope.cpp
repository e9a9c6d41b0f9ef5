// The scaling rules, and one table per dtype, made when first asked for.
#include "rope.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numbers>

#include "../autograd/error.h"

namespace tapestry {
namespace {

constexpr double turn = 2 * std::numbers::pi;

std::vector<double> unscaled(int64_t rotary_dim, double theta) {
  std::vector<double> w;
  for (int64_t i = 0; i < rotary_dim; i += 2)
    w.push_back(std::pow(theta, -static_cast<double>(i) / static_cast<double>(rotary_dim)));
  return w;
}

/// θ·growth^(r/(r−2)): the lowest frequency falls by `growth`, the highest stays.
double stretched(double theta, double growth, int64_t rotary_dim) {
  const auto r = static_cast<double>(rotary_dim);
  return rotary_dim > 2 ? theta * std::pow(growth, r / (r - 2)) : theta;
}

/// Peng et al. 2023 with the ramp in the pair's index, as Hugging Face computes it.
void scale_yarn(std::vector<double>& w, double theta, const RopeScaling& s) {
  const auto r = static_cast<double>(2 * w.size()), trained = static_cast<double>(s.original_max_seq_len);
  const auto pair_of = [&](double turns) { return r * std::log(trained / (turns * turn)) / (2 * std::log(theta)); };
  double low = pair_of(s.beta_fast), high = pair_of(s.beta_slow);
  if (s.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, r - 1);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < w.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    w[i] = w[i] / s.factor * ramp + w[i] * (1 - ramp);
  }
}

void scale_llama3(std::vector<double>& w, const RopeScaling& s) {
  const auto trained = static_cast<double>(s.original_max_seq_len);
  for (double& f : w) {
    const double turns = trained * f / turn;  // in the trained length
    const double kept = std::clamp((turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor), 0.0, 1.0);
    f = (1 - kept) * f / s.factor + kept * f;
  }
}

}  // namespace

std::string_view name_of(RopeScalingRule rule) {
  constexpr std::string_view names[] = {"none", "linear", "ntk", "dynamic", "yarn", "yarn_simple", "llama3"};
  return names[static_cast<size_t>(rule)];
}

void validate(const RopeScaling& s) {
  using enum RopeScalingRule;
  if (s.rule == none) return;
  if (!(s.factor >= 1) || !std::isfinite(s.factor))
    fail<ValueError>("rope_scaling: factor is {}; it must be at least 1 and finite", s.factor);
  if (s.rule != linear && s.rule != ntk && s.original_max_seq_len < 1)
    fail<ValueError>("rope_scaling: original_max_seq_len is {}; rule {} needs the length the model was trained on",
                     s.original_max_seq_len, name_of(s.rule));
  if (s.rule == llama3 && !(s.low_freq_factor > 0 && s.high_freq_factor > s.low_freq_factor))
    fail<ValueError>("rope_scaling: low_freq_factor {} must be positive and below high_freq_factor {}",
                     s.low_freq_factor, s.high_freq_factor);
  if (s.rule == yarn && !(s.beta_slow > 0 && s.beta_fast > s.beta_slow))
    fail<ValueError>("rope_scaling: beta_slow {} must be positive and below beta_fast {}", s.beta_slow, s.beta_fast);
  if (!(s.attention_factor >= 0) || !std::isfinite(s.attention_factor))
    fail<ValueError>("rope_scaling: attention_factor is {}; it must be positive, or 0 for the rule's own",
                     s.attention_factor);
}

RopeFrequencies rope_frequencies(int64_t rotary_dim, double theta, const RopeScaling& s, int64_t max_positions) {
  using enum RopeScalingRule;
  if (rotary_dim < 0 || rotary_dim % 2 != 0 || !(theta > 0) || !std::isfinite(theta))
    fail<ValueError>("rope_frequencies: rotary_dim {} must be even and not negative, theta {} positive", rotary_dim,
                     theta);
  validate(s);
  RopeFrequencies f{.values = unscaled(rotary_dim, theta), .factor = 1};
  switch (s.rule) {
    case none:
      break;
    case linear:
      for (double& w : f.values) w /= s.factor;
      break;
    case ntk:
      f.values = unscaled(rotary_dim, stretched(theta, s.factor, rotary_dim));
      break;
    case dynamic: {
      const auto trained = static_cast<double>(s.original_max_seq_len);
      const double length = std::max(static_cast<double>(max_positions), trained);
      f.values = unscaled(rotary_dim, stretched(theta, s.factor * length / trained - (s.factor - 1), rotary_dim));
      break;
    }
    case yarn:
      scale_yarn(f.values, theta, s);
      f.factor = s.attention_factor != 0 ? s.attention_factor : 0.1 * std::log(s.factor) + 1;
      break;
    case yarn_simple:
      for (double& w : f.values)
        if (turn / w > static_cast<double>(s.original_max_seq_len)) w /= s.factor;
      break;
    case llama3:
      scale_llama3(f.values, s);
      break;
  }
  return f;
}

struct RotaryEmbedding::Tables {
  RopeFrequencies frequencies;
  int64_t max_positions;
  std::mutex mutex;
  RopeTable f32, f64;

  /// bf16 activations are turned in f32.
  const RopeTable& of(DType dtype) {
    const bool wide = dtype == DType::f64;
    RopeTable& table = wide ? f64 : f32;
    const std::lock_guard lock(mutex);
    if (!table.cos.defined())
      table = rope_table(max_positions, frequencies.values, frequencies.factor, wide ? DType::f64 : DType::f32);
    return table;
  }
};

RotaryEmbedding::RotaryEmbedding(int64_t rotary_dim, int64_t max_positions, RotaryOptions options)
    : max_positions_(max_positions), layout_(options.layout) {
  if (rotary_dim < 2 || rotary_dim % 2 != 0 || max_positions < 1 || !(options.theta > 0))
    fail<ValueError>("RotaryEmbedding: rotary_dim {} must be even and positive, max_positions {} and theta {} positive",
                     rotary_dim, max_positions, options.theta);
  tables_ = std::make_shared<Tables>();
  tables_->frequencies = rope_frequencies(rotary_dim, options.theta, options.scaling, max_positions);
  tables_->max_positions = max_positions;
}

Tensor RotaryEmbedding::forward(const Tensor& x, const Tensor& positions) const {
  return rope(x, tables_->of(x.dtype()), positions, layout_);
}

Tensor to_rope_layout(const Tensor& rows, RopeLayout layout, int64_t head_dim, int64_t rotary_dim) {
  if (rows.dim() < 1 || head_dim < 1 || rows.size(0) % head_dim != 0 || rotary_dim < 0 || rotary_dim > head_dim ||
      rotary_dim % 2 != 0)
    fail<ShapeError>(
        "to_rope_layout: rows are {}, head_dim {}, rotary_dim {}; dim 0 must be whole heads, rotary_dim "
        "even and at most head_dim",
        rows.describe(), head_dim, rotary_dim);
  std::vector<int64_t> from(static_cast<size_t>(rows.size(0)));
  for (int64_t row = 0; row < rows.size(0); ++row) {
    const int64_t head = row - row % head_dim, j = row % head_dim, half = rotary_dim / 2;
    int64_t source = j;
    if (j < rotary_dim)
      source =
          layout == RopeLayout::half ? (j < half ? 2 * j : 2 * (j - half) + 1) : (j % 2 == 0 ? j / 2 : half + j / 2);
    from[static_cast<size_t>(row)] = head + source;
  }
  return index_select(rows, 0, tapestry::from(from));
}

}  // namespace tapestry
