// The predicted peak of a training step against what a tracker of memory sees.
// Next: ../models/transformer/accounting_peak.h.
#include <doctest/doctest.h>

#include <cmath>

#include "../autograd/allocator.h"
#include "../autograd/random.h"
#include "../models/transformer/accounting_peak.h"
#include "../models/transformer/lm.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "../optim/adamw.h"
#include "../optim/optimizer.h"
#include "accounting_configs.h"

using namespace tapestry;

namespace {

void add_gradients(const Transformer& model, int64_t rows, int64_t length, bool chunked_loss) {
  const auto ids = [&] { return randint(0, model.config.vocab_size, {rows, length}); };
  const double tokens = static_cast<double>(rows * length);  // the sum of losses, divided afterwards, as a step does it
  const auto loss = [&] {
    if (chunked_loss) return model.loss(ids(), ids(), {.reduction = Reduction::sum});
    return cross_entropy(model(ids()), ids(), {.reduction = Reduction::sum});
  };
  loss().backward(scalar(1 / tokens));
}

struct Peak {
  MemoryUse use;
  int64_t allocated;
};

/// Of the second step, when the moments are there.
Peak measured_peak(const TransformerConfig& c, int64_t rows, int64_t length, const TrainingMemoryOptions& o) {
  const int64_t before = memory_stats().live_bytes;
  MemoryTracker tracker;
  Transformer model(c);
  model.recompute = o.recompute;
  Optimizer<AdamW> optimizer(named_parameters(model));
  for (int step = 0; step < 2; ++step) {
    tracker.reset_peak();
    reset_peak_memory();
    for (int i = 0; i < (o.accumulate ? 2 : 1); ++i) add_gradients(model, rows, length, o.chunked_loss);
    optimizer.step();
    optimizer.zero_grad();
  }
  return {tracker.report().peak, memory_stats().peak_bytes - before};
}

/// Both within `bound` of what is measured.
void check_peak(const TransformerConfig& c, int64_t rows, int64_t length, const TrainingMemoryOptions& o,
                double bound = 0.01) {
  CAPTURE(o.recompute);
  CAPTURE(o.accumulate);
  CAPTURE(o.chunked_loss);
  const TrainingMemory predicted = training_memory(c, rows, length, o);
  const Peak measured = measured_peak(c, rows, length, o);
  const auto error = [](int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b) - 1; };
  CHECK(std::abs(error(predicted.peak.total(), measured.use.total())) < bound);
  CHECK(std::abs(error(predicted.allocated, measured.allocated)) < bound);
  // Not by chance: each kind by itself, of what there is much of.
  for (size_t i = 0; i < memory_kinds; ++i) {
    const MemoryKind kind{static_cast<uint8_t>(i)};
    CAPTURE(std::string(name_of(kind)));
    const double difference = static_cast<double>(predicted.peak[kind] - measured.use[kind]);
    CHECK(std::abs(difference) < bound * static_cast<double>(measured.use.total()));
  }
}

}  // namespace

TEST_SUITE("accounting_peak") {
  TEST_CASE("the peak of a step, for every choice that changes it") {
    for (const NamedConfig& row : accounting_configs()) {
      CAPTURE(row.name);
      TransformerConfig c = row.config;
      c.max_seq_len = 64, c.d_model = 64, c.d_ff = 160, c.vocab_size = 100;
      const double bound = c.n_experts > 0 ? 0.05 : 0.01;  // experts do not get equally many tokens
      for (const bool recompute : {false, true})
        for (const bool chunked_loss : {false, true})
          for (const bool accumulate : {false, true}) {
            const TrainingMemoryOptions o{
                .recompute = recompute, .chunked_loss = chunked_loss, .accumulate = accumulate};
            check_peak(c, 3, 64, o, bound);
          }
    }
  }

  TEST_CASE("the peak of a step, for shapes in which other things are large") {
    struct Row {
      const char* what;
      int64_t vocab_size, n_layers, d_model, rows, length;
    };
    for (const auto& [what, vocab_size, n_layers, d_model, rows, length] :
         {Row{"long sequences", 64, 2, 32, 1, 1024}, Row{"a large vocabulary", 8000, 2, 32, 2, 64},
          Row{"many layers", 65, 24, 32, 4, 64}, Row{"wide", 65, 2, 256, 1, 32},
          Row{"the preset nano", 65, 4, 128, 12, 64}}) {
      const std::string shape = what;
      CAPTURE(shape);
      TransformerConfig c = accounting_base();
      c.vocab_size = vocab_size, c.n_layers = n_layers, c.d_model = d_model, c.d_ff = 3 * d_model;
      c.max_seq_len = length;
      for (const bool recompute : {false, true})
        for (const bool chunked_loss : {false, true})
          check_peak(c, rows, length, {.recompute = recompute, .chunked_loss = chunked_loss});
    }
  }

  TEST_CASE("computing blocks again keeps less of more layers") {
    TransformerConfig c = accounting_base();
    c.max_seq_len = 64;
    const auto saved = [&](int64_t layers, bool recompute) {
      c.n_layers = layers;
      return training_memory(c, 2, 64, {.recompute = recompute}).saved;
    };
    CHECK(saved(9, true) - saved(8, true) == 2 * 64 * c.d_model * 4);  // its input
    CHECK(saved(9, false) - saved(8, false) > 10 * 2 * 64 * c.d_model * 4);
  }
}
