// The model table: every model of the zoo, tiny, with a batch of its own, for tests that hold for all models.
// Not a registry to build models from: include the model's header.
// Next: mlp.h, transformer/lm.h.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "../nn/module.h"

namespace tapestry {

/// A model and the loss of its one batch, a pure function of the parameters. The batch is in `dtype`, as the parameters
/// are.
struct TinyModel {
  std::shared_ptr<Module> module;
  std::function<Tensor()> loss;
};

struct ZooRow {
  std::string_view name;
  /// With random weights and a random batch: a function of the seed alone.
  TinyModel (*make)(DType dtype, uint64_t seed);
  /// Names of all parameters, in the order of visit(): files of weights depend on them.
  std::span<const std::string_view> parameters;
};

/// All rows. A new model is its header and a row here.
std::span<const ZooRow> zoo();

}  // namespace tapestry
