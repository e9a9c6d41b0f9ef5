// One step at a time on both sides: what is tried, what must be refused, what must agree.
// Next: inplace_view.cpp.
#include "inplace.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../../autograd/engine.h"
#include "../../autograd/factory.h"
#include "../../autograd/grad_mode.h"
#include "../../ops/ops.h"
#include "generate.h"
#include "inplace_view.h"

namespace tapestry::fuzz {
namespace {

using Kind = InplaceStep::Kind;

class Runner {
 public:
  Runner(const InplaceProgram& program, bool forget_versions) : program_(program), forget_(forget_versions) {}

  InplaceResult run() {
    for (const InplaceStep& step : program_) {
      machine_.recording = step.recording;
      const GradMode mode(step.recording);
      line_.clear();
      both(step);
      if (!line_.empty())
        result_.text += (step.recording ? "" : "{ const NoGrad raw; ") + line_ + (step.recording ? "\n" : " }\n");
      if (result_.fault.empty()) compare();
      if (!result_.fault.empty()) break;
    }
    return result_;
  }

 private:
  struct Pair {
    Tensor fast;
    slow::Array slow;
    std::string name;
  };

  [[nodiscard]] const Pair& chosen(uint32_t n) const { return pairs_[n % pairs_.size()]; }
  void fault(const std::string& text) {
    if (result_.fault.empty()) result_.fault = text;
  }

  /// Runs the step on both sides, which must throw alike.
  void both(const InplaceStep& step) {
    if (pairs_.empty() && step.kind != Kind::leaf) return;
    std::string expected, got;
    slow::Array array;
    Tensor tensor;
    bool makes = false;
    try {
      makes = slow_step(step, array);
    } catch (const slow::WriteRefused&) {
      expected = "an in-place write to a recorded tensor";
    } catch (const slow::StaleInput&) {
      expected = "after it was recorded";
    } catch (const slow::Overwritten&) {
      expected = "a tensor saved for backward";
    }
    if (line_.empty()) return;  // the step does not fit
    try {
      tensor = run_();
    } catch (const AutogradError& e) {
      got = e.what();
    } catch (const Error& e) {
      return fault(std::string("throws ") + e.what());
    }
    if (expected.empty() != got.empty() || got.find(expected) == std::string::npos)
      return fault(got.empty() ? "does not throw \"" + expected + "\"" : "throws " + got);
    if (!expected.empty()) {
      ++(step.kind == Kind::backward ? result_.thrown : result_.refused);
      return;
    }
    if (makes) pairs_.push_back({tensor, array, fmt::format("t{}", pairs_.size())});
  }

  // Note [The two sides]: slow_step() does the step on the reference and leaves in run_ what the library is to do, in line_ how that is written.
  template <class F>
  void library(std::string text, F&& f) {
    line_ = std::move(text);
    run_ = std::forward<F>(f);
  }
  template <class... Args>
  [[nodiscard]] std::string made(fmt::format_string<Args...> format, Args&&... args) const {
    return fmt::format("const Tensor t{} = {};", pairs_.size(), fmt::format(format, std::forward<Args>(args)...));
  }

  bool slow_step(const InplaceStep& step, slow::Array& result) {
    if (step.kind == Kind::leaf) return leaf(step, result);
    const Pair &p = chosen(step.a), &q = chosen(step.b);
    const Tensor x = p.fast, y = q.fast;
    switch (step.kind) {
      case Kind::slice:
      case Kind::select:
      case Kind::transpose:
      case Kind::reshape:
      case Kind::expand:
      case Kind::as_strided:
        return view(step, p, result);
      case Kind::detach: {
        const bool grad = step.c % 3 == 0;
        library(made("{}.detach(){}", p.name, grad ? ".requires_grad_()" : ""),
                [x, grad] { return grad ? x.detach().requires_grad_() : x.detach(); });
        result = slow::Machine::detached(p.slow, grad, machine_);
        return true;
      }
      case Kind::clone:
        library(made("clone({})", p.name), [x] { return clone(x); });
        result = machine_.view(p.slow, p.slow.shape, row_major_places(p.slow.shape), true);
        return true;
      case Kind::add:
        if (p.slow.shape != q.slow.shape) return false;
        library(made("{} + {}", p.name, q.name), [x, y] { return x + y; });
        result = machine_.zip(
            p.slow, q.slow, [](double u, double v) { return u + v; }, [](double, double) { return 1.0; },
            [](double, double) { return 1.0; }, slow::Saves::nothing);
        return true;
      case Kind::mul:
        if (p.slow.shape != q.slow.shape) return false;
        library(made("{} * {}", p.name, q.name), [x, y] { return x * y; });
        result = machine_.zip(
            p.slow, q.slow, [](double u, double v) { return u * v; }, [](double, double v) { return v; },
            [](double u, double) { return u; }, slow::Saves::inputs);
        return true;
      case Kind::sin:
        library(made("sin({})", p.name), [x] { return sin(x); });
        result = machine_.map(
            p.slow, [](double v) { return std::sin(v); }, [](double v, double) { return std::cos(v); },
            slow::Saves::inputs);
        return true;
      case Kind::tanh:
        library(made("tanh({})", p.name), [x] { return tanh(x); });
        result = machine_.map(
            p.slow, [](double v) { return std::tanh(v); }, [](double, double t) { return 1 - t * t; },
            slow::Saves::result);
        return true;
      case Kind::relu:
        library(made("relu({})", p.name), [x] { return relu(x); });
        result = machine_.map(
            p.slow, [](double v) { return v > 0 ? v : 0; }, [](double, double t) { return t > 0 ? 1.0 : 0.0; },
            slow::Saves::result);
        return true;
      case Kind::sum:
        library(made("sum({})", p.name), [x] { return sum(x); });
        result = machine_.total(p.slow);
        return true;
      case Kind::fill: {
        const double value = static_cast<double>(step.c % 7) / 2 - 1;
        library(fmt::format("{}.fill_({});", p.name, value), [this, x, value] { return fill(x, value); });
        machine_.write(p.slow, slow::Flat(p.slow.places.size(), value));
        return false;
      }
      case Kind::copy:
        return copy(p, q);
      case Kind::write_one: {
        const double value = static_cast<double>(step.c % 5) - 2;
        library(fmt::format("{}.mutable_data<double>()[0] = {};", p.name, value), [x, value] {
          x.mutable_data<double>()[0] = value;
          return Tensor{};
        });
        slow::Array first = p.slow;
        first.places.resize(1);
        machine_.write(first, {value});
        return false;
      }
      default:
        return backward(p);
    }
  }

