// A family of published models: what its config.json and its weights are called. One row a family, in families/.
// Not here: the folder around them (folder.h).
// Next: families/llama.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config_fields.h"

namespace tapestry::hf {

/// Our name of a module and the file's, {} standing for a number. Several rows with one name in the file are the rows of
/// one fused weight, in this order.
struct NameRow {
  std::string_view ours, theirs;
  bool transposed = false;  ///< stored (in, out)
};

struct Family {
  std::string_view model_type;    ///< as config.json has it
  std::string_view architecture;  ///< for "architectures"; empty: none
  /// Takes the fields in one direction or the other. Fields it does not ask for are refused.
  void (*fields)(ConfigFields& f, TransformerConfig& c);
  std::span<const std::span<const NameRow>> names;
  std::string_view prefix = "model.";              ///< what the names of a model saved without its head lack
  std::span<const std::string_view> ignored = {};  ///< buffers that may lie beside the weights
  RopeLayout rope_layout = RopeLayout::half;
};

/// All of them, those that a plain model is written as first.
std::span<const Family* const> families();
/// The family of this model_type. FormatError, listing them, if there is none.
const Family& family_named(std::string_view model_type);

/// Does {} … {} of the pattern match numbers of `name`, and the rest itself? Then `numbers` are these.
bool matches(std::string_view pattern, std::string_view name, std::vector<std::string_view>& numbers);
/// The file's name of our module or weight path; empty if the family has none.
struct FileName {
  std::string name;
  bool transposed = false;
};
FileName file_name(const Family& family, std::string_view module_path);

/// What config.json says beside the architecture.
struct ModelIds {
  std::vector<int64_t> bos, eos, pad;  ///< token ids; several may end a text
};
struct ReadConfig {
  const Family* family = nullptr;
  TransformerConfig config;
  ModelIds ids;
};
/// The text of a config.json. FormatError, naming the field, for an unknown model_type and for any field or value that
/// the model could not be built as. `file` is what errors call it.
ReadConfig read_config(const std::string& file, std::string_view json);
/// The config.json of a model of this family. FormatError, naming the field, if the family cannot express the config.
/// Dropout that it does not know is left out, since it changes nothing but training.
std::string write_config(const Family& family, const TransformerConfig& config,
                         std::string_view torch_dtype = "float32", const ModelIds& ids = {});

/// The same model with the fields in the form that reading gives: no list where all layers are alike, no width that is
/// the default, nothing about what is not there.
TransformerConfig simplified(TransformerConfig c);

}  // namespace tapestry::hf
