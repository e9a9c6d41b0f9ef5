// How many parameters a Transformer has, component by component, from its configuration alone.
// Not here: what they cost to use (accounting_flops.h) and to hold (accounting_memory.h).
// Next: accounting_flops.h.
#pragma once

#include <vector>

#include "config.h"

namespace tapestry {

/// Parameters of one block, biases included.
struct LayerParameters {
  int64_t attention = 0;     ///< projections
  int64_t feed_forward = 0;  ///< the network every token takes: the only one, or the shared expert
  int64_t router = 0;
  int64_t experts = 0;            ///< all E of them
  int64_t experts_per_token = 0;  ///< the k of them that one token takes
  int64_t norms = 0;              ///< around the branches, and of queries and keys
  [[nodiscard]] int64_t total() const { return attention + feed_forward + router + experts + norms; }
};

struct ParameterTable {
  int64_t token_embedding = 0, position_embedding = 0;
  std::vector<LayerParameters> layers;
  int64_t final_norm = 0;
  int64_t lm_head = 0;  ///< 0 where it is tied

  [[nodiscard]] int64_t in_layers() const;
  [[nodiscard]] int64_t total() const;
  /// Without embeddings and head.
  [[nodiscard]] int64_t non_embedding() const { return in_layers() + final_norm; }
  /// Those one token meets: all but the experts it does not take.
  [[nodiscard]] int64_t active() const;
};

/// Equal to count_parameters of the model itself. ValueError for an invalid config, or one whose numbers do not fit.
ParameterTable parameter_table(const TransformerConfig& c);

/// ValueError for an invalid config, rows or length below 1, or where training on (rows, length) tokens would cost 2⁶² FLOPs or more.
void check_countable(const TransformerConfig& c, int64_t rows, int64_t length);

}  // namespace tapestry
