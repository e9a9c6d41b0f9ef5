// The table of sines and cosines.
#include "positions.h"

#include <cmath>
#include <vector>

#include "../autograd/error.h"
#include "../ops/ops.h"

namespace tapestry {

Tensor sinusoidal_positions(int64_t max_positions, int64_t d_model, DType dtype) {
  if (max_positions < 1 || d_model < 1)
    fail<ValueError>("sinusoidal_positions: max_positions {} and d_model {} must be at least 1", max_positions,
                     d_model);
  std::vector<double> values;
  values.reserve(static_cast<size_t>(max_positions * d_model));
  for (int64_t p = 0; p < max_positions; ++p)
    for (int64_t j = 0; j < d_model; ++j) {
      const double angle =
          static_cast<double>(p) * std::pow(10000.0, -static_cast<double>(j - j % 2) / static_cast<double>(d_model));
      values.push_back(j % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  return to(from(values, {max_positions, d_model}), dtype);
}

}  // namespace tapestry
