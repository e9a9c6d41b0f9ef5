// Adapters given to the Linear modules of a tree, merged and taken away.
#include "lora.h"

#include <cmath>

#include "../autograd/error.h"
#include "../autograd/grad_mode.h"
#include "../autograd/pattern.h"
#include "../ops/ops.h"
#include "init.h"
#include "linear.h"
#include "visitor.h"

namespace tapestry {
namespace {

void check(const LoraOptions& o) {
  if (o.rank < 1) fail<ValueError>("add_lora: rank is {}; it must be at least 1", o.rank);
  if (!std::isfinite(o.alpha) || o.alpha <= 0)
    fail<ValueError>("add_lora: alpha is {}; it must be positive and finite", o.alpha);
  if (!(o.dropout >= 0 && o.dropout < 1))
    fail<ValueError>("add_lora: dropout is {}, which is not in [0, 1)", o.dropout);
}

/// fn(path, linear) for every Linear of m.
template <class F>
void for_each_linear(Module& m, F&& fn) {
  for_each_module(m, [&](const std::string& path, Module& part) {
    if (auto* layer = dynamic_cast<Linear*>(&part)) fn(path, *layer);
  });
}

LowRankAdapter adapter_for(const Linear& layer, const LoraOptions& o) {
  LowRankAdapter adapter;
  const DType dtype = layer.weight.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor a = empty({o.rank, layer.weight.size(1)}, dtype);
  init::kaiming_uniform_(a, 1 / std::sqrt(3.0));  // within ±1/√in
  adapter.a = Parameter(a);
  adapter.b = Parameter(zeros({layer.weight.size(0), o.rank}, dtype));
  adapter.scale = o.alpha / static_cast<double>(o.rank);
  adapter.dropout = o.dropout;
  return adapter;
}

/// Every adapter of m; ValueError if there is none, or one whose state is not the wanted one.
template <class F>
void for_each_adapter(const char* op, Module& m, bool merged, F&& fn) {
  bool any = false;
  for_each_linear(m, [&](const std::string& path, Linear& layer) {
    if (!layer.adapter) return;
    any = true;
    if (layer.adapter->unmerged.defined() != merged)
      fail<ValueError>("{}: the adapter of {} is {} merged", op, path, merged ? "not" : "already");
  });
  if (!any) fail<ValueError>("{}: no Linear has an adapter; add_lora gives them", op);
  for_each_linear(m, [&](const std::string&, Linear& layer) {
    if (layer.adapter) fn(layer);
  });
}

}  // namespace

std::vector<std::string> add_lora(Module& m, const LoraOptions& o) {
  check(o);
  std::vector<std::string> paths;
  std::vector<Linear*> chosen;
  std::vector<bool> used(o.targets.size());
  for_each_linear(m, [&](const std::string& path, Linear& layer) {
    bool fits = false;
    for (size_t i = 0; i < o.targets.size(); ++i)
      if (matches_pattern(o.targets[i], path)) fits = used[i] = true;
    if (!fits) return;
    if (layer.adapter) fail<ValueError>("add_lora: {} has an adapter; fold_lora takes it away", path);
    paths.push_back(path);
    chosen.push_back(&layer);
  });
  for (size_t i = 0; i < used.size(); ++i)
    if (!used[i])
      fail<ValueError>("add_lora: target '{}' matches no Linear; paths are as layers.0.attention.q_proj", o.targets[i]);
  if (chosen.empty()) fail<ValueError>("add_lora: there are no targets");
  requires_grad_(m, false);
  for (Linear* layer : chosen) layer->adapter = adapter_for(*layer, o);
  return paths;
}

void merge_lora(Module& m) {
  const NoGrad raw;
  for_each_adapter("merge_lora", m, false, [](Linear& layer) {
    LowRankAdapter& adapter = *layer.adapter;
    adapter.unmerged = Buffer(clone(layer.weight));
    const Tensor product = matmul(adapter.b, adapter.a) * adapter.scale;
    layer.weight.copy_(to(to(layer.weight, product.dtype()) + product, layer.weight.dtype()));
  });
}

void unmerge_lora(Module& m) {
  const NoGrad raw;
  for_each_adapter("unmerge_lora", m, true, [](Linear& layer) {
    layer.weight.copy_(layer.adapter->unmerged);
    layer.adapter->unmerged = {};
  });
}

void fold_lora(Module& m) {
  bool merged = false;
  for_each_linear(m, [&](const std::string&, const Linear& layer) {
    merged = merged || (layer.adapter && layer.adapter->unmerged.defined());
  });
  if (!merged) merge_lora(m);
  for_each_adapter("fold_lora", m, true, [](Linear& layer) { layer.adapter.reset(); });
  requires_grad_(m, true);
}

StateDict lora_state_dict(const Module& m) {
  StateDict adapters;
  for (auto& [name, value] : state_dict(m))
    if (name.ends_with(".lora_A.weight") || name.ends_with(".lora_B.weight")) adapters.emplace(name, value);
  return adapters;
}

}  // namespace tapestry
