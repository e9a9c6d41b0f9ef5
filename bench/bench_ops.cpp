// Every row of the op table that has a large sample, forward and forward + backward in f32, under Google Benchmark.
// Not a row of its own: adding an op to the table adds it here. Choose rows with --benchmark_filter=REGEX.
#include <benchmark/benchmark.h>

#include "../autograd/factory.h"
#include "../autograd/grad_mode.h"
#include "../tests/op_table/op_table.h"
#include "../tests/op_table/samples.h"

using namespace tapestry;
using namespace tapestry::op_table;

namespace {

/// Bytes the op must at least move: its inputs once and its outputs once.
int64_t traffic(std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  int64_t bytes = 0;
  for (const auto list : {inputs, outputs})
    for (const Tensor& t : list)
      if (t.defined()) bytes += t.numel() * size_of(t.dtype());
  return bytes;
}

void forward(benchmark::State& state, const OpRow& row) {
  const NoGrad raw;
  const auto inputs = make_inputs(row, row.large, DType::f32, Layout::contiguous, false);
  int64_t bytes = 0;
  for (auto _ : state) {
    const Tensors y = call(row, row.large, inputs);
    bytes = traffic(inputs, y);
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

void forward_backward(benchmark::State& state, const OpRow& row) {
  const auto inputs = make_inputs(row, row.large, DType::f32);
  for (auto _ : state) {
    const Tensors y = call(row, row.large, inputs);
    y[0].backward(ones_like(y[0]));
    for (const Tensor& x : inputs)
      if (x.defined()) x.clear_grad();
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const Family& family : families())
    for (const OpRow& row : family.rows) {
      if (!row.large.given()) continue;
      benchmark::RegisterBenchmark((std::string(row.name) + "/forward").c_str(), forward, row)->UseRealTime();
      if (row.differentiable)
        benchmark::RegisterBenchmark((std::string(row.name) + "/forward+backward").c_str(), forward_backward, row)
            ->UseRealTime();
    }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
