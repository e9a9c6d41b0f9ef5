// What the tape itself costs: nanoseconds to run and record one pointwise op on a one-element f32 tensor, to walk its node back, and to free it.
// Not a comparison: `./dev bench tape` runs it and the same loop in libtorch (peers/torch_tape.cpp) alternately.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "../autograd/parallel.h"
#include "../ops/ops.h"

using namespace tapestry;

namespace {

/// Seconds of CPU time of the process: what else the machine does disturbs it less than a clock on the wall.
double now() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double median(std::vector<double>& v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

/// Builds, walks and frees chains of `length` steps and prints the medians per node.
template <class Step>
void time_chain(const char* name, int length, int repeats, Step step) {
  std::vector<double> record, backward, release;
  for (int r = -repeats / 10; r < repeats; ++r) {
    const Tensor x = ones({1}).requires_grad_();
    const double t0 = now();
    Tensor y = x;
    for (int i = 0; i < length; ++i) y = step(y, x);
    const double t1 = now();
    y.backward();
    const double t2 = now();
    y = {};
    const double t3 = now();
    if (r < 0) continue;
    record.push_back((t1 - t0) / length * 1e9);
    backward.push_back((t2 - t1) / length * 1e9);
    release.push_back((t3 - t2) / length * 1e9);
  }
  std::printf("tapestry %s | record %.0f ns | backward %.0f ns | free %.0f ns\n", name, median(record),
              median(backward), median(release));
}

}  // namespace

int main(int argc, char** argv) {
  int length = 1000, repeats = 300;
  CLI::App app("What recording and walking one node costs");
  app.add_option("--length", length, "nodes of a chain")->capture_default_str();
  app.add_option("--repeats", repeats, "chains; the medians are printed")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  set_num_threads(1);
  time_chain("add", length, repeats, [](const Tensor& y, const Tensor& x) { return y + x; });
  time_chain("mul", length, repeats, [](const Tensor& y, const Tensor& x) { return y * x; });
  time_chain("exp", length, repeats, [](const Tensor& y, const Tensor&) { return exp(y); });
}
