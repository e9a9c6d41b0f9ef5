// Running a program, and cutting steps out of it.
// Next: print.cpp.
#include "program.h"

#include <algorithm>

#include "../../autograd/factory.h"
#include "../../autograd/function.h"
#include "../../ops/ops.h"

namespace tapestry::fuzz {
namespace {

/// A row as an op that is known by its composite alone.
struct Nested {
  static constexpr std::string_view name = "nested";
  const OpRow* row;
  Params p;
  int depth;
  [[nodiscard]] Tensors composite(std::span<const Tensor> xs) const;
  Tensors forward(Context&, std::span<const Tensor> xs) const { return composite(xs); }
};

Tensors call(const OpRow& row, std::span<const Tensor> xs, const Params& p, int nested) {
  if (nested > 0) return apply(Nested{&row, p, nested - 1}, xs);
  manual_seed(1);
  return row.fn(xs, p);
}
Tensors Nested::composite(std::span<const Tensor> xs) const { return call(*row, xs, p, depth); }

}  // namespace

std::vector<const OpRow*>& rows() {
  static std::vector<const OpRow*> list = [] {
    std::vector<const OpRow*> rows;
    for (const op_table::Family& family : op_table::families())
      for (const OpRow& row : family.rows)
        // as_strided reads storage beside its operand, so it is no function of values; the in-place programs have it.
        if (row.differentiable && !std::string_view(row.name).starts_with("as_strided") &&
            std::any_of(std::begin(row.samples[0].inputs), std::end(row.samples[0].inputs),
                        [](const auto& in) { return in.kind == op_table::Kind::real; }))
          rows.push_back(&row);
    return rows;
  }();
  return list;
}

Tensors op(std::string_view name, std::span<const Tensor> xs, const Params& p, int nested) {
  for (const OpRow* row : rows())
    if (name == row->name) return call(*row, xs, p, nested);
  fail<ValueError>("fuzz: no row is called {}", name);
}

Tensor fit(std::span<const Tensor> xs, const Shape& shape) {
  std::vector<Tensor> pieces;
  int64_t have = 0;
  const int64_t need = numel(shape);
  while (have < need)
    for (const Tensor& x : xs) {
      pieces.push_back(flatten(x));
      have += x.numel();
    }
  return reshape(slice(pieces.size() == 1 ? pieces[0] : cat(pieces, 0), 0, 0, need), shape);
}

Tensor squash(const Tensor& x, double low, double high) {
  return (low + 0.05 * (high - low)) + 0.9 * (high - low) * sigmoid(x);
}

Tensors run(const Step& step, const Values& values) {
  Tensors xs;
  for (const Ref& ref : step.inputs) xs.push_back(values[ref]);
  switch (step.kind) {
    case Step::Kind::fit:
      return {fit(xs, step.shape)};
    case Step::Kind::squash:
      return {squash(xs[0], step.low, step.high)};
    default:
      return call(*step.row, xs, step.p, step.nested);
  }
}

Values run(const Program& program, std::span<const Tensor> leaves) {
  Values values{{leaves.begin(), leaves.end()}, {}};
  for (const Step& step : program.steps) values.steps.push_back(run(step, values));
  return values;
}

TensorFunction function_of(const Program& program) {
  return [&program](std::span<const Tensor> leaves) {
    const Values values = run(program, leaves);
    std::vector<Tensor> ys;
    for (const Ref& ref : program.outputs) ys.push_back(values[ref]);
    return ys;
  };
}

Program compacted(const Program& program) {
  std::vector<bool> leaf_used(program.leaves.size()), step_used(program.steps.size());
  const auto use = [&](const Ref& ref) {
    if (ref.nr < 0) return;
    if (ref.step < 0)
      leaf_used[static_cast<size_t>(ref.nr)] = true;
    else
      step_used[static_cast<size_t>(ref.step)] = true;
  };
  for (const Ref& ref : program.outputs) use(ref);
  for (size_t s = program.steps.size(); s-- > 0;)
    if (step_used[s])
      for (const Ref& ref : program.steps[s].inputs) use(ref);
  Program result;
  std::vector<int> leaf_at, step_at;
  for (size_t i = 0; i < program.leaves.size(); ++i) {
    leaf_at.push_back(static_cast<int>(result.leaves.size()));
    if (leaf_used[i]) result.leaves.push_back(program.leaves[i]);
  }
  const auto moved = [&](Ref ref) {
    if (ref.nr >= 0 && ref.step < 0) ref.nr = leaf_at[static_cast<size_t>(ref.nr)];
    if (ref.nr >= 0 && ref.step >= 0) ref.step = step_at[static_cast<size_t>(ref.step)];
    return ref;
  };
  for (size_t s = 0; s < program.steps.size(); ++s) {
    step_at.push_back(static_cast<int>(result.steps.size()));
    if (!step_used[s]) continue;
    Step step = program.steps[s];
    for (Ref& ref : step.inputs) ref = moved(ref);
    result.steps.push_back(std::move(step));
  }
  for (const Ref& ref : program.outputs) result.outputs.push_back(moved(ref));
  return result;
}

}  // namespace tapestry::fuzz
