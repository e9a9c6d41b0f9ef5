// Choosing a row, operands that fit it, and values inside its domain.
// Next: check.cpp.
#include "generate.h"

#include <algorithm>
#include <cmath>

#include "../../autograd/factory.h"
#include "../../autograd/grad_mode.h"
#include "../op_table/samples.h"

namespace tapestry::fuzz {
namespace {

using op_table::Input;
using op_table::Kind;
using op_table::Sample;

constexpr int64_t most_elements = 200;
constexpr double largest = 30;  // values beyond would make second derivatives too large for differences

class Generator {
 public:
  Generator(uint64_t seed, uint64_t number) : dice_(seed, number), first_(rows()[number % rows().size()]) {}

  Program make() {
    const NoGrad raw;
    const int64_t leaves = 1 + dice_.below(3), steps = 2 + dice_.below(8);
    for (int64_t i = 0; i < leaves; ++i) new_leaf(free_shape(), -2, 2);
    for (int64_t made = 0, tries = 0; made < steps && tries < 200; ++tries) made += add_step() ? 1 : 0;
    choose_outputs();
    return compacted(program_);
  }

 private:
  Shape free_shape() {
    Shape shape;
    for (int64_t rank = dice_.below(4); rank > 0; --rank) shape.push_back(dice_.chance(0.15) ? 1 : 2 + dice_.below(3));
    return shape;
  }

  Ref new_leaf(const Shape& shape, double low, double high, bool differentiated = true) {
    std::vector<double> values(static_cast<size_t>(numel(shape)));
    for (double& v : values) v = low + (high - low) * dice_.uniform();
    return add_leaf(from(values, shape).requires_grad_(differentiated));
  }
  Ref add_leaf(const Tensor& x) {
    program_.leaves.push_back(x);
    values_.leaves.push_back(x.detach());
    const Ref ref{-1, static_cast<int>(program_.leaves.size()) - 1};
    if (x.requires_grad()) real_.push_back(ref);
    return ref;
  }

  static bool takes_part(const Tensor& y) { return y.defined() && is_floating(y.dtype()) && y.numel() > 0; }

  /// Appends the step if it runs and gives tame values.
  bool append(Step step) {
    Tensors ys;
    try {
      ys = run(step, values_);
    } catch (const Error&) {
      return false;
    }
    bool any = false;
    for (const Tensor& y : ys) {
      if (!takes_part(y)) continue;
      if (y.dtype() != DType::f64 || y.numel() > most_elements) return false;
      for (const double v : y.to_vector<double>())
        if (!(std::abs(v) <= largest)) return false;
      any = true;
    }
    if (!any) return false;
    for (size_t nr = 0; nr < ys.size(); ++nr)
      if (takes_part(ys[nr])) real_.push_back({static_cast<int>(program_.steps.size()), static_cast<int>(nr)});
    program_.steps.push_back(std::move(step));
    values_.steps.push_back(std::move(ys));
    return true;
  }
  [[nodiscard]] Ref last() const { return {static_cast<int>(program_.steps.size()) - 1, 0}; }

  /// A value made before, rather a late one.
  Ref some_value() {
    const auto n = static_cast<int64_t>(real_.size());
    return real_[static_cast<size_t>(dice_.chance(0.6) ? n - 1 - dice_.below(std::min<int64_t>(n, 3))
                                                       : dice_.below(n))];
  }

  /// `ref` with values inside the range of `in`. Where the range is the usual one, a little more is let through.
  Ref in_domain(Ref ref, const Input& in) {
    const bool usual = in.low == -2 && in.high == 2;
    const double margin = usual ? -1 : 0.01 * (in.high - in.low);
    const auto values = values_[ref].to_vector<double>();
    if (std::all_of(values.begin(), values.end(),
                    [&](double v) { return v >= in.low + margin && v <= in.high - margin; }))
      return ref;
    return append({.kind = Step::Kind::squash, .low = in.low, .high = in.high, .inputs = {ref}}) ? last() : ref;
  }

  /// `ref` as `shape`: what is missing is taken from a new leaf, or repeated.
  Ref shaped(Ref ref, const Shape& shape, const Input& in) {
    if (values_[ref].shape() == shape) return ref;
    Step step{.kind = Step::Kind::fit, .shape = shape, .inputs = {ref}};
    const int64_t missing = numel(shape) - values_[ref].numel();
    if (missing > 0 && dice_.chance(0.8)) step.inputs.push_back(new_leaf({missing}, in.low, in.high));
    return append(std::move(step)) ? last() : new_leaf(shape, in.low, in.high);
  }

  bool add_step() {
    const OpRow& row = program_.steps.empty() ? *first_ : *dice_.pick(rows());
    std::vector<Sample> samples;
    for (const Sample& s : row.samples)
      if (s.given()) samples.push_back(s);
    const Sample sample = dice_.pick(samples);
    Step step{.row = &row, .p = sample.p};
    if (dice_.chance(0.1)) step.nested = 1 + static_cast<int>(dice_.below(2));
    int real = 0;
    bool free = true;
    for (int i = 0; i < sample.count(); ++i) {
      real += sample.inputs[i].kind == Kind::real ? 1 : 0;
      free = free && sample.inputs[i].kind == Kind::real;
    }
    if (real == 0) return false;
    // Values as they are, if the op takes their shapes; the attributes are the sample's.
    for (int tries = row.point || real == 1 ? 3 : 8; free && tries > 0; --tries) {
      step.inputs.clear();
      for (int i = 0; i < sample.count(); ++i) step.inputs.push_back(in_domain(some_value(), sample.inputs[i]));
      if (append(step)) return true;
    }
    step.inputs.clear();
    for (int i = 0; i < sample.count(); ++i) step.inputs.push_back(fitted(row, sample, i));
    return append(step);
  }

  /// Input i of the sample with its own shape: a value made before, or the sample's own numbers for indices, masks and constants.
  Ref fitted(const OpRow& row, const Sample& sample, int i) {
    const Input& in = sample.inputs[i];
    if (in.kind == Kind::undefined) return {};
    if (in.kind == Kind::real) return in_domain(shaped(some_value(), in.shape(), in), in);
    return add_leaf(make_inputs(row, sample, DType::f64, op_table::Layout::contiguous, false)[static_cast<size_t>(i)]);
  }

  /// Most of the values nobody used, and sometimes one that was.
  void choose_outputs() {
    std::vector<Ref> unused;
    for (const Ref& ref : real_) {
      bool used = ref.step < 0;
      for (const Step& step : program_.steps)
        used = used || std::find(step.inputs.begin(), step.inputs.end(), ref) != step.inputs.end();
      if (!used) unused.push_back(ref);
    }
    if (unused.empty()) unused.push_back(real_.back());
    program_.outputs.push_back(unused.back());
    for (size_t k = unused.size() - 1; k-- > 0 && program_.outputs.size() < 3;)
      if (dice_.chance(0.7)) program_.outputs.push_back(unused[k]);
    if (dice_.chance(0.3)) program_.outputs.push_back(some_value());
  }

  Dice dice_;
  const OpRow* first_;
  Program program_;
  Values values_;
  std::vector<Ref> real_;  ///< what steps may take
};

}  // namespace

Program generate(uint64_t seed, uint64_t number) { return Generator(seed, number).make(); }

}  // namespace tapestry::fuzz
