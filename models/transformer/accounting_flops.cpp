// The products of every layer, added up under their names. Next: accounting_memory.cpp.
#include "accounting_flops.h"

#include <algorithm>
#include <numeric>

#include "accounting_parameters.h"

namespace tapestry {
namespace {

class Table {
 public:
  void add(std::string_view product, int64_t flops) {
    const auto at = std::find_if(rows_.begin(), rows_.end(), [&](const FlopRow& r) { return r.product == product; });
    if (at != rows_.end())
      at->flops += flops;
    else
      rows_.push_back({product, flops});
  }
  [[nodiscard]] FlopTable take() { return {std::move(rows_)}; }

 private:
  std::vector<FlopRow> rows_;
};

/// Products of one network of the given width with n tokens.
int64_t feed_forward(const TransformerConfig& c, int64_t n, int64_t width) {
  return (c.gated ? 6 : 4) * n * c.d_model * width;
}

/// `tokens` queries that together see `pairs_of(layer)` keys.
template <class PairsOf>
FlopTable table_of(const TransformerConfig& c, int64_t tokens, const PairsOf& pairs_of) {
  Table t;
  const int64_t dh = c.head_width(), q = c.n_heads * dh, kv = c.n_kv_heads * dh, d = c.d_model;
  for (int64_t i = 0; i < c.n_layers; ++i) {
    t.add("q_proj", 2 * tokens * d * q);
    t.add("k_proj", 2 * tokens * d * kv);
    t.add("v_proj", 2 * tokens * d * kv);
    t.add("attention_scores", 2 * pairs_of(i) * q);
    t.add("attention_values", 2 * pairs_of(i) * q);
    t.add("o_proj", 2 * tokens * q * d);
    if (c.has_experts(i)) {
      t.add("router", 2 * tokens * d * c.n_experts);
      t.add("experts", feed_forward(c, tokens * c.experts_per_token, c.expert_width()));
      if (c.n_shared_experts > 0)
        t.add("shared_expert", feed_forward(c, tokens, c.n_shared_experts * c.expert_width()));
    } else {
      t.add("feed_forward", feed_forward(c, tokens, c.d_ff));
    }
  }
  t.add("lm_head", 2 * tokens * d * c.vocab_size);
  return t.take();
}

int64_t window_of(const TransformerConfig& c, int64_t layer) { return c.is_sliding(layer) ? c.window : 0; }

}  // namespace

int64_t FlopTable::forward_pass() const {
  return std::accumulate(rows.begin(), rows.end(), int64_t{0},
                         [](int64_t sum, const FlopRow& row) { return sum + row.flops; });
}

int64_t FlopTable::of(std::string_view product) const {
  for (const FlopRow& row : rows)
    if (row.product == product) return row.flops;
  return 0;
}

FlopTable flop_table(const TransformerConfig& c, int64_t rows, int64_t length, AttentionPairs pairs) {
  check_countable(c, rows, length);
  return table_of(c, rows * length, [&](int64_t layer) {
    return rows * (pairs == AttentionPairs::dense ? length * length : attended_pairs(length, window_of(c, layer)));
  });
}

FlopTable decode_flop_table(const TransformerConfig& c, int64_t rows, int64_t length) {
  check_countable(c, rows, length);
  return table_of(c, rows, [&](int64_t layer) {
    const int64_t window = window_of(c, layer);
    return rows * (window == 0 ? length : std::min(window, length));
  });
}

int64_t executed_training_flops(const TransformerConfig& c, int64_t rows, int64_t length, bool recompute) {
  const FlopTable table = flop_table(c, rows, length);
  const int64_t again = c.attention_dropout > 0 ? 0 : table.of("attention_scores");
  return table.training() + again + (recompute ? table.forward_pass() - table.of("lm_head") : 0);
}

int64_t six_n_d(const TransformerConfig& c, int64_t tokens) {
  check_countable(c, 1, tokens);
  const ParameterTable p = parameter_table(c);
  return 6 * (p.active() - p.token_embedding - p.position_embedding - p.lm_head) * tokens;
}

int64_t attended_pairs(int64_t length, int64_t window) {
  const int64_t w = window == 0 ? length : std::min(window, length);
  return w * (w + 1) / 2 + (length - w) * w;
}

}  // namespace tapestry
