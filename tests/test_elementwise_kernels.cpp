// Rotary embeddings, gated units and dropout against their definitions in double, with strides, in place, and for every thread count.
// Not here: their ops (the op table). Next: test_pointwise.cpp.
#include "../ops/kernels/dropout.h"
#include "../ops/kernels/glu.h"
#include "../ops/kernels/rope.h"
#include "kernel_reference.h"

using namespace tapestry;
using namespace tapestry::kernels;
using namespace tapestry::testing;

namespace {

using Doubles = std::vector<double>;

template <class T>
void check_rope(RopePairs layout, int64_t pairs, bool own_positions) {
  using C = compute_t<T>;
  const RopeSize s{2, 3, 5, 2 * pairs + 3, pairs, layout};
  const int64_t n_positions = 50, row = s.width + 1;
  CAPTURE(pairs);
  CAPTURE(static_cast<int>(layout));
  Doubles frequencies;
  for (int64_t i = 0; i < pairs; ++i)
    frequencies.push_back(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(pairs)));
  std::vector<C> cos(static_cast<size_t>(n_positions * pairs)), sin(cos.size());
  rope_table(n_positions, pairs, frequencies.data(), cos.data(), sin.data());
  const std::vector<int64_t> positions = {7, 0, 49, 3, 3, 1, 2, 30, 4, 5};

  // Stored (B, T, H, width + 1).
  auto x = values<T>(s.batch * s.len * s.heads * row, 1);
  const HeadRows<const T> in{x.data(), s.len * s.heads * row, row, s.heads * row};
  std::vector<T> y = x;
  const HeadRows<T> out{y.data(), in.batch, in.head, in.row};
  rope<T>(s, in, cos.data(), sin.data(), own_positions ? positions.data() : nullptr, s.len, false, out);
  Doubles expected;
  for (const T v : x) expected.push_back(to_double(v));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t t = 0; t < s.len; ++t)
      for (int64_t h = 0; h < s.heads; ++h)
        for (int64_t i = 0; i < pairs; ++i) {
          const int64_t start = ((b * s.len + t) * s.heads + h) * row;
          const auto first = static_cast<size_t>(start + (layout == RopePairs::adjacent ? 2 * i : i));
          const auto second = static_cast<size_t>(start + (layout == RopePairs::adjacent ? 2 * i + 1 : i + pairs));
          const auto p = static_cast<double>(own_positions ? positions[static_cast<size_t>(b * s.len + t)] : t);
          const double angle = p * frequencies[static_cast<size_t>(i)], u = expected[first], v = expected[second];
          expected[first] = u * std::cos(angle) - v * std::sin(angle);
          expected[second] = u * std::sin(angle) + v * std::cos(angle);
        }
  CHECK(max_error(y, expected) <= 4 * epsilon<T>());

  std::vector<T> in_place = x;
  const HeadRows<T> same{in_place.data(), in.batch, in.head, in.row};
  const auto as_input = [](HeadRows<T> r) { return HeadRows<const T>{r.data, r.batch, r.head, r.row}; };
  rope<T>(s, as_input(same), cos.data(), sin.data(), own_positions ? positions.data() : nullptr, s.len, false, same);
  CHECK(same_bits(in_place, y));
  rope<T>(s, as_input(same), cos.data(), sin.data(), own_positions ? positions.data() : nullptr, s.len, true, same);
  CHECK(max_error(in_place, x) <= 4 * epsilon<T>());
}

double activation(Gate gate, double x) {
  switch (gate) {
    case Gate::silu:
      return x / (1 + std::exp(-x));
    case Gate::gelu:
      return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case Gate::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Gate::relu:
      return std::max(x, 0.0);
    case Gate::sigmoid:
      return 1 / (1 + std::exp(-x));
  }
  return 0;
}

template <class T>
void check_glu(Gate gate, int64_t rows, int64_t d) {
  CAPTURE(static_cast<int>(gate));
  CAPTURE(rows);
  CAPTURE(d);
  auto x = values<T>(rows * 2 * d, 1);  // gate and up side by side, as one projection leaves them
  for (T& v : x) v = convert<T>(4 * to_double(v));
  const auto g = values<T>(rows * d, 2);
  const int64_t second = rows > 0 ? d : 0;  // nothing is at no address, not beside it
  const Rows<const T> a{x.data(), 2 * d}, b{x.data() + second, 2 * d};
  std::vector<T> y(g.size()), dx(x.size());
  glu_forward<T>(gate, rows, d, a, b, {y.data(), d});
  glu_backward<T>(gate, rows, d, a, b, {g.data(), d}, {dx.data(), 2 * d}, {dx.data() + second, 2 * d});
  Doubles expected_y, expected_dx(x.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < d; ++j) {
      const auto left = static_cast<size_t>(2 * i * d + j), right = left + static_cast<size_t>(d);
      const double u = to_double(x[left]), v = to_double(x[right]), up = to_double(g[static_cast<size_t>(i * d + j)]),
                   h = 1e-5;
      expected_y.push_back(activation(gate, u) * v);
      expected_dx[left] = up * v * (activation(gate, u + h) - activation(gate, u - h)) / (2 * h);
      expected_dx[right] = up * activation(gate, u);
    }
  CHECK(max_error(y, expected_y) <= 8 * epsilon<T>());
  CHECK(max_error(dx, expected_dx) <= 16 * epsilon<T>() + 1e-8);
  std::vector<T> only(g.size());
  glu_backward<T>(gate, rows, d, a, b, {g.data(), d}, {nullptr, 0}, {only.data(), d});
  for (int64_t i = 0; i < rows; ++i) {
    const auto from = dx.begin() + (2 * i + 1) * d;
    CHECK(same_bits(std::vector<T>(only.begin() + i * d, only.begin() + (i + 1) * d), std::vector<T>(from, from + d)));
  }
}

