// Low-rank adapters of a model in PEFT's files: adapter_config.json and adapter_model.safetensors.
// Not here: adapters themselves (../../../nn/lora.h).
// Next: ../../../nn/lora.h.
#pragma once

#include <string>

#include "../../../nn/state_dict.h"
#include "../lm.h"
#include "family.h"

namespace tapestry::hf {

/// Writes the adapters of a model, f32, under the names of the family its base model is of. ValueError if there are none,
/// if they differ in rank, alpha or dropout, or if one is of a projection that is a part of a fused weight there, or the
/// other way round; IoError.
void save_adapter(const std::string& folder, const Transformer& model, const Family& family,
                  const std::string& base_model = "");
/// Gives the model the adapters of the folder (add_lora), and freezes the rest. IoError; FormatError, naming the field or
/// the weights, for another kind of adapter, a module the model does not have, or a shape that does not fit.
LoadReport load_adapter(const std::string& folder, Transformer& model, const Family& family);

}  // namespace tapestry::hf
