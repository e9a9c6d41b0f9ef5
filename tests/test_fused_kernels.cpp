// Norm, softmax and cross-entropy kernels against loops in double, with strides, odd sizes, null outputs and every thread count.
// Not here: their differentiable definitions (the op table). Next: test_attention_kernel.cpp.
#include "../ops/kernels/cross_entropy.h"
#include "../ops/kernels/norm.h"
#include "../ops/kernels/softmax.h"
#include "kernel_reference.h"

using namespace tapestry;
using namespace tapestry::kernels;
using namespace tapestry::testing;

namespace {

using Doubles = std::vector<double>;

struct NormGradients {
  Doubles y, dx, dw, db;
};

// y, and the gradients of Σ g y, of a norm of dense rows.
NormGradients norm_reference(bool centred, int64_t rows, int64_t d, double eps, const Doubles& x, const Doubles& w,
                             const Doubles& b, const Doubles& g) {
  NormGradients r{x, x, Doubles(static_cast<size_t>(d)), Doubles(static_cast<size_t>(d))};
  const auto n = static_cast<double>(d);
  for (int64_t i = 0; i < rows; ++i) {
    const auto at = [&](int64_t j) { return static_cast<size_t>(i * d + j); };
    double mean = 0, var = 0, mean_gw = 0, mean_gwx = 0;
    if (centred)
      for (int64_t j = 0; j < d; ++j) mean += x[at(j)] / n;
    for (int64_t j = 0; j < d; ++j) var += (x[at(j)] - mean) * (x[at(j)] - mean) / n;
    const double inv = 1 / std::sqrt(var + eps);
    for (int64_t j = 0; j < d; ++j) {
      const auto c = static_cast<size_t>(j);
      const double hat = (x[at(j)] - mean) * inv;
      r.y[at(j)] = hat * w[c] + b[c];
      r.dw[c] += g[at(j)] * hat;
      r.db[c] += g[at(j)];
      mean_gw += centred ? g[at(j)] * w[c] / n : 0;
      mean_gwx += g[at(j)] * w[c] * hat / n;
    }
    for (int64_t j = 0; j < d; ++j) {
      const double hat = (x[at(j)] - mean) * inv;
      r.dx[at(j)] = inv * (g[at(j)] * w[static_cast<size_t>(j)] - mean_gw - hat * mean_gwx);
    }
  }
  return r;
}

template <class T>
Doubles widened(const std::vector<T>& x) {
  Doubles out;
  for (const T v : x) out.push_back(to_double(v));
  return out;
}

// Dense rows spread to a row stride, and back.
template <class T>
std::vector<T> spread(const std::vector<T>& x, int64_t d, int64_t stride) {
  std::vector<T> out;
  for (size_t i = 0; i < x.size(); i += static_cast<size_t>(d)) {
    out.insert(out.end(), x.begin() + static_cast<int64_t>(i), x.begin() + static_cast<int64_t>(i) + d);
    out.insert(out.end(), static_cast<size_t>(stride - d), T(7.0F));
  }
  return out;
}
template <class T>
std::vector<T> gathered(const std::vector<T>& x, int64_t d, int64_t stride) {
  std::vector<T> out;
  for (size_t i = 0; i < x.size(); i += static_cast<size_t>(stride))
    out.insert(out.end(), x.begin() + static_cast<int64_t>(i), x.begin() + static_cast<int64_t>(i) + d);
  return out;
}

template <class T, class W>
void check_norms(int64_t rows, int64_t d, bool affine) {
  using C = compute_t<T>;
  CAPTURE(rows);
  CAPTURE(d);
  const double eps = 1e-5, tol = 16 * epsilon<T>();
  const int64_t stride = d + 3;
  const auto x = values<T>(rows * d, 1), g = values<T>(rows * d, 2);
  const auto w = affine ? values<W>(d, 3) : std::vector<W>(static_cast<size_t>(d), W(1.0F));
  const auto b = affine ? values<W>(d, 4) : std::vector<W>(static_cast<size_t>(d), W(0.0F));
  const auto xs = spread(x, d, stride), gs = spread(g, d, stride);
  const Rows<const T> in{xs.data(), stride}, up{gs.data(), stride};
  const W *wp = affine ? w.data() : nullptr, *bp = affine ? b.data() : nullptr;
  std::vector<C> mean(static_cast<size_t>(rows)), inv(static_cast<size_t>(rows));
  std::vector<W> dw(static_cast<size_t>(d)), db(static_cast<size_t>(d)), dw_only(static_cast<size_t>(d));

  auto expected =
      norm_reference(false, rows, d, eps, widened(x), widened(w), Doubles(static_cast<size_t>(d)), widened(g));
  auto ys = spread(std::vector<T>(x.size()), d, stride), dxs = gs;
  rms_norm_forward<T, W>(rows, d, eps, in, wp, {ys.data(), stride}, inv.data());
  rms_norm_backward<T, W>(rows, d, in, wp, inv.data(), {dxs.data(), stride}, {dxs.data(), stride},
                          dw.data());  // in place of g
  CHECK(max_error(gathered(ys, d, stride), expected.y) <= tol);
  CHECK(max_error(gathered(dxs, d, stride), expected.dx) <= tol * static_cast<double>(affine ? 1 : 4));
  CHECK(max_error(dw, expected.dw) <= tol + epsilon<W>());
  CHECK(same_bits(spread(gathered(dxs, d, stride), d, stride), dxs));  // nothing written between rows
  rms_norm_backward<T, W>(rows, d, in, wp, inv.data(), up, {nullptr, 0}, dw_only.data());
  CHECK(same_bits(dw, dw_only));

  expected = norm_reference(true, rows, d, eps, widened(x), widened(w), widened(b), widened(g));
  layer_norm_forward<T, W>(rows, d, eps, in, wp, bp, {ys.data(), stride}, mean.data(), inv.data());
  layer_norm_backward<T, W>(rows, d, in, wp, mean.data(), inv.data(), up, {dxs.data(), stride}, dw.data(), db.data());
  const double amplified = d == 1 ? 1e3 : 1;  // one element: 1/√eps multiplies the rounding
  CHECK(max_error(gathered(ys, d, stride), expected.y) <= 2 * tol);
  CHECK(max_error(gathered(dxs, d, stride), expected.dx) <= 2 * amplified * tol);
  CHECK(max_error(dw, expected.dw) <= 2 * tol + epsilon<W>());
  CHECK(max_error(db, expected.db) <= 2 * tol + epsilon<W>());
}

// The expected line of a softmax family function over dense (outer, n, inner).
template <class F>
Doubles by_line(int64_t outer, int64_t n, int64_t inner, const Doubles& a, const Doubles& b, F line) {
  Doubles out(a.size());
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      const auto at = [&](int64_t k) { return static_cast<size_t>((o * n + k) * inner + i); };
      Doubles p, q;
      for (int64_t k = 0; k < n; ++k) p.push_back(a[at(k)]), q.push_back(b[at(k)]);
      p = line(p, q);
      for (int64_t k = 0; k < n; ++k) out[at(k)] = p[static_cast<size_t>(k)];
    }
  return out;
}

