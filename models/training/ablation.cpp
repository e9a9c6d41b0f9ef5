// The rows, the runs one after the other, and the statistics.
// Next: ../programs/ablate.cpp.
#include "ablation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../../autograd/error.h"
#include "../../nn/visitor.h"
#include "../transformer/config_options.h"
#include "presets.h"
#include "stopwatch.h"

namespace tapestry {
namespace {

constexpr AblationRow rows[] = {
    {"base: pre-norm, RMSNorm, SwiGLU, RoPE", "{}"},
    {"post-norm", R"({"norm_placement": "post", "final_norm": false})"},
    {"LayerNorm", R"({"norm_kind": "layer"})"},
    {"SiLU without a gate, equal parameters", R"({"gated": false, "d_ff": 576})"},
    {"learned positions", R"({"positions": "learned"})"},
    {"no positions", R"({"positions": "none"})"},
    {"grouped queries, 2 key heads of 4", R"({"n_kv_heads": 2})"},
    {"QK norm", R"({"qk_norm": "head"})"},
    {"z-loss 1e-4", "{}", 1e-4},
};

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Standard deviation of one run, from the deviations of every row from its own mean; 0 with one seed.
double pooled_deviation(std::span<const AblationResult> results) {
  double squares = 0;
  size_t freedom = 0;
  for (const AblationResult& r : results) {
    const double centre = mean(r.losses);
    for (const double loss : r.losses) squares += (loss - centre) * (loss - centre);
    freedom += r.losses.size() - 1;
  }
  return freedom == 0 ? 0 : std::sqrt(squares / static_cast<double>(freedom));
}

}  // namespace

std::span<const AblationRow> ablation_rows() { return rows; }

TrainConfig ablation_config(const AblationRow& row, int64_t seed) {
  TrainConfig c = preset("nano");
  c.model.vocab_size = 1;  // any; the text's comes later
  c.model = with_fields(c.model, row.model);
  c.model.vocab_size = 0;
  c.z_loss = row.z_loss;
  c.seed = seed;
  return c;
}

std::vector<AblationResult> run_ablation(const std::string& data, int64_t max_seeds, double max_seconds, int64_t steps,
                                         const std::function<void(const std::string& line)>& told) {
  if (max_seeds < 1) fail<ValueError>("ablate: seeds is {}; it must be at least 1", max_seeds);
  if (steps < 0) fail<ValueError>("ablate: steps is {}; it must not be negative; 0 takes the preset's", steps);
  std::vector<AblationResult> results(std::size(rows));
  double total = 0;
  for (int64_t seed = 1; seed <= max_seeds; ++seed) {
    if (seed > 1 && total + total / static_cast<double>(seed - 1) > max_seconds) break;
    for (size_t i = 0; i < std::size(rows); ++i) {
      TrainConfig config = ablation_config(rows[i], seed);
      if (steps > 0) config.steps = steps;
      const TrainingText text = TrainingText::read(data, config.tokenizer, config.held_out);
      double seconds = 0;
      {
        const Stopwatch time(seconds);
        Trainer trainer(config, text);
        while (!trainer.finished()) trainer.step();
        results[i].parameters = count_parameters(trainer.model());
        results[i].losses.push_back(trainer.evaluate(true).mean());
      }
      results[i].seconds.push_back(seconds);
      total += seconds;
      told(fmt::format("seed {}, {}: loss {:.4f}, {:.0f} s", seed, rows[i].name, results[i].losses.back(), seconds));
    }
  }
  return results;
}

std::string ablation_table(std::span<const AblationRow> names, std::span<const AblationResult> results) {
  const double deviation = pooled_deviation(results), base = mean(results[0].losses);
  const size_t seeds = results[0].losses.size();
  const double error = deviation * std::sqrt(2.0 / static_cast<double>(seeds));
  std::string text =
      "| configuration | parameters | held-out loss | spread | difference | more than noise? |\n"
      "|---|---|---|---|---|---|\n";
  for (size_t i = 0; i < results.size(); ++i) {
    const auto& losses = results[i].losses;
    const auto [low, high] = std::minmax_element(losses.begin(), losses.end());
    const double centre = mean(losses), difference = centre - base;
    const std::string_view verdict = i == 0                              ? ""
                                     : seeds == 1                        ? "unknown: one seed"
                                     : std::abs(difference) <= 2 * error ? "no"
                                     : difference < 0                    ? "yes, better"
                                                                         : "yes, worse";
    text += fmt::format("| {} | {} | {:.4f} | {:.4f} | {} | {} |\n", names[i].name, results[i].parameters, centre,
                        *high - *low, i == 0 ? "" : fmt::format("{:+.4f}", difference), verdict);
  }
  text += fmt::format(
      "\n{} seed{} a row; spread is the largest loss less the smallest. One run deviates by {:.4f} (pooled over all "
      "rows), so "
      "a difference of two means has standard error {:.4f}, and counts from {:.4f} on.\n",
      seeds, seeds == 1 ? "" : "s", deviation, error, 2 * error);
  return text;
}

}  // namespace tapestry