  bool leaf(const InplaceStep& step, slow::Array& result) {
    Shape shape;
    for (uint32_t rank = step.c % 4, rest = step.c / 4; rank > 0; --rank, rest /= 3) shape.push_back(1 + rest % 3);
    const bool grad = step.b % 3 != 0;
    Dice dice(step.a, step.b);
    slow::Flat values(static_cast<size_t>(numel(shape)));
    for (double& v : values) v = std::round((dice.uniform() * 4 - 2) * 8) / 8;
    std::string numbers;
    for (const double v : values) numbers += (numbers.empty() ? "" : ", ") + fmt::format("{}", v);
    library(made("from(std::vector<double>{{{}}}, {}){}", numbers, shape_text(shape), grad ? ".requires_grad_()" : ""),
            [values, shape, grad] { return from(values, shape).requires_grad_(grad); });
    result = machine_.leaf(values, shape, grad);
    return true;
  }

  /// Two things the reference cannot know, having no strides, are asked of the library: whether reshape must copy, and whether a view that changes
  /// nothing is its operand itself. Where neither may be, that is a fault.
  bool view(const InplaceStep& step, const Pair& p, slow::Array& result) {
    const auto chosen = choose_view(step, p.slow, p.name);
    if (!chosen) return false;
    const View& v = *chosen;
    const Tensor x = p.fast;
    library(made("{}", v.text), [x, v] { return v.apply(x); });
    const Tensor plain = x.detach(), seen = v.apply(plain);
    if (seen.is_same(plain)) {
      if (v.to != p.slow.shape || v.source != row_major_places(v.to)) fault(v.text + " is its operand");
      result = p.slow;
      return true;
    }
    const bool copied = !seen.shares_storage(x);
    if (copied && (consecutive(p.slow) || step.kind != Kind::reshape)) fault(v.text + " copies");
    result = machine_.view(p.slow, v.to, v.source, copied);
    return true;
  }

  bool copy(const Pair& p, const Pair& q) {
    const Shape &to = p.slow.shape, &from = q.slow.shape;
    const int lead = to.rank() - from.rank();
    if (lead < 0 || p.slow.overlaps_itself()) return false;
    for (int d = 0; d < from.rank(); ++d)
      if (from[d] != 1 && from[d] != to[d + lead]) return false;
    const Tensor x = p.fast, y = q.fast;
    library(fmt::format("{}.copy_({});", p.name, q.name), [x, y] { return x.copy_(y); });
    const slow::Flat source = q.slow.values();
    slow::Flat values;
    for (const size_t at : sources(to, [&](const Dims& i) {
           Dims own;
           for (int d = 0; d < from.rank(); ++d) own.push_back(from[d] == 1 ? 0 : i[d + lead]);
           return row_major(from, own);
         }))
      values.push_back(source[at]);
    machine_.write(p.slow, values);
    return false;
  }

  bool backward(const Pair& p) {
    if (!p.slow.history) return false;
    const Tensor x = p.fast;
    library(fmt::format("{}.backward(ones_like({}), {{.retain_graph = true}});", p.name, p.name), [this, x] {
      std::vector<Tensor> leaves;
      for (const Pair& pair : pairs_)
        if (pair.fast.is_leaf() && pair.fast.requires_grad()) leaves.push_back(pair.fast);
      found_ = grad({x}, leaves, {.grad_outputs = {ones_like(x)}, .retain_graph = true, .allow_unused = true});
      return Tensor{};
    });
    expected_ = slow::Machine::gradients(p.slow);
    walked_ = true;
    return false;
  }

