// Dropout: how much it keeps, that backward draws forward's mask, and that seed and call decide it alone.
#include "op_checks.h"

using namespace tapestry;
using namespace tapestry::testing;

TEST_SUITE("dropout") {
  TEST_CASE("keeps a share of 1 − p, scaled to keep the mean") {
    manual_seed(7);
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
      for (const double p : {0.1, 0.5, 0.9}) {
        const auto y = dropout(ones({20000}, dtype), p).to_vector<double>();
        int64_t kept = 0;
        for (const double v : y) {
          kept += v != 0 ? 1 : 0;
          CHECK((v == 0 || std::abs(v - 1 / (1 - p)) <= (dtype == DType::bf16 ? 0.05 : 1e-6)));
        }
        CHECK(std::abs(static_cast<double>(kept) / 20000 - (1 - p)) < 0.015);  // four standard deviations
      }
  }

  TEST_CASE("backward uses the mask of forward, on views too") {
    manual_seed(3);
    for (const Tensor& x : {leaf({40, 30}, 1), reversed_strides(leaf({40, 30}, 1))}) {
      const Tensor y = dropout(x, 0.4), g = grad({sum(y)}, {x})[0];
      CHECK(difference(y.detach(), (g * x).detach()) < 1e-15);
      CHECK(min(g).item() == 0);
    }
    check_derivatives(
        [](const Tensor& x) {
          manual_seed(5);
          return dropout(square(x), 0.3);
        },
        {leaf({4, 5}, 2)});
  }

  TEST_CASE("seed and call number decide") {
    const Tensor x = ones({1000});
    manual_seed(1);
    const Tensor a = dropout(x, 0.5), b = dropout(x, 0.5);
    manual_seed(1);
    CHECK(difference(dropout(x, 0.5), a) == 0);
    CHECK(difference(a, b) == 2);
    manual_seed(2);
    CHECK(difference(dropout(x, 0.5), a) == 2);
  }

  TEST_CASE("p = 0 is the identity, p = 1 gives zeros; p outside [0, 1] is an error") {
    const Tensor x = leaf({3}, 1);
    CHECK(dropout(x, 0).is_same(x));
    CHECK(difference(dropout(full({3}, INFINITY), 1), zeros({3})) == 0);
    CHECK(difference(grad({sum(dropout(x, 1))}, {x})[0], zeros({3}, DType::f64)) == 0);
    CHECK(message<ValueError>([&] { dropout(x, 1.5); }) == "dropout: p is 1.5; it must be from 0 to 1");
    CHECK_THROWS_AS(dropout(x, -0.1), ValueError);
    CHECK_THROWS_AS(dropout(x, NAN), ValueError);
  }
}
