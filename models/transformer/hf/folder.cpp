// Comparing names and shapes first, then reading weight by weight.
// Next: adapter.cpp.
#include "folder.h"

#include <filesystem>

#include "../../../autograd/error.h"
#include "../../../autograd/grad_mode.h"
#include "../../../nn/atomic_file.h"
#include "../../../nn/init.h"
#include "../../../nn/mapped_file.h"
#include "../../../nn/visitor.h"
#include "../../../ops/ops.h"
#include "weight_files.h"
#include "weight_map.h"

namespace tapestry::hf {

namespace fs = std::filesystem;

namespace {

std::shared_ptr<Transformer> built(const TransformerConfig& config, const LoadModelOptions& o) {
  std::optional<init::Skip> skip;
  if (o.strict) skip.emplace();
  auto model = std::make_shared<Transformer>(config);
  if (o.dtype == DType::f32) return model;
  if (!o.strict) {
    to(*model, o.dtype);
    return model;
  }
  if (!is_floating(o.dtype)) fail<DTypeError>("hf: parameters are floating, not {}", name_of(o.dtype));
  for_each_parameter(*model, [&](const std::string&, Parameter& p) { p = Parameter(empty(p.shape(), o.dtype)); });
  return model;
}

/// The names in the files: with the family's prefix, or all without it.
class FileNames {
 public:
  FileNames(const Family& family, const WeightFiles& files) : prefix_(family.prefix) {
    for (const std::string& name : files.names())
      if (name.starts_with(prefix_)) return;
    drop_ = true;
  }
  [[nodiscard]] std::string operator()(const std::string& name) const {
    return drop_ && name.starts_with(prefix_) ? name.substr(prefix_.size()) : name;
  }

