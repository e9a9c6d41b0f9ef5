// The rules, one after the other. Next: accounting_report.h.
#include "rules_of_thumb.h"

#include <algorithm>
#include <cmath>

#include "../../autograd/error.h"

namespace tapestry {
namespace {

double ratio(int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

/// d_ff of the rule, within 5 %, or one step of 64 where that is not much more.
RuleOfThumb feed_forward(const TransformerConfig& c) {
  const double wanted = c.gated ? 8.0 / 3 * static_cast<double>(c.d_model) : 4.0 * static_cast<double>(c.d_model);
  return {
      .what = "d_ff / d_model",
      .value = fmt::format("{:.3f}", ratio(c.d_ff, c.d_model)),
      .usual = c.gated ? "8/3, to a multiple of 64" : "4",
      .reason = "three matrices of a gated network hold what two of width 4·d_model do",
      .kept = std::abs(static_cast<double>(c.d_ff) - wanted) <= std::max(0.05 * wanted, std::min(64.0, 0.15 * wanted))};
}

RuleOfThumb heads(const TransformerConfig& c) {
  return {.what = "n_heads · head_dim / d_model",
          .value = fmt::format("{:.3f}", ratio(c.n_heads * c.head_width(), c.d_model)),
          .usual = "1",
          .reason = "more heads make each narrower at the same cost",
          .kept = std::abs(ratio(c.n_heads * c.head_width(), c.d_model) - 1) <= 0.05};
}

RuleOfThumb aspect(const TransformerConfig& c) {
  const double d = ratio(c.d_model, c.n_layers);
  return {.what = "d_model / n_layers",
          .value = fmt::format("{:.1f}", d),
          .usual = "100 to 200",
          .reason = "layers run one after the other; width makes larger products",
          .kept = d >= 100 && d <= 200};
}

RuleOfThumb vocabulary(const TransformerConfig& c) {
  const auto between = [&](int64_t low, int64_t high) { return c.vocab_size >= low && c.vocab_size <= high; };
  return {.what = "vocab_size",
          .value = fmt::format("{}", c.vocab_size),
          .usual = "30,000 to 50,000 (one language), 100,000 to 250,000 (many)",
          .reason = "fewer tokens a text against a larger embedding and head",
          .kept = between(30'000, 51'000) || between(100'000, 263'000)};  // GPT-2 has 50,257, Gemma 262,144
}

RuleOfThumb dropout(const TransformerConfig& c) {
  const double most = std::max({c.attention_dropout, c.residual_dropout, c.embedding_dropout});
  return {.what = "dropout",
          .value = fmt::format("{}", most),
          .usual = "0",
          .reason = "a large text is not seen twice; weight decay stays",
          .kept = most == 0};
}

RuleOfThumb multiples(const TransformerConfig& c) {
  std::string odd;
  for (const auto& [name, value] : {std::pair{"d_model", c.d_model},
                                    {"d_ff", c.d_ff},
                                    {"q", c.n_heads * c.head_width()},
                                    {"k and v", c.n_kv_heads * c.head_width()},
                                    {"vocab_size", c.vocab_size}})
    if (value % 64 != 0) odd += fmt::format("{}{} {}", odd.empty() ? "" : ", ", name, value);
  return {.what = "widths",
          .value = odd.empty() ? "all are" : "not: " + odd,
          .usual = "multiples of 64",
          .reason = "products run fastest on whole blocks",
          .kept = odd.empty()};
}

}  // namespace

std::vector<RuleOfThumb> rules_of_thumb(const TransformerConfig& c) {
  c.validate();
  return {feed_forward(c), heads(c), aspect(c), vocabulary(c), dropout(c), multiples(c)};
}

}  // namespace tapestry