double log_sum(const Doubles& x) {
  double most = -INFINITY, sum = 0;
  for (const double v : x) most = std::max(most, v);
  for (const double v : x) sum += std::exp(v - most);
  return most + std::log(sum);
}

template <class T>
void check_softmax(int64_t outer, int64_t n, int64_t inner) {
  CAPTURE(outer);
  CAPTURE(n);
  CAPTURE(inner);
  const double tol = 16 * epsilon<T>();
  const int64_t size = outer * n * inner;
  auto x = values<T>(size, 1);
  for (T& v : x) v = convert<T>(8 * to_double(v));
  const auto g = values<T>(size, 2);
  std::vector<T> y(x.size()), dx(x.size());
  const auto soft = [](const Doubles& v, const Doubles&) {
    Doubles r;
    const double total = log_sum(v);
    for (const double u : v) r.push_back(std::exp(u - total));
    return r;
  };
  const auto log_soft = [](const Doubles& v, const Doubles&) {
    Doubles r;
    const double total = log_sum(v);
    for (const double u : v) r.push_back(u - total);
    return r;
  };
  softmax_forward(outer, n, inner, x.data(), y.data());
  CHECK(max_error(y, by_line(outer, n, inner, widened(x), widened(x), soft)) <= tol);
  softmax_backward(outer, n, inner, y.data(), g.data(), dx.data());
  CHECK(max_error(dx, by_line(outer, n, inner, widened(y), widened(g), [](const Doubles& p, const Doubles& up) {
                    Doubles r;
                    double sum = 0;
                    for (size_t k = 0; k < p.size(); ++k) sum += p[k] * up[k];
                    for (size_t k = 0; k < p.size(); ++k) r.push_back(p[k] * (up[k] - sum));
                    return r;
                  })) <= tol);
  log_softmax_forward(outer, n, inner, x.data(), y.data());
  CHECK(max_error(y, by_line(outer, n, inner, widened(x), widened(x), log_soft)) <= tol);
  log_softmax_backward(outer, n, inner, y.data(), g.data(), dx.data());
  CHECK(max_error(dx, by_line(outer, n, inner, widened(y), widened(g), [](const Doubles& p, const Doubles& up) {
                    Doubles r;
                    double sum = 0;
                    for (const double u : up) sum += u;
                    for (size_t k = 0; k < p.size(); ++k) r.push_back(up[k] - std::exp(p[k]) * sum);
                    return r;
                  })) <= 4 * tol);
}

