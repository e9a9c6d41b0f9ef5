// The chains of bench_tape in libtorch.
// Built where libtorch-dev is installed; run beside bench_tape by alternate.sh.
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <string>
#include <vector>

using torch::Tensor;

namespace {

std::map<std::string, int> option{{"--length", 1000}, {"--repeats", 300}};

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

template <class Step>
void time_chain(const char* name, Step step) {
  const int length = option["--length"], repeats = option["--repeats"];
  std::vector<double> record, backward, release;
  for (int r = -repeats / 10; r < repeats; ++r) {
    const Tensor x = torch::ones({1}, torch::requires_grad());
    const double t0 = now();
    Tensor y = x;
    for (int i = 0; i < length; ++i) y = step(y, x);
    const double t1 = now();
    y.backward();
    const double t2 = now();
    y.reset();
    const double t3 = now();
    if (r < 0) continue;
    record.push_back((t1 - t0) / length * 1e9);
    backward.push_back((t2 - t1) / length * 1e9);
    release.push_back((t3 - t2) / length * 1e9);
  }
  std::printf("libtorch %s | record %.0f ns | backward %.0f ns | free %.0f ns\n", name, median(record),
              median(backward), median(release));
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto it = option.find(argv[i]);
    if (it == option.end()) return std::fprintf(stderr, "torch_tape: unknown option %s\n", argv[i]), 2;
    it->second = std::stoi(argv[i + 1]);
  }
  at::set_num_threads(1);
  time_chain("add", [](const Tensor& y, const Tensor& x) { return y + x; });
  time_chain("mul", [](const Tensor& y, const Tensor& x) { return y * x; });
  time_chain("exp", [](const Tensor& y, const Tensor&) { return y.exp(); });
}
