// Reading fixtures and their tolerances; the comparison. Next: golden_check.h.
#include "golden_fixture.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "../autograd/factory.h"
#include "../nn/safetensors.h"

namespace tapestry::golden {
namespace {

using nlohmann::json;

std::string path_of(const std::string& file) { return std::string(TAPESTRY_GOLDEN_DIR) + "/" + file + ".safetensors"; }

std::vector<std::string> names(const json& c, const char* key, const std::string& prefix) {
  std::vector<std::string> list;
  for (const json& name : c.value(key, json::array())) list.push_back(prefix + name.get<std::string>());
  return list;
}

FixtureCase read_case(const json& c, const std::map<std::string, Tensor>& tensors) {
  FixtureCase r;
  r.id = c.at("id");
  r.op = c.at("op");
  r.attrs = std::make_shared<json>(c.at("attrs"));
  r.arguments = names(c, "inputs", "in/");
  for (std::string& w : names(c, "weights", "w/")) r.arguments.push_back(std::move(w));
  r.outputs = names(c, "outputs", "out/");
  r.no_grad = names(c, "no_grad", "");
  for (const auto& [name, both] : c.at("tol").items()) r.tolerance[name] = {both.at(0), both.at(1)};
  if (c.contains("accept")) r.accept = c.at("accept").get<std::map<std::string, std::string>>();
  const std::string prefix = r.id + "/";
  for (const auto& [name, t] : tensors)
    if (name.starts_with(prefix)) r.tensors[name.substr(prefix.size())] = t;
  return r;
}

}  // namespace

const Tensor* FixtureCase::find(const std::string& name) const {
  const auto it = tensors.find(name);
  return it == tensors.end() ? nullptr : &it->second;
}

Fixture read_fixture(const std::string& name) {
  const bool is_model = name.starts_with("models/");
  const TensorFile file = read_safetensors(path_of(is_model ? name + "/expected" : name));
  const json rtol = json::parse(file.metadata.at("rtol"));
  Fixture f{.name = name, .rtol_f64 = rtol.at("f64"), .rtol_f32 = rtol.at("f32"), .cases = {}};
  for (const json& c : json::parse(file.metadata.at("cases"))) f.cases.push_back(read_case(c, file.tensors));
  if (!is_model) return f;
  FixtureCase& c = f.cases.at(0);
  json attrs = *c.attrs;
  attrs["folder"] = std::string(TAPESTRY_GOLDEN_DIR) + "/" + name;
  c.attrs = std::make_shared<json>(std::move(attrs));
  for (const auto& [weight, t] : read_safetensors(path_of(name + "/model")).tensors) {
    c.arguments.push_back("w/" + weight);
    c.tensors["w/" + weight] = t;
  }
  c.tensors["cot/loss"] = ones({}, DType::f64);
  return f;
}

std::string mismatch(const Fixture& fixture, const FixtureCase& c, const std::string& name, const Tensor& got,
                     const Tensor& want, const Tensor& native, DType dtype) {
  if (got.shape() != want.shape()) return "it is " + got.describe() + ", expected " + want.describe();
  if (!is_floating(want.dtype()) && got.dtype() != want.dtype())
    return "it is " + got.describe() + ", expected " + want.describe();
  const bool narrow = dtype == DType::f32;
  const auto tolerance = c.tolerance.find(name);
  const double atol = tolerance == c.tolerance.end() ? (narrow ? 1e-6 : 1e-12) : tolerance->second[narrow ? 1 : 0];
  const double rtol = narrow ? fixture.rtol_f32 : fixture.rtol_f64;
  const std::vector<double> g = got.to_vector<double>(), w = want.to_vector<double>(),
                            n = narrow && native.defined() ? native.to_vector<double>() : w;
  const bool exact = !is_floating(want.dtype()) || want.dtype() == DType::bf16;
  for (size_t i = 0; i < w.size(); ++i) {
    const double x = std::isfinite(n[i]) ? w[i] : n[i];
    if ((std::isnan(x) && std::isnan(g[i])) || x == g[i]) continue;
    if (exact || !(std::abs(g[i] - x) <= atol + rtol * std::abs(x)))
      return fmt::format("element {} is {:.17g}, expected {:.17g}, atol {:g}, rtol {:g}", i, g[i], x, atol, rtol);
  }
  return "";
}

}  // namespace tapestry::golden
