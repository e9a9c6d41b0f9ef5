// Names to module paths.
#include "memory_places.h"

#include "../../nn/visitor.h"

namespace tapestry {

void place_memory(const MemoryTracker& tracker, const Trainer& trainer) {
  const auto module_of = [](const std::string& name) {
    const size_t dot = name.rfind('.');
    return dot == std::string::npos ? std::string() : name.substr(0, dot);
  };
  const auto state = trainer.optimizer().state_dict();
  for (const auto& [name, p] : named_parameters(trainer.model())) {
    tracker.place(module_of(name), p);
    tracker.place(module_of(name), p.grad());
    for (const auto& [key, tensor] : state)  // "exp_avg.<name>"
      if (key.size() > name.size() && key.ends_with("." + name)) tracker.place(module_of(name), tensor);
  }
}

}  // namespace tapestry
