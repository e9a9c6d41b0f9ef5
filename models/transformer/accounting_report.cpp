// The sections, one function each. Next: accounting_text.cpp.
#include "accounting_report.h"

#include <algorithm>

#include "../../autograd/error.h"
#include "accounting_flops.h"
#include "accounting_memory.h"
#include "accounting_parameters.h"
#include "rules_of_thumb.h"

namespace tapestry {
namespace {

std::string percent(int64_t part, int64_t whole) {
  return fmt::format("{:.1f} %", whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole));
}

ReportSection parameters(const TransformerConfig& c) {
  const ParameterTable p = parameter_table(c);
  const int64_t total = p.total();
  ReportSection s{"parameters", "parameters", {}};
  const auto row = [&](const char* name, int64_t n) {
    if (n > 0) s.rows.push_back({name, n, Unit::count, percent(n, total)});
  };
  LayerParameters all;
  for (const LayerParameters& layer : p.layers) {
    all.attention += layer.attention;
    all.feed_forward += layer.feed_forward;
    all.router += layer.router;
    all.experts += layer.experts;
    all.norms += layer.norms;
  }
  row("token_embedding", p.token_embedding);
  row("position_embedding", p.position_embedding);
  row("attention", all.attention);
  row("feed_forward", all.feed_forward);
  row("router", all.router);
  row("experts", all.experts);
  row("norms", all.norms + p.final_norm);
  row("lm_head", p.lm_head);
  s.rows.push_back({"total", total, Unit::count});
  s.rows.push_back({"non_embedding", p.non_embedding(), Unit::count, "without embeddings and head"});
  if (p.active() != total) s.rows.push_back({"active", p.active(), Unit::count, "met by one token"});
  return s;
}

ReportSection flops(const TransformerConfig& c, int64_t rows, int64_t length) {
  const FlopTable dense = flop_table(c, rows, length), seen = flop_table(c, rows, length, AttentionPairs::attended);
  ReportSection s{"flops", fmt::format("FLOPs of a forward pass on {} × {} tokens, by product", rows, length), {}};
  for (const FlopRow& row : dense.rows)
    s.rows.push_back({std::string(row.product), row.flops, Unit::flops, percent(row.flops, dense.forward_pass())});
  s.rows.push_back({"forward", dense.forward_pass(), Unit::flops, "all pairs of query and key"});
  s.rows.push_back({"forward_attended", seen.forward_pass(), Unit::flops, "pairs that causality and windows leave"});
  s.rows.push_back({"training_step", dense.training(), Unit::flops, "forward, and twice that in backward"});
  s.rows.push_back(
      {"executed", executed_training_flops(c, rows, length), Unit::flops, "with the scores again in backward"});
  s.rows.push_back(
      {"executed_recompute", executed_training_flops(c, rows, length, true), Unit::flops, "and the blocks again"});
  s.rows.push_back({"six_n_d", six_n_d(c, rows * length), Unit::flops, "6·N·D, the rule of thumb"});
  return s;
}

ReportSection training_memory_of(const TransformerConfig& c, int64_t length, const AccountingOptions& o) {
  ReportSection s{
      "training_memory", fmt::format("memory of a training step on {} × {} tokens, f32", o.rows, length), {}};
  const TrainingMemory plain = training_memory(c, o.rows, length, {.accumulate = o.accumulate});
  const TrainingMemory less = training_memory(c, o.rows, length, {.recompute = true, .accumulate = o.accumulate});
  const int64_t parameters = 4 * parameter_table(c).total();
  const auto row = [&](const char* name, int64_t bytes, const char* note) {
    s.rows.push_back({name, bytes, Unit::bytes, note});
  };
  row("parameters", parameters, "");
  row("gradients", parameters, "at the end of backward");
  row("optimizer", optimizer_bytes(c), "AdamW's two moments");
  row("activations_listed", 4 * activation_list(c, o.rows, length).elements(),
      "every intermediate result once, (T, T) scores among them");
  row("activations", plain.saved, "kept for backward");
  row("activations_recompute", less.saved, "with --recompute");
  row("peak", plain.peak.total(), "of all tensors together");
  row("peak_gradients", plain.peak[MemoryKind::gradient], "of the peak, as the next two");
  row("peak_saved", plain.peak[MemoryKind::saved], "for backward");
  row("peak_temporary", plain.peak[MemoryKind::temporary], "inside ops, and gradients on their way");
  row("peak_recompute", less.peak.total(), "with --recompute");
  row("allocated", plain.allocated, "peak, each tensor rounded up to its block");
  row("allocated_recompute", less.allocated, "with --recompute");
  return s;
}

ReportSection decoding(const TransformerConfig& c, int64_t length, const AccountingOptions& o) {
  ReportSection s{"decoding",
                  fmt::format("decoding token {} of {} sequence{}, weights {}, cache {}", length, o.decoded_rows,
                              o.decoded_rows == 1 ? "" : "s", name_of(o.weights), name_of(o.cache)),
                  {}};
  const DecodeCost cost = decode_cost(c, o.decoded_rows, length, o.weights, o.cache);
  s.rows = {{"kv_cache_per_token", kv_cache_bytes_per_token(c, o.cache), Unit::bytes,
             "of one sequence, while no window is full"},
            {"kv_cache", kv_cache_bytes(c, o.decoded_rows, length, o.cache), Unit::bytes, "at this length"},
            {"weights_read", cost.weight_bytes, Unit::bytes, "for each token"},
            {"cache_read", cost.cache_bytes, Unit::bytes, "for each token"},
            {"flops", cost.flops, Unit::flops, "for each token"},
            {"intensity", cost.intensity(), Unit::none, "FLOPs a byte"}};
  if (o.decoded_rows > 1)
    for (ReportRow& row : s.rows)
      if (row.note == "for each token") row.note = "for each step, a token of every sequence";
  return s;
}

ReportSection times(const TransformerConfig& c, int64_t length, const AccountingOptions& o) {
  const MachineProfile& m = *o.machine;
  ReportSection s{"time",
                  fmt::format("estimated time on a machine of {:.0f} GFLOP/s and {:.1f} GB/s, {} thread{}",
                              m.products.back().rate, m.pointwise_gbs, m.threads, m.threads == 1 ? "" : "s"),
                  {}};
  const double step = training_time(m, c, o.rows, length).seconds(),
               again = training_time(m, c, o.rows, length, true).seconds();
  const double token = decode_time(m, c, length, o.weights, o.cache).seconds();
  const auto rate = [](double tokens, double seconds) { return fmt::format("{:.0f} tokens/s", tokens / seconds); };
  const auto tokens = static_cast<double>(o.rows * length);
  s.rows = {{"training_step", step, Unit::seconds, rate(tokens, step)},
            {"training_step_recompute", again, Unit::seconds, rate(tokens, again)},
            {"decoded_token", token, Unit::seconds, rate(1, token)}};
  return s;
}

ReportSection rules(const TransformerConfig& c) {
  ReportSection s{"rules_of_thumb", "rules of thumb", {}};
  for (const RuleOfThumb& rule : rules_of_thumb(c))
    s.rows.push_back({rule.what, rule.value, Unit::none, rule.usual, rule.kept});
  return s;
}

}  // namespace

std::vector<ReportSection> accounting_report(const TransformerConfig& c, const AccountingOptions& o) {
  const int64_t length = o.length == 0 ? c.max_seq_len : o.length;
  check_countable(c, std::max(o.rows, o.decoded_rows), length);
  std::vector<ReportSection> report{parameters(c), flops(c, o.rows, length), training_memory_of(c, length, o),
                                    decoding(c, length, o)};
  if (o.machine) report.push_back(times(c, length, o));
  report.push_back(rules(c));
  return report;
}

}  // namespace tapestry
