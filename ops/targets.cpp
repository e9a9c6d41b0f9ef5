// The checks of targets.h and their messages.
// Next: cross_entropy.cpp.
#include "targets.h"

#include <cmath>

#include "error_text.h"

namespace tapestry::detail {

void fail_target(std::string_view op, const Tensor& targets, int64_t i, int64_t classes) {
  fail<IndexError>("{}: target {} at {} is out of range for {} classes", op, dense(targets).data<int64_t>()[i],
                   place_of(targets.shape(), i), classes);
}

void require_target_rows(std::string_view op, const char* name, const Tensor& x, const Tensor& targets) {
  require_defined(op, targets);
  Shape rows;
  for (int d = 0; d + 1 < x.dim(); ++d) rows.push_back(x.shape()[d]);
  if (x.dim() == 0 || targets.shape() != rows)
    fail<ShapeError>("{}: {} is {}, targets is {}; targets must have the shape of {} without its last dim", op, name,
                     x.describe(), targets.describe(), name);
  if (targets.dtype() != DType::i64)
    fail<DTypeError>("{}: targets is {}; it must be i64: convert with to(x, DType::i64)", op, targets.describe());
}

void require_classes(std::string_view op, const char* name, const Tensor& holder, int64_t classes,
                     const Tensor& targets) {
  if (classes == 0 && targets.numel() > 0)
    fail<ShapeError>("{}: {} is {}, targets is {}; there must be a class to choose", op, name, holder.describe(),
                     targets.describe());
}

int64_t kept_targets(std::string_view op, const Tensor& targets, int64_t classes, int64_t ignore_index) {
  const Tensor t = dense(targets);
  const auto* p = t.data<int64_t>();
  int64_t kept = 0;
  for (int64_t i = 0; i < t.numel(); ++i) {
    if (p[i] == ignore_index) continue;
    if (p[i] < 0 || p[i] >= classes) fail_target(op, targets, i, classes);
    ++kept;
  }
  return kept;
}

void require_loss_terms(std::string_view op, double label_smoothing, double z_loss) {
  if (!(label_smoothing >= 0 && label_smoothing <= 1))
    fail<ValueError>("{}: label_smoothing is {}; it must be from 0 to 1", op, label_smoothing);
  if (!(z_loss >= 0 && std::isfinite(z_loss)))
    fail<ValueError>("{}: z_loss is {}; it must be finite and not negative", op, z_loss);
}

}  // namespace tapestry::detail
