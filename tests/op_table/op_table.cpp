#include "op_table.h"

namespace tapestry::op_table {

std::span<const Family> families() {
  static const Family list[] = {
      {"Pointwise, one operand", pointwise_rows(), "pointwise_rows.cpp"},
      {"Pointwise, several operands", binary_rows(), "binary_rows.cpp"},
      {"Views", view_rows(), "view_rows.cpp"},
      {"Splitting, joining and padding", join_rows(), "join_rows.cpp"},
      {"Reductions", reduce_rows(), "reduce_rows.cpp"},
      {"Indexing", index_rows(), "index_rows.cpp"},
      {"Products", matmul_rows(), "matmul_rows.cpp"},
      {"Einstein's sums, distances and other products", product_rows(), "product_rows.cpp"},
      {"Linear algebra", linalg_rows(), "linalg_rows.cpp"},
      {"Softmax and norms", norm_rows(), "norm_rows.cpp"},
      {"Losses", loss_rows(), "loss_rows.cpp"},
      {"Recurrent layers", recurrent_rows(), "recurrent_rows.cpp"},
      {"Rotary positions, attention, SwiGLU, dropout", attention_rows(), "attention_rows.cpp"},
  };
  return list;
}

}  // namespace tapestry::op_table
