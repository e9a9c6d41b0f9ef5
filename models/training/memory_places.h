// Where a trainer's memory belongs: its parameters, gradients and moments lie under their module's path in a memory report.
// Next: ../../autograd/tools/memory_report.h.
#pragma once

#include "../../autograd/tools/memory_report.h"
#include "trainer.h"

namespace tapestry {

/// Files what is there now; what comes later, as moments after the first step, takes another call.
void place_memory(const MemoryTracker& tracker, const Trainer& trainer);

}  // namespace tapestry
