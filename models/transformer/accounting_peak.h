// The memory a training step of this implementation holds at its peak, from the configuration alone.
// Not a measurement (MemoryTracker, which it is tested against), nor the usual list (accounting_memory.h).
// Next: sized_tape.h.
#pragma once

#include "../../autograd/tools/memory_report.h"
#include "config.h"

namespace tapestry {

struct TrainingMemoryOptions {
  bool recompute = false;    ///< Transformer::recompute: blocks are computed again in backward
  bool chunked_loss = true;  ///< Transformer::loss, which holds no logits; false: cross_entropy of the logits
  bool accumulate = false;   ///< further micro-batches add to gradients that exist
  int64_t loss_chunk = 0;    ///< rows of logits the chunked loss holds; 0: as linear_cross_entropy chooses
};

/// Bytes by kind, as a MemoryTracker counts them: what kernels take for themselves is not in it.
struct TrainingMemory {
  MemoryUse peak;  ///< when the total is largest
  int64_t allocated =
      0;              ///< peak of what the allocator hands out, which rounds every tensor up (MemoryStats::peak_bytes)
  int64_t saved = 0;  ///< kept for backward at the end of forward
};

/// One step of f32 training with AdamW on (rows, length) tokens, all parameters trained, not the first one, so that the moments are there.
/// With experts their tokens are taken to be evenly spread. ValueError as check_countable.
TrainingMemory training_memory(const TransformerConfig& c, int64_t rows, int64_t length,
                               const TrainingMemoryOptions& options = {});

}  // namespace tapestry