template <class T>
void check_dropout(int64_t n, double p) {
  CAPTURE(n);
  CAPTURE(p);
  const Ticket ticket{42, 0xABCDEF0123456789};
  const auto x = values<T>(n, 1);
  std::vector<T> y(x.size()), mask(x.size());
  Doubles expected, expected_mask;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool kept = static_cast<double>(uniform_f32(ticket.word(i))) >= p;
    expected_mask.push_back(kept ? 1 / (1 - p) : 0);
    expected.push_back(kept ? to_double(x[i]) / (1 - p) : 0);
  }
  dropout(n, p, ticket, x.data(), y.data());
  dropout_mask(n, p, ticket, mask.data());
  CHECK(max_error(y, expected) <= epsilon<T>());
  CHECK(max_error(mask, expected_mask) <= epsilon<T>());
  auto in_place = x;
  dropout(n, p, ticket, in_place.data(), in_place.data());
  CHECK(same_bits(in_place, y));
}

}  // namespace

TEST_SUITE("elementwise_kernels") {
  TEST_CASE("rope turns pairs by their angle, in place too, and back") {
    for (const RopePairs layout : {RopePairs::adjacent, RopePairs::half})
      for (const int64_t pairs : {0, 1, 5, 16, 33})
        for (const bool own : {false, true}) {
          check_rope<double>(layout, pairs, own);
          check_rope<float>(layout, pairs, own);
          check_rope<bf16>(layout, pairs, own);
        }
  }

  TEST_CASE("gated units agree with their formulas and finite differences") {
    for (const Gate gate : {Gate::silu, Gate::gelu, Gate::gelu_tanh, Gate::relu, Gate::sigmoid})
      for (const auto& [rows, d] : {std::pair<int64_t, int64_t>{1, 1}, {3, 17}, {2, 64}, {0, 3}}) {
        check_glu<double>(gate, rows, d);
        check_glu<float>(gate, rows, d);
        check_glu<bf16>(gate, rows, d);
      }
  }

  TEST_CASE("dropout keeps what the ticket says, for any length") {
    for (const double p : {0.0, 0.1, 0.5, 0.999})
      for (const int64_t n : {0, 1, 63, 64, 65, 1000}) {
        check_dropout<double>(n, p);
        check_dropout<float>(n, p);
        check_dropout<bf16>(n, p);
      }
    const std::vector<float> x(100, 1.0F);
    std::vector<float> y(100, 7.0F);
    dropout(100, 1.0, Ticket{1, 2}, x.data(), y.data());
    CHECK(y == std::vector<float>(100, 0.0F));
  }

  TEST_CASE("random words are the ticket's, past 2^34 too") {
    const Ticket ticket{0x123456789ABCDEF0, 77};
    for (const uint64_t first : {uint64_t{0}, uint64_t{64}, (uint64_t{1} << 34) - 64}) {
      std::vector<uint32_t> words(130);
      random_words(ticket, first, 130, words.data());
      for (size_t i = 0; i < words.size(); ++i) CHECK(words[i] == ticket.word(first + i));
    }
  }

  TEST_CASE("the bits do not depend on the number of threads") {
    const int64_t rows = 300, d = 130;
    const auto x = values<float>(rows * d, 1), g = values<float>(rows * d, 2);
    const std::vector<float> table(300 * 65, 0.6F);
    CHECK(same_for_all_threads([&] {
      std::vector<float> out(static_cast<size_t>(4 * rows * d));
      float *a = out.data(), *b = a + rows * d, *c = b + rows * d, *e = c + rows * d;
      glu_forward<float>(Gate::silu, rows, d, {x.data(), d}, {g.data(), d}, {a, d});
      glu_backward<float>(Gate::gelu, rows, d, {x.data(), d}, {g.data(), d}, {g.data(), d}, {b, d}, {nullptr, 0});
      dropout(rows * d, 0.3, Ticket{1, 2}, x.data(), c);
      rope<float>({1, 1, rows, d, 65, RopePairs::half}, {x.data(), 0, 0, d}, table.data(), table.data(), nullptr, 0,
                  false, {e, 0, 0, d});
      return out;
    }));
  }
}
