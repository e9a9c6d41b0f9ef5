// Fused projections taken apart on both sides, so that every part is whole on one of them.
// Next: folder.cpp.
#include "weight_map.h"

#include "../../../autograd/error.h"
#include "../../../nn/visitor.h"
#include "../../../ops/ops.h"

namespace tapestry::hf {
namespace {

Tensor rows_of(const Tensor& t, int64_t begin, int64_t rows) {
  return begin == 0 && rows == t.size(0) ? t : slice(t, 0, begin, begin + rows);
}
Tensor joined(const std::vector<Tensor>& pieces) {
  return pieces.size() == 1 ? pieces[0] : cat(std::span<const Tensor>(pieces), 0);
}
bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> ends) {
  for (const std::string_view end : ends)
    if (text.ends_with(end)) return true;
  return false;
}

}  // namespace

WeightMap::WeightMap(const Family& family, const Transformer& model) : family_(family), config_(model.config) {
  const int64_t q = config_.n_heads * config_.head_width(), kv = config_.n_kv_heads * config_.head_width();
  for (const auto& named : named_parameters(model)) {
    const std::string& name = named.first;
    const Tensor& value = named.second;
    const size_t dot = name.rfind('.');
    const std::string module = name.substr(0, dot), leaf = name.substr(dot);
    if (ends_with_any(module, {".lora_A", ".lora_B"})) continue;
    parameters_.push_back(name);
    const auto part = [&](std::string_view fused, const char* own, int64_t row, int64_t rows) {
      add(name, value.shape(), module.substr(0, module.size() - fused.size()) + own, leaf, row, rows);
    };
    if (module.ends_with("qkv_proj")) {
      part("qkv_proj", "q_proj", 0, q);
      part("qkv_proj", "k_proj", q, kv);
      part("qkv_proj", "v_proj", q + kv, kv);
    } else if (module.ends_with("gate_up_proj")) {
      const int64_t half = value.size(0) / 2;
      part("gate_up_proj", "gate_proj", 0, half);
      part("gate_up_proj", "up_proj", half, half);
    } else {
      add(name, value.shape(), module, leaf, 0, value.size(0));
    }
  }
}

void WeightMap::add(const std::string& parameter, const Shape& shape, const std::string& module,
                    const std::string& leaf, int64_t our_row, int64_t rows) {
  const FileName file = file_name(family_, module);
  if (file.name.empty()) fail<FormatError>("hf: {} models have no {}", family_.model_type, module);
  Part p{.ours = parameter, .theirs = file.name + leaf, .our_row = our_row, .their_row = 0, .rows = rows};
  p.transposed = file.transposed && shape.rank() == 2;
  p.turns = config_.positions == Positions::rope && config_.rope_layout != family_.rope_layout &&
            ends_with_any(module, {".q_proj", ".k_proj", ".q_norm", ".k_norm"});
  Shape whole = shape;
  whole[0] = rows;
  const size_t dim = p.transposed ? 1 : 0;
  if (p.transposed) std::swap(whole[0], whole[1]);
  const auto [it, is_first] = stored_.emplace(p.theirs, whole);
  if (!is_first) {
    p.their_row = it->second[dim];
    it->second[dim] += rows;
  }
  of_parameter_[p.ours].push_back(parts_.size());
  of_stored_[p.theirs].push_back(parts_.size());
  parts_.push_back(std::move(p));
}

Tensor WeightMap::parameter(const std::string& name, const Lookup& stored) const {
  std::vector<Tensor> pieces;
  for (const size_t i : of_parameter_.at(name)) {
    const Part& p = parts_[i];
    Tensor t = stored(p.theirs);
    if (p.transposed) t = mT(t);
    t = rows_of(t, p.their_row, p.rows);
    pieces.push_back(p.turns ? to_rope_layout(t, config_.rope_layout, config_.head_width(), config_.rotary_dim()) : t);
  }
  return joined(pieces);
}

Tensor WeightMap::stored(const std::string& name, const Lookup& parameter) const {
  std::vector<Tensor> pieces;
  for (const size_t i : of_stored_.at(name)) {
    const Part& p = parts_[i];
    const Tensor t = rows_of(parameter(p.ours), p.our_row, p.rows);
    pieces.push_back(p.turns ? to_rope_layout(t, family_.rope_layout, config_.head_width(), config_.rotary_dim()) : t);
  }
  const Tensor t = joined(pieces);
  return parts_[of_stored_.at(name)[0]].transposed ? mT(t) : t;
}

std::vector<std::string> WeightMap::sources(const std::string& parameter) const {
  std::vector<std::string> names;
  for (const size_t i : of_parameter_.at(parameter))
    if (names.empty() || names.back() != parts_[i].theirs) names.push_back(parts_[i].theirs);
  return names;
}

std::string WeightMap::only_source(const std::string& parameter) const {
  const std::vector<std::string> names = sources(parameter);
  if (names.size() != 1) return "";
  for (const size_t i : of_stored_.at(names[0]))
    if (parts_[i].ours != parameter) return "";
  return names[0];
}

Tensor WeightMap::turned(const std::string& parameter, const Tensor& rows, bool to_stored) const {
  const RopeLayout layout = to_stored ? family_.rope_layout : config_.rope_layout;
  std::vector<Tensor> pieces;
  for (const size_t i : of_parameter_.at(parameter)) {
    const Part& p = parts_[i];
    const Tensor t = rows_of(rows, p.our_row, p.rows);
    pieces.push_back(p.turns ? to_rope_layout(t, layout, config_.head_width(), config_.rotary_dim()) : t);
  }
  return joined(pieces);
}

}  // namespace tapestry::hf
