// test_random.cpp: the counter-based generator: known answers, independence of order, streams, distributions.
// Next: ../autograd/random.h.
#include "../autograd/random.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "../autograd/factory.h"
#include "../autograd/parallel.h"
#include "../autograd/scope.h"

using namespace tapestry;

TEST_SUITE("random") {
  TEST_CASE("Philox 4x32-10: the known answers of its authors' library (kat_vectors of Random123)") {
    using Words = std::array<uint32_t, 4>;
    CHECK(philox(0, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    CHECK(philox(~0ULL, ~0ULL, ~0ULL) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(philox(0x299f31d0a4093822ULL, 0x0370734413198a2eULL, 0x85a308d3243f6a88ULL) ==
          Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  }

  TEST_CASE("a ticket's words are pure functions of their place") {
    const Ticket t{5, 9};
    CHECK(t.word(7) == t.block(1)[3]);
    CHECK(t.word(0) != Ticket{6, 9}.word(0));
    CHECK(t.word(0) != Ticket{5, 10}.word(0));
  }

  TEST_CASE("streams depend on seed, step, module path and call number, and on nothing else") {
    const auto draw = [](uint64_t seed, uint64_t step, const char* path, int skip) {
      manual_seed(seed);
      set_random_step(step);
      const Scope scope(intern_path(path));
      for (int i = 0; i < skip; ++i) draw_ticket();
      return draw_ticket().stream;
    };
    std::set<uint64_t> streams;
    for (const uint64_t seed : {0, 1})
      for (const uint64_t step : {0, 1, 2})
        for (const char* path : {"", "a", "layers.0"})
          for (const int skip : {0, 3}) streams.insert(draw(seed, step, path, skip));
    CHECK(streams.size() == 2 * 3 * 3 * 2);
    CHECK(draw(1, 2, "a", 3) == draw(1, 2, "a", 3));
  }

  TEST_CASE("random tensors do not depend on the number of threads") {
    const int before = num_threads();
    std::vector<float> first;
    for (const int n : {1, 2, 4}) {
      set_num_threads(n);
      manual_seed(3);
      const auto values = randn({100000}).to_vector();
      if (first.empty()) first = values;
      CHECK(values == first);
    }
    set_num_threads(before);
  }

  TEST_CASE("moments and ranges") {
    manual_seed(11);
    const auto moments = [](const Tensor& x) {
      double m = 0, s = 0, k = 0;
      const auto v = x.to_vector<double>();
      for (const double e : v) m += e;
      m /= static_cast<double>(v.size());
      for (const double e : v) s += (e - m) * (e - m), k += std::pow(e - m, 4);
      s /= static_cast<double>(v.size());
      return std::array{m, s, k / static_cast<double>(v.size()) / (s * s)};
    };
    // Within five standard errors over 200,000 numbers.
    const int64_t n = 200000;
    for (const DType dtype : {DType::f32, DType::f64}) {
      const auto u = moments(rand({n}, dtype));
      CHECK(std::abs(u[0] - 0.5) < 5 * std::sqrt(1 / 12.0 / n));
      CHECK(std::abs(u[1] - 1 / 12.0) < 5 * std::sqrt(1 / 180.0 / n));
      const auto z = moments(randn({n}, dtype));
      CHECK(std::abs(z[0]) < 5 / std::sqrt(n));
      CHECK(std::abs(z[1] - 1) < 5 * std::sqrt(2.0 / n));
      CHECK(std::abs(z[2] - 3) < 5 * std::sqrt(24.0 / n));
    }
    std::set<int64_t> seen;
    for (const int64_t v : randint(-2, 3, {1000}).to_vector<int64_t>()) seen.insert(v);
    CHECK(seen == std::set<int64_t>{-2, -1, 0, 1, 2});
    for (const float v : rand({10000}).to_vector()) CHECK((v >= 0 && v < 1));
    CHECK(randint(INT64_MIN, INT64_MAX, {2}).numel() == 2);
  }
}
