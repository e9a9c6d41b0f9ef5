// What one structural choice is worth: a base configuration and its alternatives, trained alike and compared.
// Not here: the choices themselves (../transformer/config_options.h).
// Next: presets.h.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer.h"

namespace tapestry {

/// One row: the nano preset with some fields changed.
struct AblationRow {
  std::string_view name;
  std::string_view model;  ///< fields of the model, as a JSON object
  double z_loss = 0;       ///< of training
};
/// The base first, then its alternatives, each at the base's number of parameters or as near as the choice allows.
std::span<const AblationRow> ablation_rows();
/// The configuration of a row, trained with this seed.
TrainConfig ablation_config(const AblationRow& row, int64_t seed);

struct AblationResult {
  int64_t parameters = 0;
  std::vector<double> losses;   ///< over the whole held-out part, one a seed
  std::vector<double> seconds;  ///< of training, one a seed
};

/// Trains every row with seed 1, then with seed 2, and so on, up to max_seeds and while another round is expected to end
/// within max_seconds. `told` hears of every run. Steps as the preset, or `steps`.
std::vector<AblationResult> run_ablation(const std::string& data, int64_t max_seeds, double max_seconds, int64_t steps,
                                         const std::function<void(const std::string& line)>& told);

/// The results as a table in Markdown: mean loss, spread over seeds, difference from the base, and whether that is more
/// than chance. A difference counts if it exceeds two standard errors, by the deviation pooled over all rows; with one
/// seed none can.
std::string ablation_table(std::span<const AblationRow> rows, std::span<const AblationResult> results);

}  // namespace tapestry