  /// fill_, or the same behind the library's back.
  Tensor fill(const Tensor& x, double value) const {
    if (!forget_ || (grad_enabled() && x.requires_grad())) return x.fill_(value);
    const uint32_t before = x.version();
    x.fill_(value);
    x.body()->storage->version = before;
    return x;
  }

  void compare() {
    for (const Pair& pair : pairs_) {
      if (!close(pair.fast.to_vector<double>(), pair.slow.values()))
        return fault(fmt::format("{} is {}, the reference has {}", pair.name, text_of(pair.fast.to_vector<double>()),
                                 text_of(pair.slow.values())));
      if (!forget_ && pair.fast.version() != pair.slow.cells->version)
        return fault(fmt::format("{} is at version {}, the reference at {}", pair.name, pair.fast.version(),
                                 pair.slow.cells->version));
      if (pair.fast.requires_grad() != (pair.slow.history != nullptr))
        return fault(pair.name + " requires a gradient on one side only");
      if (pair.fast.shares_storage(pairs_[0].fast) != (pair.slow.cells == pairs_[0].slow.cells))
        return fault(pair.name + " shares its storage on one side only");
    }
    if (!walked_) return;
    walked_ = false;
    ++result_.walks;
    size_t k = 0;
    for (const Pair& pair : pairs_) {
      if (!pair.fast.is_leaf() || !pair.fast.requires_grad()) continue;
      const Tensor& g = found_[k++];
      const auto it = expected_.find(pair.slow.history.get());
      const slow::Flat right = it == expected_.end() ? slow::Flat(pair.slow.places.size()) : it->second,
                       have = g.defined() ? g.to_vector<double>() : slow::Flat(right.size());
      if (!close(have, right))
        return fault(
            fmt::format("the gradient of {} is {}, the reference has {}", pair.name, text_of(have), text_of(right)));
    }
  }

  static bool close(const slow::Flat& a, const slow::Flat& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
      return x == y || std::abs(x - y) <= 1e-10 * std::max(1.0, std::abs(y)) || (std::isnan(x) && std::isnan(y));
    });
  }
  static bool consecutive(const slow::Array& x) {
    for (size_t i = 1; i < x.places.size(); ++i)
      if (x.places[i] != x.places[i - 1] + 1) return false;
    return true;
  }
  static std::string text_of(const slow::Flat& values) {
    std::string text;
    for (const double v : values) text += (text.empty() ? "[" : ", ") + fmt::format("{:.6g}", v);
    return text + "]";
  }
  const InplaceProgram& program_;
  bool forget_;
  slow::Machine machine_;
  std::vector<Pair> pairs_;
  std::string line_;
  std::function<Tensor()> run_;
  std::vector<Tensor> found_;
  std::map<const slow::History*, slow::Flat> expected_;
  bool walked_ = false;
  InplaceResult result_;
};

}  // namespace

InplaceProgram generate_inplace(uint64_t seed, uint64_t number) {
  Dice dice(seed, number);
  const auto word = [&] { return static_cast<uint32_t>(dice.below(1 << 20)); };
  InplaceProgram program = {{Kind::leaf, word(), 1, word(), true}};
  for (int64_t n = 5 + dice.below(26); n > 0; --n) {
    auto kind = static_cast<Kind>(dice.below(InplaceStep::kinds));
    if (dice.chance(0.1)) kind = Kind::backward;
    const bool writes = kind == Kind::fill || kind == Kind::copy || kind == Kind::write_one;
    program.push_back({kind, word(), word(), word(), !dice.chance(writes ? 0.7 : 0.1)});
  }
  program.push_back({Kind::backward, word(), word(), word(), true});
  return program;
}

InplaceResult run_inplace(const InplaceProgram& program, bool forget_versions) {
  return Runner(program, forget_versions).run();
}

InplaceProgram shrink_inplace(InplaceProgram program, bool forget_versions) {
  const auto fails = [&](const InplaceProgram& p) { return !run_inplace(p, forget_versions).fault.empty(); };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (size_t i = program.size(); i-- > 0;) {
      InplaceProgram candidate = program;
      candidate.erase(candidate.begin() + static_cast<int64_t>(i));
      if (fails(candidate)) {
        program = candidate, smaller = true;
        continue;
      }
      // Without the tensor it made, later ones have smaller numbers.
      for (size_t k = i; k < candidate.size(); ++k)
        for (uint32_t* word : {&candidate[k].a, &candidate[k].b}) *word -= *word > 0 ? 1 : 0;
      if (fails(candidate)) program = candidate, smaller = true;
    }
    // Other operands may let more steps go.
    for (InplaceStep& step : program)
      for (uint32_t* word : {&step.a, &step.b, &step.c})
        for (uint32_t value = 0; value < std::min<uint32_t>(*word, 6); ++value) {
          const uint32_t before = std::exchange(*word, value);
          if (fails(program)) {
            smaller = true;
            break;
          }
          *word = before;
        }
  }
  return program;
}

}  // namespace tapestry::fuzz
