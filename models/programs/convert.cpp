// `tapestry convert`: a model from one form of folder to the other.
// Next: ../transformer/hf/folder.h.
#include <fmt/core.h>

#include <filesystem>
#include <memory>

#include "../../nn/atomic_file.h"
#include "../../nn/lora.h"
#include "../text/bpe_tokenizer.h"
#include "../training/text_model.h"
#include "../transformer/hf/adapter.h"
#include "../transformer/hf/folder.h"
#include "program.h"

namespace tapestry::programs {
namespace {

struct Options {
  std::string from, to, family, dtype, adapter;
  uint64_t shard_size = 5'000'000'000;
};

std::string file_dtype(const std::string& dtype, const std::string& stored) {
  if (dtype == "f32") return "F32";
  if (dtype == "bf16") return "BF16";
  if (dtype == "f16") return "F16";
  return stored.empty() ? "F32" : stored;
}

void print(const hf::LoadedModel& m) {
  fmt::print("read: {} model, {} weights, {} of them in another dtype, {} passed over\n", m.family->model_type,
             m.report.loaded.size(), m.report.converted.size(), m.ignored.size());
}

void fold_adapter(Transformer& model, const hf::Family& family, const std::string& folder) {
  if (folder.empty()) return;
  const LoadReport report = hf::load_adapter(folder, model, family);
  fold_lora(model);
  fmt::print("folded in: {} adapters\n", report.loaded.size() / 2);
}

/// Copies what lies beside the weights, and says what was written.
void report(const std::string& what, const Options& o, const std::string& dtype) {
  std::string beside;
  for (const std::string& name : hf::copy_companions(o.from, o.to)) beside += ", " + name;
  fmt::print("written: {} in {}, {}{}\n", what, o.to, dtype, beside);
}

void save(const Options& o, const Transformer& model, const hf::Family& family, const std::string& dtype,
          const hf::ModelIds& ids) {
  hf::save_model(o.to, model, family,
                 {.dtype = dtype, .max_shard_bytes = static_cast<int64_t>(o.shard_size), .ids = ids});
  report(fmt::format("{} model", family.model_type), o, dtype);
}

void from_published(const Options& o) {
  const hf::Family* family = o.family.empty() ? nullptr : &hf::family_named(o.family);
  hf::LoadedModel m = hf::load_model(o.from);
  print(m);
  fold_adapter(*m.model, *m.family, o.adapter);
  const std::string dtype = file_dtype(o.dtype, m.stored_dtype);
  if (family != nullptr) return save(o, *m.model, *family, dtype, m.ids);
  const TextModel text = with_tokenizer(o.from, std::move(m));
  save_text_model(o.to, text, dtype);
  report(text.tokenizer == nullptr ? "run without a tokenizer" : "run", o, dtype);
}

void from_run(const Options& o) {
  const TextModel m = load_text_model(o.from, {.need_tokenizer = false});
  const hf::Family& family = o.family.empty() ? hf::family_for(m.model->config) : hf::family_named(o.family);
  fold_adapter(*m.model, family, o.adapter);
  hf::ModelIds ids;
  ids.eos.assign(m.eos_ids.begin(), m.eos_ids.end());
  if (m.bos_id) ids.bos = {*m.bos_id};
  save(o, *m.model, family, file_dtype(o.dtype, "F32"), ids);
  const auto* bpe = dynamic_cast<const BpeTokenizer*>(m.tokenizer.get());
  if (std::filesystem::exists(o.to + "/tokenizer.json")) return;
  if (bpe != nullptr)
    write_file_atomically(o.to + "/tokenizer.json", bpe->tokenizer_json());
  else if (m.tokenizer != nullptr)
    fmt::print("not written: the tokenizer, as there is no tokenizer.json of the kind \"{}\"\n", m.tokenizer->name());
}

}  // namespace

void add_convert(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("convert", "turn a published model's folder into a run's, or the other way round");
  const auto o = std::make_shared<Options>();
  command->add_option("--from", o->from, "folder of a model")->type_name("DIR")->required();
  command->add_option("--to", o->to, "folder to write")->type_name("DIR")->required();
  command
      ->add_option("--family", o->family,
                   "write a folder in Hugging Face's form with this model_type; needed unless --from is a run")
      ->type_name("NAME");
  command->add_option("--dtype", o->dtype, "of the weights in the files; otherwise as they are")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  command->add_option("--adapter", o->adapter, "folder of a LoRA adapter to fold into the weights")->type_name("DIR");
  command->add_option("--shard-size", o->shard_size, "cut larger files; bytes, or with a unit: 2GB")
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true))
      ->capture_default_str();
  add_threads_option(*command);
  command->callback([o] { hf::is_model_folder(o->from) ? from_published(*o) : from_run(*o); });
}

}  // namespace tapestry::programs
