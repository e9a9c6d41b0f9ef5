// test_draw.cpp: the drawing of a tape has its nodes and edges, and is well formed whatever the names.
// Not how it looks.
#include "../autograd/tools/draw.h"

#include <doctest/doctest.h>

#include <regex>

#include "../autograd/engine.h"
#include "../autograd/node.h"
#include "../autograd/scope.h"
#include "../ops/ops.h"

using namespace tapestry;

namespace {

struct Drawing {
  std::vector<std::string> labels;
  size_t edges = 0;
};

/// Reads what draw() writes; every line must be one of its kinds.
Drawing parsed(const std::string& dot) {
  const std::regex node(R"x(  n(\d+) \[shape=(box|ellipse), label="((?:[^"\\]|\\.)*)"\];)x");
  const std::regex edge(R"x(  n(\d+) -> n(\d+)(?: \[label="\d+"\])?;)x");
  Drawing d;
  std::istringstream lines(dot);
  std::string line, last;
  std::getline(lines, line);
  CHECK(line == "digraph tape {");
  while (std::getline(lines, line)) {
    last = line;
    std::smatch m;
    if (std::regex_match(line, m, node)) {
      CHECK(std::stoul(m[1]) == d.labels.size());
      d.labels.push_back(m[3]);
    } else if (std::regex_match(line, m, edge)) {
      CHECK(std::stoul(m[1]) < std::stoul(m[2]));
      ++d.edges;
    } else if (line != "}") {
      CHECK_MESSAGE((line.find("  rankdir=") == 0 || line.find("  node [") == 0), line);
    }
  }
  CHECK(last == "}");
  return d;
}

size_t edges_of(const Tensor& loss) {
  size_t n = 0;
  for (const auto& node : tape(loss))
    for (const Edge& e : node->inputs) n += e ? 1 : 0;
  return n;
}

}  // namespace

TEST_SUITE("draw") {
  TEST_CASE("nodes and edges are the tape's; labels have op, shape, dtype, path, saved bytes and gradients") {
    const Tensor w = tensor<double>({3, 4}).requires_grad_(), x = tensor<double>({1, 2}).requires_grad_();
    Tensor h;
    {
      const Scope scope(intern_path("layers.0"));
      h = mul(x, w);
    }
    h.retain_grad();
    const Tensor loss = sum(add(mul(h, h), x * 2.0));
    const Drawing before = parsed(draw(loss, {{"w", w}}));
    CHECK(before.labels.size() == tape(loss).size());
    CHECK(before.edges == edges_of(loss));
    CHECK(before.edges == 8);
    CHECK(before.labels[0] == "w\\n[2] f64");
    CHECK(before.labels[2] == "mul\\n[2] f64\\nsaves 32 B\\nlayers.0");
    loss.backward();
    const Drawing after = parsed(draw(loss, {{"w", w}}));
    CHECK(after.labels.size() == before.labels.size());
    CHECK(after.labels[0] == "w\\n[2] f64\\n|grad| = 32.56");                       // 2h·x = (6, 32)
    CHECK(after.labels[2] == "mul\\n[2] f64\\nfreed\\nlayers.0\\n|grad| = 17.09");  // 2h = (6, 16)
  }

  TEST_CASE("several outputs are numbered; names are escaped; without a graph it is empty") {
    const Tensor x = tensor<double>({3, 1, 2}).requires_grad_();
    const auto parts = split(x, 1, 0);
    const Tensor loss = sum(cat({parts[2] * 2.0, parts[0]}, 0));
    const Drawing d =
        parsed(draw(loss, {{"a \"quoted\\\" name\nin two lines", x}, {"frozen", ones({2})}, {"none", {}}}));
    CHECK(d.labels.size() == tape(loss).size());
    CHECK(d.edges == edges_of(loss));
    CHECK(d.labels[0] == R"(a \"quoted\\\" name\nin two lines\n[3] f64)");
    CHECK(parsed(draw(ones({2}))).labels.empty());
  }
}
