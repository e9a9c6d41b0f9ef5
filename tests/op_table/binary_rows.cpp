// Rows of the pointwise ops of several operands, and of conversion.
#include "../../ops/ops.h"
#include "elementwise.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

/// condition, a, b of the shapes of where().
constexpr OpRow masked(const char* name, Function fn, Reference ref, Sample s0, Sample s1, Sample empty,
                       ErrorCase error, const char* formula = nullptr, const char* vjp = nullptr,
                       ErrorCase second = {}) {
  OpRow row;
  row.name = name;
  row.formula = formula;
  row.vjp = vjp;
  row.fn = fn;
  row.ref = ref;
  row.samples[0] = s0;
  row.samples[1] = s1;
  row.empty = empty;
  row.errors[0] = error;
  row.errors[1] = second;
  row.i64 = true;
  return row;
}

Array choose(const Array& c, const Array& a, const Array& b) {
  const Shape shape = broadcast_shapes("reference", broadcast_shapes("reference", c.shape, a.shape), b.shape);
  return reference::build(shape, [&](const Dims& i) { return c.broadcast(i) != 0 ? a.broadcast(i) : b.broadcast(i); });
}
Array number(double x) { return {{}, {x}}; }

constexpr OpRow rows[] = {
    with(binary(
             "add", [](Args a) { return a[0] + a[1]; }, [](double x, double y) { return x + y; }, {.i64 = true}),
         {[] {
            (void)(zeros({2, 3}) + zeros({4}));
          },
          "add: cannot broadcast [2, 3] with [4] (dim -1: 3 vs 4)"},
         {[] { (void)(zeros({2}) + zeros({2}, DType::bf16)); },
          "add: dtypes differ: f32 and bf16 (shapes [2] and [2]); convert with to(x, DType::f32)"}),
    with(binary(
             "sub", [](Args a) { return a[0] - a[1]; }, [](double x, double y) { return x - y; }, {.i64 = true}),
         {[] {
            (void)(zeros({2, 3}) - zeros({4}));
          },
          "sub: cannot broadcast [2, 3] with [4] (dim -1: 3 vs 4)"}),
    with(binary(
             "mul", [](Args a) { return a[0] * a[1]; }, [](double x, double y) { return x * y; }, {.i64 = true}),
         {[] {
            (void)(zeros({2, 3}) * zeros({2, 3}, DType::boolean));
          },
          "mul: dtypes differ: f32 and bool"},
         {[] { (void)(zeros({2}, DType::i64) * 0.5); },
          "mul: the number 0.5 is not a whole one, the tensor is [2] i64; convert with to(x, DType::f32)"}),
    with(binary(
             "div", [](Args a) { return a[0] / a[1]; }, [](double x, double y) { return x / y; },
             {.low2 = 0.5, .high2 = 2}),
         {[] { (void)(zeros({2}, DType::i64) / zeros({2}, DType::i64)); },
          "div: not defined for [2] i64; convert with to(x, DType::f32)"}),
    with(binary(
             "maximum", [](Args a) { return maximum(a[0], a[1]); }, [](double x, double y) { return x > y ? x : y; },
             {.i64 = true}),
         {[] { (void)maximum(zeros({3}), zeros({2})); }, "maximum: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(binary(
             "minimum", [](Args a) { return minimum(a[0], a[1]); }, [](double x, double y) { return x < y ? x : y; },
             {.i64 = true}),
         {[] { (void)minimum(zeros({3}), zeros({2})); }, "minimum: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(binary(
             "pow", [](Args a) { return pow(a[0], a[1]); }, [](double x, double y) { return std::pow(x, y); },
             {.low = 0.4, .high = 2}),
         {[] { (void)pow(zeros({3}), zeros({2})); }, "pow: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(binary(
             "mul0", [](Args a) { return mul0(a[0], a[1]); }, [](double x, double y) { return x == 0 ? 0 : x * y; }),
         {[] { (void)mul0(zeros({3}), zeros({2})); }, "mul0: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(binary(
             "equal", [](Args a) { return a[0] == a[1]; }, [](double x, double y) { return x == y; },
             {.i64 = true, .differentiable = false, .formula = "a = b"}),
         {[] { (void)equal(zeros({3}), zeros({2})); }, "equal: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(
        binary(
            "not_equal", [](Args a) { return a[0] != a[1]; }, [](double x, double y) { return x != y; },
            {.i64 = true, .differentiable = false, .formula = "a ≠ b"}),
        {[] { (void)not_equal(zeros({3}), zeros({2})); }, "not_equal: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(binary(
             "isclose", [](Args a) { return isclose(a[0], a[1], 0.5, 0.25); },
             [](double x, double y) { return std::abs(x - y) <= 0.25 + 0.5 * std::abs(y); },
             {.differentiable = false, .formula = "|a − b| ≤ atol + rtol·|b|"}),
         {[] { (void)isclose(zeros({3}), zeros({3}), -1); }, "isclose: rtol is -1, atol is 1e-08"}),
    with(binary(
             "less", [](Args a) { return a[0] < a[1]; }, [](double x, double y) { return x < y; },
             {.i64 = true, .differentiable = false, .formula = "a < b"}),
         {[] { (void)less(zeros({3}), zeros({3}, DType::f64)); }, "less: dtypes differ: f32 and f64"}),
    with(binary(
             "less_equal", [](Args a) { return a[0] <= a[1]; }, [](double x, double y) { return x <= y; },
             {.i64 = true, .differentiable = false, .formula = "a ≤ b"}),
         {[] { (void)less_equal(zeros({3}), zeros({2})); },
          "less_equal: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(binary(
             "greater", [](Args a) { return a[0] > a[1]; }, [](double x, double y) { return x > y; },
             {.i64 = true, .differentiable = false, .formula = "a > b"}),
         {[] { (void)greater(zeros({3}), zeros({2})); }, "greater: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(binary(
             "greater_equal", [](Args a) { return a[0] >= a[1]; }, [](double x, double y) { return x >= y; },
             {.i64 = true, .differentiable = false, .formula = "a ≥ b"}),
         {[] { (void)greater_equal(zeros({3}), zeros({2})); },
          "greater_equal: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(binary(
             "logical_and", [](Args a) { return logical_and(a[0] > 0, a[1] > 0); },
             [](double x, double y) { return x > 0 && y > 0; },
             {.i64 = true, .differentiable = false, .formula = "a and b"}),
         {[] { (void)logical_and(zeros({3}), zeros({2})); },
          "logical_and: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(binary(
             "logical_or", [](Args a) { return logical_or(a[0] > 0, a[1] > 0); },
             [](double x, double y) { return x > 0 || y > 0; },
             {.i64 = true, .differentiable = false, .formula = "a or b"}),
         {[] { (void)logical_or(zeros({3}), zeros({2})); },
          "logical_or: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    with(binary(
             "logical_xor", [](Args a) { return logical_xor(a[0] > 0, a[1] > 0); },
             [](double x, double y) { return (x > 0) != (y > 0); },
             {.i64 = true, .differentiable = false, .formula = "a or b, not both"}),
         {[] { (void)logical_xor(zeros({3}), zeros({2})); },
          "logical_xor: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    masked(
        "where", [](Args a) { return where(a[0], a[1], a[2]); },
        [](const Arrays& a) { return choose(a[0], a[1], a[2]); }, {{mask(3, 4), real(3, 4), real(3, 4)}},
        {{mask(3, 1), real(4), real(2, 1, 1)}}, {{mask(0, 3), real(0, 3), real(3)}},
        {[] { (void)where(zeros({2}), zeros({2}), zeros({2})); },
         "where: the condition must be bool, got [2] f32; compare, or convert with to(x, DType::boolean)"}),
    masked(
        "where (number second)", [](Args a) { return where(a[0], a[1], 2.0); },
        [](const Arrays& a) { return choose(a[0], a[1], number(2)); }, {{mask(3, 4), real(3, 4)}},
        {{mask(3, 1), real(4)}}, {{mask(0, 3), real(0, 3)}},
        {[] { (void)where(zeros({3}, DType::boolean), zeros({2}), 0.0); },
         "where: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"},
        nullptr, nullptr,
        {[] { (void)where(zeros({2}, DType::boolean), zeros({2}, DType::i64), 0.5); },
         "where: the number 0.5 is not a whole one, the tensor is [2] i64; convert with to(x, DType::f32)"}),
    masked(
        "where (number first)", [](Args a) { return where(a[0], 2.0, a[1]); },
        [](const Arrays& a) { return choose(a[0], number(2), a[1]); }, {{mask(3, 4), real(3, 4)}},
        {{mask(3, 1), real(4)}}, {{mask(0, 3), real(0, 3)}},
        {[] { (void)where(zeros({3}, DType::boolean), 0.0, zeros({2})); },
         "where: cannot broadcast [3] with [2] (dim -1: 3 vs 2)"}),
    masked(
        "masked_fill", [](Args a) { return masked_fill(a[1], a[0], -3); },
        [](const Arrays& a) { return choose(a[0], number(-3), a[1]); }, {{mask(3, 4), real(3, 4)}},
        {{mask(4), real(3, 4)}}, {{mask(0, 3), real(0, 3)}},
        {[] { (void)masked_fill(zeros({3}), zeros({3}), 0); },
         "masked_fill: the mask must be bool, got [3] f32; compare, or convert with to(x, DType::boolean)"},
        "value where mask, else x", "g where not mask"),
    {.name = "to",
     .formula = "x as dtype",
     .vjp = "g as x's dtype",
     .fn = [](Args a, const Params&) { return to(to(a[0], DType::f64), a[0].dtype()); },
     .ref = [](const Arrays& a) { return a[0]; },
     .samples = {{{real(3, 4)}}, {{real()}}},
     .empty = {{real(0, 3)}},
     .large = {{real(300, 401)}},
     .errors = {{[] { (void)to(Tensor{}, DType::f32); }, "to: the tensor is undefined"}},
     .i64 = true},
    {.name = "to (f32)",
     .formula = "x as f32",
     .vjp = "g as x's dtype",
     .fn = [](Args a) { return to(a[0], DType::f32); },
     .ref =
         [](const Arrays& a) {
           return reference::build(a[0].shape, [&](const Dims& i) { return static_cast<float>(a[0](i)); });
         },
     .samples = {{{real(3, 4)}}},
     .empty = {{real(0, 3)}},
     .errors = {{[] { (void)to(Tensor{}, DType::f32); }, "to: the tensor is undefined"}},
     .differentiable = false,
     .i64 = true},
    {.name = "to (bool)",
     .formula = "x ≠ 0",
     .fn = [](Args a) { return to(a[0], DType::boolean); },
     .ref = [](const Arrays& a) { return reference::build(a[0].shape, [&](const Dims& i) { return a[0](i) != 0; }); },
     .samples = {{{real(3, 4)}}},
     .empty = {{real(0, 3)}},
     .errors = {{[] { (void)to(Tensor{}, DType::boolean); }, "to: the tensor is undefined"}},
     .differentiable = false,
     .i64 = true},
    {.name = "to (i64)",
     .formula = "x cut to a whole number",
     .fn = [](Args a) { return to(3 * a[0], DType::i64); },
     .ref =
         [](const Arrays& a) {
           return reference::build(a[0].shape, [&](const Dims& i) { return std::trunc(3 * a[0](i)); });
         },
     .samples = {{{real(3, 4)}}},
     .empty = {{real(0, 3)}},
     .errors = {{[] { (void)to(Tensor{}, DType::i64); }, "to: the tensor is undefined"}},
     .differentiable = false,
     .i64 = true,
     .no_bf16 = "3x is rounded before it is cut"},
};

}  // namespace

std::span<const OpRow> binary_rows() { return rows; }

}  // namespace tapestry::op_table