 private:
  std::string_view prefix_;
  bool drop_ = false;
};

bool is_ignored(const Family& family, const FileNames& in_file, const std::string& name) {
  std::vector<std::string_view> numbers;
  for (const std::string_view pattern : family.ignored)
    if (matches(in_file(std::string(pattern)), name, numbers)) return true;
  return false;
}

void check_tied_head(const std::string& folder, const WeightFiles& files, const std::string& head,
                     const std::string& table) {
  if (!files.contains(table)) return;  // reported as missing
  const Tensor a = files.read(head), b = files.read(table);
  if (a.shape() != b.shape() || !all(equal(to(a, DType::f64), to(b, DType::f64))).item<bool>())
    fail<FormatError>(
        "hf: '{}': {} is not the same as {}, though tie_word_embeddings says so; set that to false to load both",
        folder, head, table);
}

}  // namespace

bool is_model_folder(const std::string& folder) {
  const std::string path = folder + "/config.json";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return false;
  const MappedFile file(path);
  return ConfigFields::reading(path, file.bytes()).given("model_type");
}

LoadedModel load_model(const std::string& folder, const LoadModelOptions& o) {
  ReadConfig read;
  {
    const std::string path = folder + "/config.json";
    const MappedFile file(path);
    read = read_config(path, file.bytes());
  }
  TransformerConfig& config = read.config;
  if (o.split_fused) config.fused_qkv = config.fused_gate_up = false;
  if (o.rope_layout && config.positions == Positions::rope) config.rope_layout = *o.rope_layout;
  const Family& family = *read.family;
  const WeightFiles files(folder);
  LoadedModel loaded{.model = built(config, o), .family = &family, .ids = generation_ids(folder, read.ids)};
  const WeightMap map(family, *loaded.model);
  const FileNames in_file(family, files);

  LoadReport& report = loaded.report;
  const std::string head = in_file(file_name(family, "lm_head").name) + ".weight",
                    table = in_file(file_name(family, "token_embedding").name + ".weight");
  std::map<std::string, bool> expected;  // names in the files, and whether they can be loaded
  for (const auto& [stored, shape] : map.stored()) {
    const std::string name = in_file(stored);
    expected[name] = false;
    if (!files.contains(name)) {
      report.missing.push_back(name);
    } else if (files.shape(name) != shape || files.dtype(name)[0] == 'I' || files.dtype(name) == "U8" ||
               files.dtype(name) == "BOOL") {
      report.mismatched.push_back(fmt::format("{} is {}, file has {} {}", name, to_string(shape),
                                              to_string(files.shape(name)), files.dtype(name)));
    } else {
      expected[name] = true;
      report.loaded.push_back(name);
      if (files.dtype(name) != file_dtype(o.dtype))
        report.converted.push_back(fmt::format("{}: {} loaded as {}", name, files.dtype(name), name_of(o.dtype)));
    }
  }
  for (const std::string& name : files.names()) {
    if (expected.contains(name)) continue;
    if (is_ignored(family, in_file, name))
      loaded.ignored.push_back(name);
    else if (config.tied_embeddings && name == head)
      check_tied_head(folder, files, head, table);
    else
      report.unexpected.push_back(name);
  }
  if (const std::string faults = describe(report); o.strict && !faults.empty())
    fail<FormatError>("hf: '{}' does not fit a {} model: {}", folder, family.model_type, faults);

  const NoGrad raw;
  std::pair<std::string, Tensor> last;  // a fused weight is asked for several times in a row
  const auto stored = [&](const std::string& name) {
    if (last.first != name) last = {name, files.read(in_file(name))};
    return last.second;
  };
  for_each_parameter(*loaded.model, [&](const std::string& name, Parameter& p) {
    for (const std::string& source : map.sources(name))
      if (!expected.at(in_file(source))) return;
    p.copy_(map.parameter(name, stored));
  });
  loaded.model->eval();
  if (files.contains(table)) loaded.stored_dtype = files.dtype(table);
  return loaded;
}

void save_model(const std::string& folder, const Transformer& model, const Family& family, const SaveModelOptions& o) {
  constexpr std::pair<std::string_view, std::string_view> dtypes[] = {
      {"F32", "float32"}, {"BF16", "bfloat16"}, {"F16", "float16"}, {"F64", "float64"}};
  std::string_view torch_dtype;
  for (const auto& [name, torch] : dtypes)
    if (name == o.dtype) torch_dtype = torch;
  if (torch_dtype.empty())
    fail<ValueError>("hf: weights cannot be saved as '{}'; choose F32, BF16, F16 or F64", o.dtype);
  for_each_module(const_cast<Transformer&>(model), [&](const std::string& path, Module& m) {
    const auto* layer = dynamic_cast<const Linear*>(&m);
    if (layer != nullptr && layer->adapter && !layer->adapter->unmerged.defined())
      fail<ValueError>("hf: the adapter of {} is not merged; merge_lora or save_adapter first", path);
  });
  const std::string config = write_config(family, model.config, torch_dtype, o.ids);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail<IoError>("hf: cannot make the folder '{}': {}", folder, error.message());
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name == "config.json" || name.ends_with(".safetensors"))
      fail<ValueError>("hf: '{}' holds {} already; name an empty folder", folder, name);
  }
  if (error) fail<IoError>("hf: cannot read the folder '{}': {}", folder, error.message());

  const WeightMap map(family, model);
  std::map<std::string, Tensor> own;
  for (const auto& [name, p] : named_parameters(model)) own.emplace(name, p.detach());
  std::vector<TensorToWrite> weights;
  for (const auto& named : map.stored()) {
    const std::string& name = named.first;
    weights.push_back({name, o.dtype, named.second, [&map, &own, &name] {
                         const NoGrad raw;
                         return map.stored(name, [&](const std::string& parameter) { return own.at(parameter); });
                       }});
  }
  write_weight_files(folder, weights, o.max_shard_bytes);
  write_file_atomically(folder + "/config.json", config);
}

const Family& family_for(const TransformerConfig& config) {
  const Family* able = nullptr;
  for (const Family* family : families()) {
    try {
      const TransformerConfig own = read_config("config.json", write_config(*family, config)).config;
      if (own.fused_qkv == config.fused_qkv && own.fused_gate_up == config.fused_gate_up) return *family;
      if (able == nullptr) able = family;
    } catch (const FormatError&) {  // the next one
    }
  }
  if (able == nullptr) static_cast<void>(write_config(*families()[0], config));  // says why not
  return able != nullptr ? *able : *families()[0];
}

ModelIds generation_ids(const std::string& folder, ModelIds ids) {
  const std::string path = folder + "/generation_config.json";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return ids;
  const MappedFile file(path);
  ConfigFields f = ConfigFields::reading(path, file.bytes());
  if (f.given("bos_token_id")) f.ids("bos_token_id", ids.bos);
  if (f.given("eos_token_id")) f.ids("eos_token_id", ids.eos);
  if (f.given("pad_token_id")) f.ids("pad_token_id", ids.pad);
  return ids;
}

std::vector<std::string> copy_companions(const std::string& from, const std::string& to) {
  std::vector<std::string> copied;
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "tokenizer.model",
        "vocab.json", "merges.txt", "chat_template.jinja", "generation_config.json"}) {
    const std::string source = from + "/" + name;
    std::error_code error;
    if (!fs::is_regular_file(source, error) || fs::file_size(source, error) == 0) continue;
    const MappedFile file(source);
    write_file_atomically(to + "/" + name, file.bytes());
    copied.emplace_back(name);
  }
  return copied;
}

}  // namespace tapestry::hf
