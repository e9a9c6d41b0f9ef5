// Low-rank adaptation: small trainable products beside frozen linear layers (Hu et al. 2022).
// Not here: the files adapters are saved in (models/transformer/hf/adapter.h).
// Next: linear.h.
#pragma once

#include <string>
#include <vector>

#include "module.h"
#include "state_dict.h"

namespace tapestry {

struct LoraOptions {
  int64_t rank = 8;    ///< r
  double alpha = 16;   ///< the product is scaled by α/r
  double dropout = 0;  ///< of x before the product, while training
  /// Which Linear modules get an adapter: glob patterns over their paths ("*.q_proj"), as autograd/pattern.h has them.
  std::vector<std::string> targets = {"*.q_proj", "*.v_proj"};
};

/// Gives every Linear whose path matches an adapter, y = Wx + (α/r)·B·A·x with A (r, in) as Kaiming-uniform and B (out, r)
/// as zeros, so that nothing changes yet, and freezes all other parameters of m. The names are
/// <path>.lora_A.weight and <path>.lora_B.weight, f32 also beside bf16 weights. Returns the paths. ValueError for a rank,
/// alpha or dropout out of its domain, a pattern that matches no Linear, or a Linear that has an adapter.
std::vector<std::string> add_lora(Module& m, const LoraOptions& options);
/// Adds (α/r)·B·A to every weight with an adapter, in place: the same outputs without the products. The adapters stay and
/// pass by until unmerge_lora, which puts the old weights back bit for bit. ValueError if there is none, or they are merged already (not merged, to unmerge).
void merge_lora(Module& m);
void unmerge_lora(Module& m);
/// merge_lora, then forgets the adapters: m is an ordinary module again, whose parameters can be trained.
void fold_lora(Module& m);
/// The adapters' parameters alone, by name.
StateDict lora_state_dict(const Module& m);

}  // namespace tapestry
