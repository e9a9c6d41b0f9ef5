// The list of families. Next: row.h.
#include "op_table.h"

namespace tapestry::op_table {

std::span<const Family> families() {
  static const Family list[] = {
      {"Pointwise, one operand", pointwise_rows(), "pointwise_rows.cpp"},
      {"Activations", activation_rows(), "activation_rows.cpp"},
      {"Pointwise, several operands", binary_rows(), "binary_rows.cpp"},
      {"Functions of several operands", function_rows(), "function_rows.cpp"},
      {"Views", view_rows(), "view_rows.cpp"},
      {"Rearranging and repeating", rearrange_rows(), "rearrange_rows.cpp"},
      {"Diagonals, windows, strides", stride_rows(), "stride_rows.cpp"},
      {"Splitting, joining and padding", join_rows(), "join_rows.cpp"},
      {"Reductions", reduce_rows(), "reduce_rows.cpp"},
      {"Variance and norms", statistics_rows(), "statistics_rows.cpp"},
      {"Running sums, products and extremes", scan_rows(), "scan_rows.cpp"},
      {"Sorting and ranks", sort_rows(), "sort_rows.cpp"},
      {"Indexing", index_rows(), "index_rows.cpp"},
      {"Scattering and segments", scatter_rows(), "scatter_rows.cpp"},
      {"Indexing as in NumPy", advanced_index_rows(), "advanced_index_rows.cpp"},
      {"Products", matmul_rows(), "matmul_rows.cpp"},
      {"Einstein's sums, distances and other products", product_rows(), "product_rows.cpp"},
      {"Linear algebra", linalg_rows(), "linalg_rows.cpp"},
      {"Softmax and norms", norm_rows(), "norm_rows.cpp"},
      {"Batch, group and instance norm", channel_norm_rows(), "channel_norm_rows.cpp"},
      {"Cross-entropy", loss_rows(), "loss_rows.cpp"},
      {"Losses of pairs", pair_loss_rows(), "pair_loss_rows.cpp"},
      {"Convolution", conv_rows(), "conv_rows.cpp"},
      {"Pooling and resizing", pool_rows(), "pool_rows.cpp"},
      {"Recurrent layers", recurrent_rows(), "recurrent_rows.cpp"},
      {"Rotary positions, attention, SwiGLU, dropout", attention_rows(), "attention_rows.cpp"},
  };
  return list;
}

}  // namespace tapestry::op_table
