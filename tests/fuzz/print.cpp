// A program as C++ that reproduces its failure: includes, inputs, steps, the check.
// Next: shrink.cpp.
#include "program.h"

namespace tapestry::fuzz {
namespace {

std::string braced(std::span<const int64_t> dims) {
  std::string text = to_string(dims);
  text.front() = '{';
  text.back() = '}';
  return text;
}

std::string literal(const Tensor& x) {
  const bool real = is_floating(x.dtype());
  std::string numbers;
  for (const double v : x.to_vector<double>())
    numbers += (numbers.empty() ? "" : ", ") + (real ? fmt::format("{}", v) : fmt::format("{:.0f}", v));
  std::string text = fmt::format("from(std::vector<{}>{{{}}}, {})", real ? "double" : "int64_t", numbers,
                                 x.dim() == 0 ? "Shape{}" : "Shape" + braced(x.shape()));
  if (x.dtype() == DType::boolean) text = "to(" + text + ", DType::boolean)";
  return x.requires_grad() ? text + ".requires_grad_()" : text;
}

std::string name_of(const Ref& ref) {
  if (ref.nr < 0) return "Tensor{}";
  return ref.step < 0 ? fmt::format("x[{}]", ref.nr) : fmt::format("y{}[{}]", ref.step, ref.nr);
}

std::string call_of(const Step& step) {
  std::string inputs;
  for (const Ref& ref : step.inputs) inputs += (inputs.empty() ? "" : ", ") + name_of(ref);
  switch (step.kind) {
    case Step::Kind::fit:
      return fmt::format("{{fuzz::fit({{{}}}, Shape{})}}", inputs, braced(step.shape));
    case Step::Kind::squash:
      return fmt::format("{{fuzz::squash({}, {}, {})}}", inputs, step.low, step.high);
    default:
      break;
  }
  const Params& p = step.p;
  std::string more;
  if (step.nested > 0 || p.a != 0 || p.b != 0 || p.c != 0 || p.d != 0)
    more = fmt::format(", {{{}, {}, {}, {}}}", p.a, p.b, p.c, p.d);
  if (step.nested > 0) more += fmt::format(", {}", step.nested);
  return fmt::format("fuzz::op(\"{}\", {{{}}}{})", step.row->name, inputs, more);
}

}  // namespace

std::string as_cpp(const Program& program, bool second) {
  std::string leaves, steps, outputs;
  for (const Tensor& x : program.leaves) leaves += "      " + literal(x) + ",\n";
  for (size_t s = 0; s < program.steps.size(); ++s)
    steps += fmt::format("    const Tensors y{} = {};\n", s, call_of(program.steps[s]));
  for (const Ref& ref : program.outputs) outputs += (outputs.empty() ? "" : ", ") + name_of(ref);
  return fmt::format(
      "#include \"../autograd/factory.h\"\n"
      "#include \"../autograd/tools/gradcheck.h\"\n"
      "#include \"../ops/ops.h\"\n"
      "#include \"fuzz/program.h\"\n"
      "\n"
      "using namespace tapestry;\n"
      "\n"
      "GradcheckResult reproduce() {{\n"
      "  const std::vector<Tensor> leaves = {{\n{}  }};\n"
      "  const TensorFunction f = [](std::span<const Tensor> x) -> std::vector<Tensor> {{\n{}"
      "    return {{{}}};\n"
      "  }};\n"
      "  return {}(f, leaves, {{.allow_zero = true, .allow_unused = true}});\n"
      "}}\n",
      leaves, steps, outputs, second ? "gradgradcheck" : "gradcheck");
}

}  // namespace tapestry::fuzz
