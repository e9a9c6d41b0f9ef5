// One pattern of mistake after the other, the most telling first. Next: gradcheck_run.h.
#include "gradcheck_hint.h"

#include <algorithm>
#include <cmath>

namespace tapestry::detail {
namespace {

/// Where element j of `shape` goes when the data of the last two dims are read as their transpose.
int64_t transposed(const Shape& shape, int64_t j) {
  const int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1], matrix = j / (rows * columns),
                k = j % (rows * columns);
  return matrix * rows * columns + k % rows * columns + k / rows;
}

/// Does analytic[m][n] equal right(m, n) everywhere?
template <class F>
bool matches(const Block& analytic, Tolerance t, F&& right) {
  for (int64_t m = 0; m < analytic.rows(); ++m)
    for (int64_t n = 0; n < analytic.columns(); ++n)
      if (!t.close(analytic.at(m, n), right(m, n))) return false;
  return true;
}

bool same_column_sums(const Block& a, const Block& b, Tolerance t) {
  for (int64_t n = 0; n < a.columns(); ++n) {
    double sa = 0, sb = 0;
    for (int64_t m = 0; m < a.rows(); ++m) {
      sa += a.at(m, n);
      sb += b.at(m, n);
    }
    if (!t.close(sa, sb)) return false;
  }
  return true;
}

std::string factor_hint(const Block& analytic, const Block& numeric, Tolerance t) {
  double ab = 0, bb = 0;
  for (size_t i = 0; i < analytic.values.size(); ++i) {
    ab += analytic.values[i] * numeric.values[i];
    bb += numeric.values[i] * numeric.values[i];
  }
  const double k = ab / bb;
  if (!std::isfinite(k) || !matches(analytic, t, [&](int64_t m, int64_t n) { return k * numeric.at(m, n); })) return "";
  if (std::abs(k) < 1e-9) return "analytic is 0 everywhere: the gradient of this input is missing";
  if (std::abs(k + 1) < 1e-3) return "analytic = -1 * numeric: the sign is wrong";
  std::string why = std::abs(k) > 1 ? "a factor is too much" : "a factor is missing";
  const double n = static_cast<double>(analytic.columns()) / static_cast<double>(analytic.rows());
  if (n > 1 && std::abs(k - n) < 1e-3 * n) why += fmt::format(" (a mean without its 1/{:.4g}?)", n);
  if (std::abs(k - 0.5) < 1e-3) why += " (or one of two uses of the input)";
  return fmt::format("analytic = {:.4g} * numeric everywhere: {}", k, why);
}

/// Is every column right for one of the outputs that read its element, and 0 for the others?
bool keeps_one_of_several(const Block& a, const Block& b, Tolerance t) {
  int64_t lost = 0;
  for (int64_t n = 0; n < a.columns(); ++n) {
    int64_t kept = 0, missing = 0;
    for (int64_t m = 0; m < a.rows(); ++m) {
      if (t.close(b.at(m, n), 0)) continue;
      if (t.close(a.at(m, n), b.at(m, n)))
        ++kept;
      else if (a.at(m, n) == 0)
        ++missing;
      else
        return false;
    }
    if (missing > 0 && kept != 1) return false;
    lost += missing;
  }
  return lost > 0;
}

/// Does analytic equal numeric moved by one step along a dim of `shape`, whose elements are the columns or the rows? What leaves the block is not compared.
bool moved_by_one(const Block& a, const Block& b, Tolerance t, const Shape& shape, bool columns) {
  const auto moved = [&](int64_t step) {
    double low = INFINITY, high = -INFINITY;
    for (int64_t m = 0; m < a.rows(); ++m)
      for (int64_t n = 0; n < a.columns(); ++n) {
        const int64_t row = columns ? m : m + step, column = columns ? n + step : n;
        if (row < 0 || row >= a.rows() || column < 0 || column >= a.columns()) continue;
        if (!t.close(a.at(m, n), b.at(row, column))) return false;
        low = std::min(low, b.at(row, column));
        high = std::max(high, b.at(row, column));
      }
    return !t.close(low, high);  // a block of one number looks the same wherever it is moved
  };
  int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    if (shape[d] > 1 && (moved(stride) || moved(-stride))) return true;
    stride *= shape[d];
  }
  return false;
}

