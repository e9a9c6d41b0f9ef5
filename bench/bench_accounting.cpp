// Predictions beside measurements: the peak of a training step by tensors, by the allocator and by the process, its time, and that of a decoded token.
// Not a test: times are estimates (models/transformer/machine_profile.h). Each preset runs in a process of its own, for its peak.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "../autograd/allocator.h"
#include "../autograd/grad_mode.h"
#include "../autograd/tools/memory_report.h"
#include "../models/training/presets.h"
#include "../models/transformer/accounting_peak.h"
#include "../models/transformer/lm.h"
#include "../models/transformer/machine_profile.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "../optim/adamw.h"
#include "../optim/optimizer.h"

using namespace tapestry;

namespace {

template <class F>
double seconds(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double percent(double predicted, double measured) { return 100 * (predicted / measured - 1); }

double resident() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

void compare(const char* name, const TransformerConfig& c, int64_t rows, bool recompute) {
  const int64_t length = c.max_seq_len;
  const TrainingMemory predicted = training_memory(c, rows, length, {.recompute = recompute});
  const double before = resident();
  double step = 1e9, token = 1e9;
  MemoryTracker tracker;
  Transformer model(c);
  model.recompute = recompute;
  Optimizer<AdamW> optimizer(named_parameters(model));
  const Tensor tokens = randint(0, c.vocab_size, {rows, length});
  for (int i = 0; i < 4; ++i) {
    tracker.reset_peak();
    reset_peak_memory();
    const double taken = seconds([&] {
      model.loss(tokens, tokens, {.reduction = Reduction::sum})
          .backward(scalar(1.0 / static_cast<double>(rows * length)));
      optimizer.step();
      optimizer.zero_grad();
    });
    if (i > 0) step = std::min(step, taken);
  }
  const double peak = static_cast<double>(tracker.report().peak.total()),
               allocated = static_cast<double>(memory_stats().peak_bytes), process = resident() - before;
  {
    const NoGrad no_grad;
    KeyValueCache cache(c);
    (void)model(slice(slice(tokens, 0, 0, 1), 1, 0, length - 16), TransformerArgs{.cache = &cache});
    for (int64_t i = length - 16; i < length; ++i)
      token = std::min(token, seconds([&] {
                         (void)model(slice(slice(tokens, 0, 0, 1), 1, i, i + 1), TransformerArgs{.cache = &cache});
                       }));
  }
  const MachineProfile machine = measure_machine();
  const double step_estimate = training_time(machine, c, rows, length, recompute).seconds();
  const double token_estimate = decode_time(machine, c, length, DType::f32, DType::f32).seconds();
  std::printf(
      "%-6s %-10s | tensors %8.1f MiB %+6.2f %% | allocator %8.1f MiB %+6.2f %% | process %8.1f MiB %+6.1f %% | step "
      "%8.1f ms, estimated x %.2f | token %7.2f ms, estimated x %.2f\n",
      name, recompute ? "recompute" : "", peak / 0x1p20, percent(static_cast<double>(predicted.peak.total()), peak),
      allocated / 0x1p20, percent(static_cast<double>(predicted.allocated), allocated), process / 0x1p20,
      percent(static_cast<double>(predicted.allocated), process), 1e3 * step, step_estimate / step, 1e3 * token,
      token_estimate / token);
  std::fflush(stdout);
}

}  // namespace

int main() {
  for (const char* name : {"demo", "nano", "small", "base"})
    for (const bool recompute : {false, true}) {
      const pid_t child = fork();  // before this process has threads
      if (child == 0) {
        TrainConfig c = preset(name);
        c.model.vocab_size = 256;
        compare(name, c.model, c.micro_batch > 0 ? c.micro_batch : c.batch, recompute);
        std::_Exit(0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      if (status != 0) return 1;
    }
}
