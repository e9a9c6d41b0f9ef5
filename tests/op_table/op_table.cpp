#include "op_table.h"

namespace tapestry::op_table {

std::span<const Family> families() {
  static const Family list[] = {
      {"Pointwise, one operand", pointwise_rows()},
      {"Pointwise, several operands", binary_rows()},
      {"Views and shape", view_rows()},
      {"Reductions", reduce_rows()},
      {"Indexing", index_rows()},
      {"Products", matmul_rows()},
      {"Softmax, norms, losses, attention", nn_rows()},
  };
  return list;
}

}  // namespace tapestry::op_table