template <class T>
void check_cross_entropy(int64_t n, int64_t classes) {
  using C = compute_t<T>;
  CAPTURE(n);
  CAPTURE(classes);
  const double tol = 32 * epsilon<T>();
  const int64_t stride = classes + 2;
  const auto dense = values<T>(n * classes, 1);
  const auto logits = spread(dense, classes, stride);
  std::vector<int64_t> targets;
  for (int64_t i = 0; i < n; ++i) targets.push_back(i % 3 == 1 ? -100 : (i * 7) % classes);
  std::vector<C> losses(static_cast<size_t>(n)), lse(static_cast<size_t>(n));
  Doubles expected_losses, expected_d;
  double sum = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    Doubles row = widened(std::vector<T>(dense.begin() + i * classes, dense.begin() + (i + 1) * classes));
    const double total = log_sum(row);
    const bool counted = targets[static_cast<size_t>(i)] != -100;
    const auto t = static_cast<size_t>(counted ? targets[static_cast<size_t>(i)] : 0);
    expected_losses.push_back(counted ? total - row[t] : 0);
    sum += expected_losses.back();
    count += counted;
    for (size_t j = 0; j < row.size(); ++j)
      expected_d.push_back(counted ? 0.5 * (std::exp(row[j] - total) - (j == t ? 1 : 0)) : 0);
  }
  const auto result =
      cross_entropy_forward(n, classes, logits.data(), stride, targets.data(), -100, losses.data(), lse.data());
  CHECK(result.bad_row == -1);
  CHECK(result.count == count);
  CHECK(result.loss == doctest::Approx(sum).epsilon(tol));
  CHECK(max_error(losses, expected_losses) <= tol);
  std::vector<T> d(dense.size());
  cross_entropy_backward<T>(n, classes, logits.data(), stride, targets.data(), -100, lse.data(), 0.5, nullptr, d.data(),
                            classes);
  CHECK(max_error(d, expected_d) <= tol);
  auto in_place = logits;
  const std::vector<C> scales(static_cast<size_t>(n), C(0.25));
  cross_entropy_backward<T>(n, classes, in_place.data(), stride, targets.data(), -100, lse.data(), 2.0, scales.data(),
                            in_place.data(), stride);
  CHECK(same_bits(gathered(in_place, classes, stride), d));
}

}  // namespace

