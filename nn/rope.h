// Rotary positions: the frequencies, scaled for long contexts, the table of angles, and its use. Su et al. 2021.
// Not here: the rotation (ops/rope.cpp).
// Next: attention.h.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "../ops/ops.h"
#include "module.h"

namespace tapestry {

/// How frequencies change for contexts longer than the trained one; s is the factor, L the trained length, wᵢ the
/// frequency of pair i of r/2.
enum class RopeScalingRule {
  none,
  linear,   ///< wᵢ/s (Chen et al. 2023)
  ntk,      ///< base θ·s^(r/(r−2)) (the "NTK-aware" base)
  dynamic,  ///< base θ·(s·n/L − (s − 1))^(r/(r−2)) for the n = max(max_positions, L) positions of the table
  yarn,  ///< wᵢ/s where a pair turns less than beta_slow times in L, wᵢ above beta_fast, a ramp in i between; tables
         ///< times 0.1·ln s + 1 (Peng et al. 2023)
  yarn_simple,  ///< wᵢ/s where the wavelength 2π/wᵢ exceeds L, else wᵢ
  llama3  ///< wᵢ/s for wavelengths above L/low_freq_factor, wᵢ below L/high_freq_factor, blended between (Llama 3)
};

struct RopeScaling {
  RopeScalingRule rule = RopeScalingRule::none;
  double factor = 1;                                 ///< s
  int64_t original_max_seq_len = 0;                  ///< L; needed by all but linear and ntk
  double low_freq_factor = 1, high_freq_factor = 4;  ///< llama3
  double beta_fast = 32, beta_slow = 1;              ///< yarn
  bool truncate = true;                              ///< yarn: ends of the ramp at whole pairs
  double attention_factor = 0;                       ///< yarn: what the tables are multiplied by; 0: 0.1·ln s + 1
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};
std::string_view name_of(RopeScalingRule rule);
/// ValueError naming the field out of its domain for the rule.
void validate(const RopeScaling& scaling);

struct RopeFrequencies {
  std::vector<double> values;  ///< one a pair, θ^(−2i/r) where unscaled
  double factor = 1;           ///< of the table's cosines and sines, so that scores get its square
};
/// The rule applied, in f64. ValueError for an odd rotary_dim, a theta that is not positive, or a bad scaling.
RopeFrequencies rope_frequencies(int64_t rotary_dim, double theta, const RopeScaling& scaling = {},
                                 int64_t max_positions = 0);

struct RotaryOptions {
  double theta = 10000.0;
  RopeLayout layout = RopeLayout::adjacent;
  RopeScaling scaling = {};
};

/// Turns the first rotary_dim entries of every head by position · frequency. The tables follow from the options: they
/// are in no state dict, and there is one for each dtype that was asked for.
class RotaryEmbedding : public Layer<RotaryEmbedding> {
 public:
  /// ValueError for an odd rotary_dim or fewer than one position, or a bad scaling.
  RotaryEmbedding(int64_t rotary_dim, int64_t max_positions, RotaryOptions options = {});

  /// x (B, H, T, Dh), (B, T, Dh) or (T, Dh); positions i64 (T) or (B, T), undefined for 0 … T−1.
  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& positions = {}) const;
  [[nodiscard]] int64_t max_positions() const { return max_positions_; }

 private:
  struct Tables;
  int64_t max_positions_;
  RopeLayout layout_;
  std::shared_ptr<Tables> tables_;  // never changed once made, so copies share them
};

/// Rows of a projection to queries or keys (…, heads·head_dim rows first), reordered so that what the one layout
/// computes with the old rows, the other computes with the new: half-layout row j of a head is adjacent-layout row
/// 0, 2, 4 …, 1, 3, 5 … of the rotary_dim rows that turn. ShapeError unless the rows are whole heads.
Tensor to_rope_layout(const Tensor& rows, RopeLayout layout, int64_t head_dim, int64_t rotary_dim);

}  // namespace tapestry
