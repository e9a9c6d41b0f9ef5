// The op table: every public op of ops/ops.h, each with its reference, samples, bounds and error texts.
// Tests, benchmarks and the page of ops read it; adding an op adds a row to its family's file.
// Next: row.h.
#pragma once

#include <span>

#include "row.h"

namespace tapestry::op_table {

std::span<const OpRow> pointwise_rows();
std::span<const OpRow> activation_rows();
std::span<const OpRow> binary_rows();
std::span<const OpRow> function_rows();
std::span<const OpRow> view_rows();
std::span<const OpRow> rearrange_rows();
std::span<const OpRow> stride_rows();
std::span<const OpRow> join_rows();
std::span<const OpRow> reduce_rows();
std::span<const OpRow> statistics_rows();
std::span<const OpRow> scan_rows();
std::span<const OpRow> sort_rows();
std::span<const OpRow> index_rows();
std::span<const OpRow> scatter_rows();
std::span<const OpRow> advanced_index_rows();
std::span<const OpRow> matmul_rows();
std::span<const OpRow> product_rows();
std::span<const OpRow> linalg_rows();
std::span<const OpRow> norm_rows();
std::span<const OpRow> channel_norm_rows();
std::span<const OpRow> loss_rows();
std::span<const OpRow> pair_loss_rows();
std::span<const OpRow> attention_rows();
std::span<const OpRow> conv_rows();
std::span<const OpRow> pool_rows();
std::span<const OpRow> recurrent_rows();

struct Family {
  const char* title;
  std::span<const OpRow> rows;
  const char* file;  ///< of the rows
};
/// All families, in the order of ops.h.
std::span<const Family> families();

}  // namespace tapestry::op_table
