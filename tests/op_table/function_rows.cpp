// Rows of the pointwise functions of two and three operands.
// Not arithmetic, comparisons and where (binary_rows.cpp). Next: view_rows.cpp.
#include "../../ops/ops.h"
#include "elementwise.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

/// The second operand is not differentiated.
constexpr OpRow by_first(OpRow row) {
  for (Sample& s : row.samples)
    if (s.given()) s.inputs[1].kind = Kind::constant;
  row.large.inputs[1].kind = Kind::constant;
  return row;
}

double python_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// Of whole numbers drawn for it, none is 0.
constexpr Elementwise divided = {.low = -3, .high = 3, .low2 = 0.8, .high2 = 2, .i64 = true};

// clang-format off
constexpr OpRow rows[] = {
    with(binary("atan2", [](Args a) { return atan2(a[0], a[1]); }, [](double x, double y) { return std::atan2(x, y); }),
         {[] { (void)atan2(zeros({3}), zeros({2})); }, "atan2: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(binary("hypot", [](Args a) { return hypot(a[0], a[1]); }, [](double x, double y) { return std::hypot(x, y); }),
         {[] { (void)hypot(zeros({3}), zeros({2})); }, "hypot: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(binary("fmod", [](Args a) { return fmod(a[0], a[1]); }, [](double x, double y) { return std::fmod(x, y); }, divided),
         {[] { (void)fmod(ones({2}, DType::i64), zeros({2}, DType::i64)); },
          "fmod: division of whole numbers by 0: a is [2] i64, b is [2] i64; convert with to(x, DType::f32)"}),
    with(binary("remainder", [](Args a) { return remainder(a[0], a[1]); }, [](double x, double y) { return python_mod(x, y); }, divided),
         {[] { (void)remainder(ones({2}, DType::i64), zeros({2}, DType::i64)); },
          "remainder: division of whole numbers by 0: a is [2] i64, b is [2] i64; convert with to(x, DType::f32)"}),
    with(binary("remainder (negative divisor)", [](Args a) { return remainder(a[0], -a[1]); }, [](double x, double y) { return python_mod(x, -y); }, divided),
         {[] { (void)remainder(zeros({3}), zeros({2})); }, "remainder: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(binary("floor_divide", [](Args a) { return floor_divide(a[0], a[1]); }, [](double x, double y) { return std::floor(x / y); },
                {.low = -3, .high = 3, .low2 = 0.8, .high2 = 2, .i64 = true, .zero_derivative = true}),
         {[] { (void)floor_divide(ones({2}, DType::i64), zeros({2}, DType::i64)); },
          "floor_divide: division of whole numbers by 0: a is [2] i64, b is [2] i64; convert with to(x, DType::f32)"}),
    with(binary("xlogy", [](Args a) { return xlogy(a[0], a[1]); }, [](double x, double y) { return x * std::log(y); }, {.low2 = 0.3, .high2 = 3}),
         {[] { (void)xlogy(zeros({3}), zeros({2})); }, "xlogy: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(binary("logaddexp", [](Args a) { return logaddexp(a[0], a[1]); }, [](double x, double y) { return std::log(std::exp(x) + std::exp(y)); }),
         {[] { (void)logaddexp(zeros({3}), zeros({2})); }, "logaddexp: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    by_first(with(binary("copysign", [](Args a) { return copysign(a[0], a[1]); }, [](double x, double y) { return std::copysign(x, y); }),
         {[] { (void)copysign(zeros({3}), zeros({2})); }, "copysign: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"})),
    with(binary("lerp_scalar", [](Args a) { return lerp(a[0], a[1], 0.25); }, [](double x, double y) { return x + 0.25 * (y - x); }),
         {[] { (void)lerp(zeros({3}), zeros({2}), 0.5); }, "lerp: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(binary("lerp_scalar (from the other end)", [](Args a) { return lerp(a[0], a[1], 0.75); }, [](double x, double y) { return x + 0.75 * (y - x); }),
         {[] { (void)lerp(zeros({3}), zeros({3}, DType::f64), 0.5); }, "lerp: dtypes differ: f32 and f64"}),
    {.name = "lerp",
     .fn = [](Args a) { return lerp(a[0], a[1], a[2]); },
     .point = [](double x, double y, double w) { return x + w * (y - x); },
     .composite = [](Args a) { return a[0] + a[2] * (a[1] - a[0]); },
     .samples = {{{real(3, 4), real(3, 4), real(3, 4).in(-0.5, 1.5)}}, {{real(3, 1).in(-1, 1), real(1, 4).in(-1, 1), real(2, 1, 1)}}, {{real(), real(2), real()}}},
     .empty = {{real(0, 3), real(3), real(1, 3)}},
     .large = {{real(300, 401), real(401), real(300, 401).in(0, 1)}},
     .errors = {{[] { (void)lerp(zeros({3}), zeros({2}), zeros({3})); }, "lerp: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"},
                {[] { (void)lerp(zeros({3}), zeros({3}), zeros({3}, DType::f64)); }, "lerp: dtypes differ: f32 and f64"}}},
    {.name = "lerp (x twice)",
     .fn = [](Args a) { return lerp(a[0], 2 * a[0], a[1]); },
     .point = [](double x, double w) { return x + w * x; },
     .composite = [](Args a) { return a[0] + a[1] * a[0]; },
     .samples = {{{real(3, 4), real(3, 4)}}},
     .empty = {{real(0, 3), real(3)}},
     .errors = {{[] { (void)lerp(Tensor{}, zeros({3}), zeros({3})); }, "lerp: the first tensor is undefined"}}},
    {.name = "prelu",
     .fn = [](Args a) { return prelu(a[0], a[1]); },
     .ref = [](const Arrays& a) {
       return reference::build(a[0].shape, [&](const Dims& i) {
         const double x = a[0](i), w = a[1].values[a[1].values.size() == 1 ? 0 : static_cast<size_t>(i[1])];
         return x > 0 ? x : w * x;
       });
     },
     .samples = {{{real(3, 4), real(4)}}, {{real(2, 3, 2), real(3)}}, {{real(5), real(1)}}, {{real(2, 3), real()}}},
     .empty = {{real(0, 3), real(3)}},
     .errors = {{[] { (void)prelu(zeros({2, 3}), zeros({2})); },
                 "prelu: weight is [2] f32, x is [2, 3] f32; it must hold one number, or one per channel (dim 1 of x)"}}},
    {.name = "straight_through",
     .fn = [](Args a) { return straight_through(a[0].detach(), a[0]); },
     .ref = [](const Arrays& a) { return a[0]; },
     .samples = {{{real(3, 4)}}, {{real()}}},
     .empty = {{real(0, 3)}},
     .errors = {{[] { (void)straight_through(zeros({2}), zeros({3})); },
                 "straight_through: x is [2] f32, y is [3] f32; the shapes must be equal"}}},
};
// clang-format on

}  // namespace

std::span<const OpRow> function_rows() { return rows; }

}  // namespace tapestry::op_table
