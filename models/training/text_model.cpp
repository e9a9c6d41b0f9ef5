// Telling the two forms apart, and reading each.
// Next: run_folder.cpp.
#include "text_model.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "../../autograd/error.h"
#include "../../nn/atomic_file.h"
#include "../../nn/init.h"
#include "../../nn/mapped_file.h"
#include "../../nn/safetensors.h"
#include "../../nn/state_dict.h"
#include "../../nn/visitor.h"
#include "../strict_json.h"
#include "run_folder.h"

namespace tapestry {
namespace {

void check_vocabulary(const std::string& folder, const TextModel& m) {
  if (m.tokenizer->vocab_size() > m.model->config.vocab_size)  // fewer are padding
    fail<FormatError>("config: '{}' has vocab_size {}, but its tokenizer has {}", folder + "/config.json",
                      m.model->config.vocab_size, m.tokenizer->vocab_size());
}

void set_ids(TextModel& m, const hf::ModelIds& ids) {
  const auto is_id = [](int64_t id) { return id >= 0 && id <= INT32_MAX; };  // −1 means none in some files
  for (const int64_t id : ids.eos)
    if (is_id(id)) m.eos_ids.push_back(static_cast<int32_t>(id));
  if (!ids.bos.empty() && is_id(ids.bos[0])) m.bos_id = static_cast<int32_t>(ids.bos[0]);
}

TextModel load_run(const std::string& path, const TextModelOptions& o) {
  const RunFolder folder(path);
  const MappedFile file(folder.config());
  const auto json = parse_strict_json("config", file.bytes());
  if (!json.is_object() || !json.contains("model"))
    fail<FormatError>(
        "config: '{}' is not the config of a run: it must be a JSON object with model and tokenizer, or with "
        "model_type as published models have it",
        folder.config());
  const TransformerConfig config = TransformerConfig::from_json(json["model"].dump());
  TextModel m{.model = {}, .tokenizer = {}};
  if (json.contains("tokenizer")) m.tokenizer = tokenizer_from_json(json["tokenizer"].dump());
  const TensorFile weights = read_safetensors(folder.model());
  {
    const init::Skip all_is_read_below;
    m.model = std::make_shared<Transformer>(config);
  }
  if (o.dtype != DType::f32) to(*m.model, o.dtype);
  load_state_dict(*m.model, weights.tensors);
  m.model->eval();
  hf::ModelIds ids;
  if (m.tokenizer != nullptr) {
    check_vocabulary(path, m);
    if (const auto eos = m.tokenizer->eos_id()) ids.eos = {*eos};
    if (const auto bos = m.tokenizer->bos_id()) ids.bos = {*bos};
  }
  set_ids(m, hf::generation_ids(path, ids));
  return m;
}

TextModel without_tokenizer(hf::LoadedModel loaded) {
  TextModel m{.model = std::move(loaded.model), .tokenizer = {}};
  m.family = loaded.family->model_type;
  set_ids(m, loaded.ids);
  return m;
}

TextModel checked(const std::string& folder, TextModel m, const TextModelOptions& o) {
  if (o.need_tokenizer && m.tokenizer == nullptr)
    fail<FormatError>("load_text_model: '{}' holds no tokenizer; put its tokenizer.json there", folder);
  return m;
}

}  // namespace

TextModel with_tokenizer(const std::string& folder, hf::LoadedModel loaded) {
  TextModel m = without_tokenizer(std::move(loaded));
  std::error_code ignored;
  for (const char* name : {"/tokenizer.json", "/vocab.json"}) {
    if (!std::filesystem::exists(folder + name, ignored)) continue;
    m.tokenizer = read_tokenizer(folder);
    check_vocabulary(folder, m);
    break;
  }
  return m;
}

TextModel load_text_model(const std::string& folder, const TextModelOptions& o) {
  if (!hf::is_model_folder(folder)) return checked(folder, load_run(folder, o), o);
  hf::LoadedModel loaded = hf::load_model(folder, {.dtype = o.dtype});
  if (!o.need_tokenizer) return without_tokenizer(std::move(loaded));
  return checked(folder, with_tokenizer(folder, std::move(loaded)), o);
}

void save_text_model(const std::string& path, const TextModel& m, const std::string& file_dtype) {
  const RunFolder folder(path);
  if (folder.holds_run()) fail<ValueError>("save_text_model: '{}' holds a model already; name an empty folder", path);
  folder.create();
  nlohmann::ordered_json json;
  json["model"] = nlohmann::ordered_json::parse(m.model->config.to_json());
  if (m.tokenizer != nullptr) json["tokenizer"] = nlohmann::ordered_json::parse(m.tokenizer->to_json());
  std::vector<TensorToWrite> weights;
  for (const auto& named : state_dict(*m.model)) {
    const Tensor& t = named.second;
    weights.push_back({named.first, file_dtype, t.shape(), [t] { return t; }});
  }
  write_safetensors(folder.model(), weights);
  write_file_atomically(folder.config(), json.dump(2) + "\n");
}

}  // namespace tapestry
