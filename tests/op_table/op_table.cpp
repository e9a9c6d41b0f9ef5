#include "op_table.h"

namespace tapestry::op_table {

std::span<const Family> families() {
  static const Family list[] = {
      {"Pointwise, one operand", pointwise_rows()},
      {"Pointwise, several operands", binary_rows()},
      {"Views", view_rows()},
      {"Splitting, joining and padding", join_rows()},
      {"Reductions", reduce_rows()},
      {"Indexing", index_rows()},
      {"Products", matmul_rows()},
      {"Softmax and norms", norm_rows()},
      {"Losses", loss_rows()},
      {"Rotary positions, attention, SwiGLU, dropout", attention_rows()},
  };
  return list;
}

}  // namespace tapestry::op_table