TEST_SUITE("fused_kernels") {
  TEST_CASE("norms agree with their formulas in double") {
    for (const bool affine : {true, false})
      for (const auto& [rows, d] : {std::pair<int64_t, int64_t>{1, 1}, {3, 7}, {5, 16}, {130, 33}, {2, 1100}, {0, 5}}) {
        check_norms<double, double>(rows, d, affine);
        check_norms<float, float>(rows, d, affine);
        check_norms<bf16, float>(rows, d, affine);
        check_norms<bf16, bf16>(rows, d, affine);
      }
  }

  TEST_CASE("norms have the same bits for all thread counts") {
    const int64_t rows = 1000, d = 67;
    const auto x = values<float>(rows * d, 1), g = values<float>(rows * d, 2), w = values<float>(d, 3);
    CHECK(same_for_all_threads([&] {
      std::vector<float> out(static_cast<size_t>(2 * rows * d + 2 * d)), mean(rows), inv(rows);
      float *y = out.data(), *dx = y + rows * d, *dw = dx + rows * d;
      layer_norm_forward<float, float>(rows, d, 1e-5, {x.data(), d}, w.data(), w.data(), {y, d}, mean.data(),
                                       inv.data());
      layer_norm_backward<float, float>(rows, d, {x.data(), d}, w.data(), mean.data(), inv.data(), {g.data(), d},
                                        {dx, d}, dw, dw + d);
      return out;
    }));
  }

  TEST_CASE("sums of squares keep their accuracy in long rows") {
    const int64_t d = int64_t{1} << 21;
    const std::vector<float> x(static_cast<size_t>(d), 0.1F);
    std::vector<float> y(x.size());
    float inv = 0;
    rms_norm_forward<float, float>(1, d, 0.0, {x.data(), d}, nullptr, {y.data(), d}, &inv);
    CHECK(static_cast<double>(inv) == doctest::Approx(1 / static_cast<double>(0.1F)).epsilon(2e-7));
  }

  TEST_CASE("softmax and log_softmax agree with their formulas along any dim") {
    for (const int64_t outer : {1, 3})
      for (const int64_t n : {1, 5, 16, 33, 1000})
        for (const int64_t inner : {1, 3, 17}) {
          check_softmax<double>(outer, n, inner);
          check_softmax<float>(outer, n, inner);
          check_softmax<bf16>(outer, n, inner);
        }
    softmax_forward<float>(3, 0, 1, nullptr, nullptr);
    softmax_forward<float>(0, 3, 4, nullptr, nullptr);
  }

  TEST_CASE("softmax is stable, gives masked entries 0, and NaN for a line of -inf") {
    const float inf = INFINITY;
    std::vector<float> x = {1e30F, 1e30F, -inf, -inf, -inf, -inf}, y(6);
    softmax_forward<float>(2, 3, 1, x.data(), y.data());
    CHECK(y[0] == 0.5F);
    CHECK(y[2] == 0.0F);
    CHECK(std::isnan(y[3]));
    log_softmax_forward<float>(2, 3, 1, x.data(), y.data());
    CHECK(y[2] == -inf);
    CHECK(std::isnan(y[5]));
  }

  TEST_CASE("cross-entropy agrees with its formula and works in place") {
    for (const auto& [n, classes] : {std::pair<int64_t, int64_t>{1, 1}, {4, 3}, {7, 16}, {50, 65}, {3, 5000}, {0, 4}}) {
      check_cross_entropy<double>(n, classes);
      check_cross_entropy<float>(n, classes);
      check_cross_entropy<bf16>(n, classes);
    }
  }

  TEST_CASE("cross-entropy names the first bad target and survives extremes") {
    const std::vector<float> x = {1e4F, -1e4F, 0.0F, 0.0F, 1.0F, -INFINITY};
    std::vector<float> losses(2), lse(2), d(6);
    std::vector<int64_t> targets = {1, 3};
    CHECK(cross_entropy_forward(2, 3, x.data(), 3, targets.data(), -1, losses.data(), lse.data()).bad_row == 1);
    targets = {1, -1};
    const auto sum = cross_entropy_forward(2, 3, x.data(), 3, targets.data(), -1, losses.data(), lse.data());
    CHECK(sum.bad_row == -1);
    CHECK(sum.count == 1);
    CHECK(sum.loss == 2e4);
    targets = {0, 2};
    CHECK(cross_entropy_forward(2, 3, x.data(), 3, targets.data(), -1, losses.data(), lse.data()).loss == INFINITY);
    cross_entropy_backward<float>(2, 3, x.data(), 3, targets.data(), -1, lse.data(), 1.0, nullptr, d.data(), 3);
    CHECK(max_error(d, Doubles{0, 0, 0, 1 / (1 + std::exp(1.0)), 1 / (1 + std::exp(-1.0)), -1}) <= 1e-6);
  }

  TEST_CASE("cross-entropy and softmax have the same bits for all thread counts") {
    const int64_t n = 301, classes = 77;
    const auto x = values<float>(n * classes, 1);
    std::vector<int64_t> targets(static_cast<size_t>(n), 5);
    CHECK(same_for_all_threads([&] {
      std::vector<float> out(static_cast<size_t>(2 * n * classes + n)), losses(static_cast<size_t>(n));
      float* lse = out.data() + 2 * n * classes;
      cross_entropy_forward(n, classes, x.data(), classes, targets.data(), -1, losses.data(), lse);
      cross_entropy_backward<float>(n, classes, x.data(), classes, targets.data(), -1, lse, 1.0, nullptr, out.data(),
                                    classes);
      softmax_forward(7, 43, classes, x.data(), out.data() + n * classes);
      return out;
    }));
  }
}