/// Numeric minus analytic as one factor per output times one per input, as a sum over all elements leaves it.
bool rank_one_difference(const Block& a, const Block& b, Tolerance t) {
  if (a.rows() < 2 || a.columns() < 2) return false;
  const auto d = [&](int64_t m, int64_t n) { return b.at(m, n) - a.at(m, n); };
  int64_t p = 0, q = 0;
  for (int64_t m = 0; m < a.rows(); ++m)
    for (int64_t n = 0; n < a.columns(); ++n)
      if (std::abs(d(m, n)) > std::abs(d(p, q))) p = m, q = n;
  int64_t far = 0;
  for (int64_t m = 0; m < a.rows(); ++m)
    for (int64_t n = 0; n < a.columns(); ++n) {
      if (!t.close(d(m, n), d(m, q) * d(p, n) / d(p, q))) return false;
      far += m != p && n != q && !t.close(d(m, n), 0);
    }
  return far > 0;
}

}  // namespace

double Tolerance::bound(double right) const { return atol + rtol * std::abs(right); }
bool Tolerance::close(double value, double right) const {
  return value == right || std::abs(value - right) <= bound(right);
}

std::string hint(const Block& analytic, const Block& numeric, const std::vector<Block>& others, Tolerance t) {
  int64_t wrong = 0, zero = 0, infinite = 0;
  for (size_t i = 0; i < analytic.values.size(); ++i) {
    if (t.close(analytic.values[i], numeric.values[i])) continue;
    ++wrong;
    zero += analytic.values[i] == 0;
    infinite += !std::isfinite(analytic.values[i]);
  }
  if (infinite > 0) return fmt::format("analytic is not finite in {} of {} entries", infinite, analytic.values.size());
  if (std::string text = factor_hint(analytic, numeric, t); !text.empty()) return text;
  if (analytic.input.rank() >= 2 &&
      matches(analytic, t, [&](int64_t m, int64_t n) { return numeric.at(m, transposed(analytic.input, n)); }))
    return "the gradient is transposed";
  if (analytic.output.rank() >= 2 &&
      matches(analytic, t, [&](int64_t m, int64_t n) { return numeric.at(transposed(analytic.output, m), n); }))
    return "the upstream gradient was read transposed";
  for (size_t i = 0; i < others.size(); ++i)
    if (others[i].input == analytic.input &&
        matches(analytic, t, [&](int64_t m, int64_t n) { return others[i].at(m, n); }))
      return fmt::format("it is the gradient of checked input {}: two inputs are swapped", i);
  if (moved_by_one(analytic, numeric, t, analytic.input, true)) return "the gradient is written one element off";
  if (moved_by_one(analytic, numeric, t, analytic.output, false))
    return "the upstream gradient is read one element off";
  if (keeps_one_of_several(analytic, numeric, t))
    return "of the outputs that read an element only one adds to its gradient: contributions are written over, not "
           "added (a broadcast sum or a repeated index)";
  if (analytic.rows() > 1 && same_column_sums(analytic, numeric, t))
    return "it is right only for an all-ones upstream gradient";
  const std::string count = fmt::format("{} of {} entries differ", wrong, analytic.values.size());
  if (zero == wrong) return count + ", and analytic is 0 in all of these: a term is missing";
  if (rank_one_difference(analytic, numeric, t))
    return count + " by a product of an output's and an input's factor: a term that sums over elements is missing";
  return count + " by varying factors: a term is missing or wrong";
}

}  // namespace tapestry::detail
