// Modules by the file's names on one side and by ours on the other.
// Next: ../../../nn/lora.cpp.
#include "adapter.h"

#include <filesystem>
#include <set>

#include "../../../autograd/error.h"
#include "../../../autograd/grad_mode.h"
#include "../../../nn/atomic_file.h"
#include "../../../nn/lora.h"
#include "../../../nn/mapped_file.h"
#include "../../../nn/safetensors.h"
#include "../../../nn/visitor.h"
#include "weight_map.h"

namespace tapestry::hf {
namespace {

constexpr std::string_view prefix = "base_model.model.", weight = ".weight", a_suffix = ".lora_A.weight",
                           b_suffix = ".lora_B.weight";

std::string without(std::string_view end, const std::string& name) { return name.substr(0, name.size() - end.size()); }

struct AdapterOptions {
  int64_t rank = 0;
  double alpha = 0, dropout = 0;
  friend bool operator==(const AdapterOptions&, const AdapterOptions&) = default;
};

/// fn(path, linear) for every Linear.
template <class F>
void for_each_linear(const Transformer& model, F&& fn) {
  for_each_module(const_cast<Transformer&>(model), [&](const std::string& path, Module& m) {
    if (auto* layer = dynamic_cast<Linear*>(&m)) fn(path, *layer);
  });
}

std::string last_name(const std::string& module) { return module.substr(module.rfind('.') + 1); }

/// Names that PEFT finds the modules by: their last parts, if these are of no others, else whole names.
std::string target_list(const std::set<std::string>& chosen, const std::set<std::string>& all) {
  std::set<std::string> last, found;
  for (const std::string& module : chosen) last.insert(last_name(module));
  for (const std::string& module : all)
    if (last.contains(last_name(module))) found.insert(module);
  std::string list;
  for (const std::string& name : found == chosen ? last : chosen) list += (list.empty() ? "\"" : ", \"") + name + "\"";
  return "[" + list + "]";
}

AdapterOptions read_options(const std::string& path) {
  const MappedFile file(path);
  ConfigFields f = ConfigFields::reading(path, file.bytes());
  AdapterOptions o;
  f.must_be("peft_type", "\"LORA\"", "other adapters are not here");
  f.integer("r", o.rank);
  f.number("lora_alpha", o.alpha);
  f.number("lora_dropout", o.dropout, 0);
  f.must_be("bias", "\"none\"", "biases are not trained beside adapters here");
  for (const char* name : {"use_dora", "use_rslora", "use_qalora", "lora_bias"})
    f.must_be(name, "false", "plain low-rank adapters only");
  for (const char* name : {"rank_pattern", "alpha_pattern", "loftq_config"})
    f.must_be(name, "{}", "all adapters have one rank and alpha here");
  for (const char* name : {"modules_to_save", "layer_replication", "trainable_token_indices", "target_parameters",
                           "alora_invocation_tokens", "eva_config", "corda_config", "arrow_config"})
    f.must_be(name, "null", "plain low-rank adapters only");
  // The weights themselves say which modules have one.
  f.harmless({"target_modules", "exclude_modules", "layers_to_transform", "layers_pattern", "fan_in_fan_out",
              "task_type", "inference_mode", "base_model_name_or_path", "auto_mapping", "revision", "init_lora_weights",
              "megatron_config", "megatron_core", "runtime_config", "qalora_group_size", "peft_version",
              "ensure_weight_tying"});
  f.finish("a LoRA adapter");
  return o;
}

}  // namespace

void save_adapter(const std::string& folder, const Transformer& model, const Family& family,
                  const std::string& base_model) {
  const WeightMap map(family, model);
  std::vector<TensorToWrite> weights;
  std::set<std::string> chosen, all;
  std::optional<AdapterOptions> options;
  bool transposed = false;
  for_each_linear(model, [&](const std::string& path, const Linear& layer) {
    const std::string parameter = path + std::string(weight);
    for (const std::string& source : map.sources(parameter)) all.insert(without(weight, source));
    if (!layer.adapter) return;
    const LowRankAdapter& adapter = *layer.adapter;
    const std::string source = map.only_source(parameter);
    if (source.empty())
      fail<ValueError>(
          "save_adapter: {} and the {} weights {} are fused differently; load the model as the family has it", path,
          family.model_type, map.sources(parameter)[0]);
    const AdapterOptions own{adapter.a.size(0), adapter.scale * static_cast<double>(adapter.a.size(0)),
                             adapter.dropout};
    if (options && !(*options == own))
      fail<ValueError>("save_adapter: the adapter of {} has another rank, alpha or dropout than those before it", path);
    options = own;
    const std::string module = without(weight, source);
    chosen.insert(module);
    transposed = transposed || map.stored().at(source) != layer.weight.shape();
    const Tensor a = adapter.a.detach(), b = map.turned(parameter, adapter.b.detach(), true);
    weights.push_back({std::string(prefix) + module + std::string(a_suffix), "F32", a.shape(), [a] { return a; }});
    weights.push_back({std::string(prefix) + module + std::string(b_suffix), "F32", b.shape(), [b] { return b; }});
  });
  if (!options) fail<ValueError>("save_adapter: the model has no adapters; add_lora gives them");

  ConfigFields f = ConfigFields::writing();
  f.put("peft_type", "\"LORA\"");
  f.put("task_type", "\"CAUSAL_LM\"");
  std::string base = base_model;
  if (base.empty())
    f.put("base_model_name_or_path", "null");
  else
    f.text("base_model_name_or_path", base, "");
  f.integer("r", options->rank);
  f.number("lora_alpha", options->alpha);
  f.number("lora_dropout", options->dropout);
  f.put("target_modules", target_list(chosen, all));
  f.put("bias", "\"none\"");
  f.flag("fan_in_fan_out", transposed, false);
  f.put("inference_mode", "true");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail<IoError>("save_adapter: cannot make the folder '{}': {}", folder, error.message());
  write_safetensors(folder + "/adapter_model.safetensors", weights, {{"format", "pt"}});
  write_file_atomically(folder + "/adapter_config.json", f.to_json());
}

LoadReport load_adapter(const std::string& folder, Transformer& model, const Family& family) {
  const AdapterOptions options = read_options(folder + "/adapter_config.json");
  const std::string path = folder + "/adapter_model.safetensors";
  const SafetensorsFile file(path);
  const WeightMap map(family, model);
  std::map<std::string, std::string> wanted;  // name in the file to ours
  std::vector<std::string> targets;
  LoadReport report;
  for_each_linear(model, [&](const std::string& module, const Linear&) {
    const std::string source = map.only_source(module + std::string(weight));
    if (source.empty()) return;
    const std::string base = std::string(prefix) + without(weight, source), a = base + std::string(a_suffix),
                      b = base + std::string(b_suffix);
    if (!file.contains(a) && !file.contains(b)) return;
    targets.push_back(module);
    for (const auto& [name, own] : {std::pair{a, a_suffix}, {b, b_suffix}}) {
      wanted[name] = module + std::string(own);
      if (!file.contains(name)) report.missing.push_back(name);
    }
  });
  for (const std::string& name : file.names())
    if (!wanted.contains(name)) report.unexpected.push_back(name);
  if (targets.empty() || !report.missing.empty() || !report.unexpected.empty())
    fail<FormatError>("load_adapter: '{}' does not fit this {} model: {}", path, family.model_type,
                      targets.empty() ? "none of its modules is there" : describe(report));
  const StateDict weights = state_dict(model);
  for (const auto& named : wanted) {
    const std::string& name = named.first;
    const bool is_a = name.ends_with(a_suffix);
    const std::string module = without(is_a ? a_suffix : b_suffix, named.second);
    const Shape shape = weights.at(module + std::string(weight)).shape();
    const Shape fit = is_a ? Shape{options.rank, shape[1]} : Shape{shape[0], options.rank};
    if (file.shape(name) != fit)
      report.mismatched.push_back(fmt::format("{} is {} for rank {}, file has {}", name, to_string(fit), options.rank,
                                              to_string(file.shape(name))));
  }
  if (!report.mismatched.empty()) fail<FormatError>("load_adapter: '{}': {}", path, describe(report));

  add_lora(model, {.rank = options.rank, .alpha = options.alpha, .dropout = options.dropout, .targets = targets});
  const NoGrad raw;
  const StateDict own = lora_state_dict(model);
  for (const auto& [name, ours] : wanted) {
    const Tensor value = file.read(name);
    const std::string module = without(name.ends_with(a_suffix) ? a_suffix : b_suffix, ours);
    own.at(ours).copy_(name.ends_with(a_suffix) ? value : map.turned(module + std::string(weight), value, false));
    report.loaded.push_back(name);
  }
  return report;
}

}  // namespace tapestry::hf
