// The table of families, and both directions of their configs.
// Next: common_fields.cpp.
#include "family.h"

#include <algorithm>

#include "../../../autograd/error.h"
#include "common_fields.h"
#include "families/families.h"

namespace tapestry::hf {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

template <class List>
bool all_equal(const List& list, typename List::value_type value) {
  return std::all_of(list.begin(), list.end(), [&](auto x) { return x == value; });
}

}  // namespace

std::span<const Family* const> families() {
  static constexpr const Family* table[] = {&llama, &qwen3, &qwen2,   &mistral,   &gpt2,    &gemma2,   &gemma3_text,
                                            &olmo2, &phi3,  &smollm3, &qwen3_moe, &mixtral, &minimind, &cs336};
  return table;
}

const Family& family_named(std::string_view model_type) {
  std::string names;
  for (const Family* f : families()) {
    if (f->model_type == model_type) return *f;
    names += (names.empty() ? "" : ", ") + std::string(f->model_type);
  }
  fail<FormatError>("hf: model_type '{}' is unknown; it must be one of {}", model_type, names);
}

bool matches(std::string_view pattern, std::string_view name, std::vector<std::string_view>& numbers) {
  numbers.clear();
  size_t at = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (!pattern.substr(i).starts_with("{}")) {
      if (at == name.size() || name[at++] != pattern[i]) return false;
      continue;
    }
    const size_t begin = at;
    while (at < name.size() && is_digit(name[at])) ++at;
    if (at == begin) return false;
    numbers.push_back(name.substr(begin, at - begin));
    ++i;
  }
  return at == name.size();
}

FileName file_name(const Family& family, std::string_view module_path) {
  std::vector<std::string_view> numbers;
  for (const std::span<const NameRow> group : family.names) {
    for (const NameRow& row : group) {
      if (!matches(row.ours, module_path, numbers)) continue;
      std::string name;
      size_t used = 0;
      for (size_t i = 0; i < row.theirs.size(); ++i) {
        if (row.theirs.substr(i).starts_with("{}"))
          name += numbers[used++], ++i;
        else
          name += row.theirs[i];
      }
      return {name, row.transposed};
    }
  }
  return {};
}

ReadConfig read_config(const std::string& file, std::string_view json) {
  ConfigFields f = ConfigFields::reading(file, json);
  std::string model_type;
  f.text("model_type", model_type, "");
  if (model_type.empty()) f.refuse("model_type", "without it the model's architecture is unknown");
  ReadConfig read;
  try {
    read.family = &family_named(model_type);
  } catch (const FormatError& e) {
    f.refuse("model_type", e.what());
  }
  read.config.rope_layout = read.family->rope_layout;
  f.ids("bos_token_id", read.ids.bos);
  f.ids("eos_token_id", read.ids.eos);
  f.ids("pad_token_id", read.ids.pad);
  common_fields(f);
  read.family->fields(f, read.config);
  f.finish(read.family->model_type);
  try {
    read.config.validate();
  } catch (const ValueError& e) {
    fail<FormatError>("'{}': {}", file, e.what());
  }
  read.config = simplified(read.config);
  return read;
}

std::string write_config(const Family& family, const TransformerConfig& config, std::string_view torch_dtype,
                         const ModelIds& ids) {
  ConfigFields f = ConfigFields::writing();
  if (!family.architecture.empty()) f.put("architectures", fmt::format("[\"{}\"]", family.architecture));
  f.put("model_type", fmt::format("\"{}\"", family.model_type));
  TransformerConfig c = simplified(config);
  c.rope_layout = family.rope_layout;
  family.fields(f, c);
  ModelIds copy = ids;
  f.ids("bos_token_id", copy.bos);
  f.ids("eos_token_id", copy.eos);
  f.ids("pad_token_id", copy.pad);
  f.put("torch_dtype", fmt::format("\"{}\"", torch_dtype));
  const std::string text = f.to_json();

  const auto function = [&](TransformerConfig x) {  // what is left when nothing but the function counts
    x = simplified(x);
    x.rope_layout = RopeLayout::half;
    x.fused_qkv = x.fused_gate_up = false;
    x.attention_dropout = x.residual_dropout = x.embedding_dropout = 0;
    return x;
  };
  std::string difference;
  try {
    difference = first_difference(function(config), function(read_config("config.json", text).config));
  } catch (const FormatError& e) {
    difference = e.what();
  }
  if (!difference.empty())
    fail<FormatError>("hf: a {} model cannot have this {}; choose another family", family.model_type, difference);
  return text;
}

TransformerConfig simplified(TransformerConfig c) {
  const TransformerConfig defaults;
  if (c.head_dim * c.n_heads == c.d_model) c.head_dim = 0;
  if (c.window == 0 || (!c.layer_types.empty() && all_equal(c.layer_types, AttentionSpan::full)))
    c.window = 0, c.layer_types = {};
  if (all_equal(c.layer_types, AttentionSpan::sliding)) c.layer_types = {};
  if (all_equal(c.rope_layers, true)) c.rope_layers = {};
  if (c.window == 0) c.rope_local_theta = 0;
  if (c.positions != Positions::rope) {
    c.rope_layers = {};
    c.rope_scaling = {};
    c.rope_theta = defaults.rope_theta;
    c.rope_local_theta = 0;
    c.rotary_fraction = 1;
    c.rope_layout = defaults.rope_layout;
  }
  if (c.qk_norm == QkNorm::none) c.qk_norm_kind = defaults.qk_norm_kind;
  if (all_equal(c.expert_layers, true)) c.expert_layers = {};
  if (c.d_expert == c.d_ff) c.d_expert = 0;
  if (c.n_experts == 0) {
    c.experts_per_token = defaults.experts_per_token;
    c.d_expert = 0;
    c.normalise_experts = defaults.normalise_experts;
    c.n_shared_experts = 0;
    c.expert_layers = {};
  }
  return c;
}

}  // namespace tapestry::hf
