// Rotary positions: the angles, both layouts, positions of every form, and that the rotation back is its derivative.
#include "op_checks.h"

using namespace tapestry;
using namespace tapestry::testing;

namespace {

/// One rotated element by the definition.
std::vector<double> reference(const Tensor& x, int64_t rotary, double theta,
                              const std::vector<int64_t>& position_of_row, RopeLayout layout) {
  auto out = x.to_vector<double>();
  const auto in = out;
  const int64_t width = x.size(-1), half = rotary / 2;
  for (size_t row = 0; row < position_of_row.size(); ++row)
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position_of_row[row]) *
                           std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(rotary));
      const size_t start = row * static_cast<size_t>(width);
      const size_t a = start + static_cast<size_t>(layout == RopeLayout::adjacent ? 2 * i : i);
      const size_t b = layout == RopeLayout::adjacent ? a + 1 : a + static_cast<size_t>(half);
      out[a] = in[a] * std::cos(angle) - in[b] * std::sin(angle);
      out[b] = in[a] * std::sin(angle) + in[b] * std::cos(angle);
    }
  return out;
}

}  // namespace

TEST_SUITE("rope") {
  TEST_CASE("rotates by position in both layouts, for every rank and form of positions") {
    const RopeTable table = rope_table(32, 6, 500.0, DType::f64);
    const Tensor x = uniform({2, 3, 4, 8}, 1);  // (B, H, T, Dh), six of eight entries turn
    const Tensor shared = from(std::vector<int64_t>{5, 0, 31, 5}),
                 each = from(std::vector<int64_t>{5, 0, 31, 5, 1, 2, 3, 4}, {2, 4});
    for (const RopeLayout layout : {RopeLayout::adjacent, RopeLayout::half})
      for (int form = 0; form < 3; ++form) {
        const Tensor positions = form == 0 ? Tensor{} : form == 1 ? shared : each;
        std::vector<int64_t> rows;
        for (int64_t b = 0; b < 2; ++b)
          for (int64_t h = 0; h < 3; ++h)
            for (int64_t t = 0; t < 4; ++t)
              rows.push_back(form == 0 ? t
                                       : (form == 1 ? shared : each)
                                             .to_vector<int64_t>()[static_cast<size_t>(form == 1 ? t : b * 4 + t)]);
        const Tensor wanted = from(reference(x, 6, 500.0, rows, layout), {2, 3, 4, 8});
        CHECK(difference(rope(x, table, positions, layout), wanted) < 1e-14);
        const Tensor heads = transpose(contiguous(transpose(x, 1, 2)), 1, 2);  // a view of (B, T, H, Dh)
        const Tensor y = rope(heads, table, positions, layout);
        CHECK(difference(y, wanted) < 1e-14);
        CHECK(transpose(y, 1, 2).is_contiguous());
        CHECK(difference(rope(reversed_strides(x), table, positions, layout), wanted) < 1e-14);
        // One head: (B, T, Dh), and one batch row: (T, Dh).
        CHECK(difference(rope(select(x, 1, 1), table, positions, layout), select(wanted, 1, 1)) < 1e-14);
        if (form < 2)
          CHECK(difference(rope(select(select(x, 0, 1), 0, 2), table, positions, layout),
                           select(select(wanted, 0, 1), 0, 2)) < 1e-14);
      }
  }

  TEST_CASE("derivatives of every order are rotations back") {
    const RopeTable table = rope_table(8, 4, 10000.0, DType::f64);
    const Tensor positions = from(std::vector<int64_t>{3, 0, 7});
    for (const RopeLayout layout : {RopeLayout::adjacent, RopeLayout::half}) {
      const auto f = [&](const Tensor& x) { return rope(x, table, positions, layout); };
      check_derivatives(f, {leaf({2, 2, 3, 6}, 1)});
      check_derivatives(f, {reversed_strides(leaf({2, 2, 3, 6}, 1))});
      check_derivatives([&](const Tensor& x) { return square(f(x)); }, {leaf({2, 3, 4}, 2)});
    }
  }

  TEST_CASE("tables are exact far out") {
    const RopeTable table = rope_table(15963, 2, 10000.0);
    CHECK(table.cos.to_vector<double>()[15962] == doctest::Approx(-0.908015901).epsilon(1e-7));
    CHECK(table.sin.to_vector<double>()[15962] == doctest::Approx(std::sin(15962.0)).epsilon(1e-7));
    const Tensor x = ones({2, 2}, DType::bf16);  // positions 256 and 257 differ although bf16 cannot tell them apart
    const auto y = rope(x, table, from(std::vector<int64_t>{256, 257})).to_vector();
    CHECK(y[0] == doctest::Approx(std::cos(256) - std::sin(256)).epsilon(0x1p-7));
    CHECK(y[2] == doctest::Approx(std::cos(257) - std::sin(257)).epsilon(0x1p-7));
  }

  TEST_CASE("tables of given frequencies and a factor") {
    const double frequencies[] = {1, 0.01};
    const RopeTable powers = rope_table(6, 4, 10000.0), same = rope_table(6, frequencies),
                    doubled = rope_table(6, frequencies, 2, DType::f64);
    CHECK(difference(same.cos, powers.cos) == 0);
    CHECK(difference(same.sin, powers.sin) == 0);
    for (int64_t p = 0; p < 6; ++p) {
      const double angle = static_cast<double>(p) * 0.01;
      CHECK(doubled.cos.to_vector<double>()[static_cast<size_t>(2 * p + 1)] == 2 * std::cos(angle));
      CHECK(doubled.sin.to_vector<double>()[static_cast<size_t>(2 * p + 1)] == 2 * std::sin(angle));
    }
    CHECK(rope_table(3, std::span<const double>{}).cos.shape() == Shape{3, 0});
    const double bad[] = {1, INFINITY};
    CHECK(message<ValueError>([&] { rope_table(3, bad); }) == "rope_table: frequency 1 is inf; it must be finite");
    CHECK(message<ValueError>([&] { rope_table(3, frequencies, NAN); }) ==
          "rope_table: factor is nan; it must be finite");
    CHECK(message<ValueError>([&] { rope_table(-1, frequencies); }) ==
          "rope_table: max_positions is -1; it must be 0 or more");
    CHECK(message<DTypeError>([&] {
            rope_table(3, frequencies, 1, DType::bf16);
          }).starts_with("rope_table: dtype is bf16"));
  }

  TEST_CASE("errors") {
    const RopeTable table = rope_table(8, 4);
    CHECK(message<ValueError>([] { rope_table(8, 5); }) ==
          "rope_table: rotary_dim is 5; pairs are rotated, so it must be even");
    CHECK_THROWS_AS(rope_table(4, int64_t{1} << 62), Error);  // at once, not after 2⁶¹ frequencies
    CHECK(message<IndexError>([&] {
            rope(zeros({2, 2, 4}), table, from(std::vector<int64_t>{0, 1, 8, 2}, {2, 2}));
          }) == "rope: position 8 at [1, 0] is out of range for a table of 8 positions");
    CHECK(message<IndexError>([&] {
            rope(zeros({1, 4}), table, from(std::vector<int64_t>{-1}));
          }) == "rope: position -1 at [0] is out of range for a table of 8 positions");
    CHECK(message<IndexError>([&] {
            rope(zeros({9, 4}), table);
          }) == "rope: x is [9, 4] f32: 9 positions, the table has 8");
    CHECK(message<ShapeError>([&] {
            rope(zeros({3, 2, 5, 4}), table, from(std::vector<int64_t>{0, 1, 2}));
          }) == "rope: positions is [3] i64, x is [3, 2, 5, 4] f32; it must be [5] or [3, 5]");
    CHECK(message<DTypeError>([&] {
            rope(zeros({2, 4}), table, zeros({2}));
          }) == "rope: positions is [2] f32; it must be i64: convert with to(x, DType::i64)");
    CHECK(message<DTypeError>([&] {
            rope(zeros({2, 4}, DType::f64), table);
          }) == "rope: x is [2, 4] f64, the table is [8, 2] f32; it must be f64: see rope_table");
    CHECK(message<ShapeError>([&] {
            rope(zeros({2, 3}), table);
          }).starts_with("rope: x is [2, 3] f32, the table [8, 2] f32 rotates 4 entries"));
  }
}
