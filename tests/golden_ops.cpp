// Attributes of a case, read from JSON, and binding of parameters by name. Next: golden_pointwise_ops.cpp.
#include "golden_ops.h"

#include <nlohmann/json.hpp>

#include "../nn/visitor.h"

namespace tapestry::golden {

using nlohmann::json;

const Tensor& Args::operator[](const std::string& name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) throw FormatError("the case has no argument " + name);
  return it->second;
}
bool Args::given(const char* attr) const { return attrs_->contains(attr) && !attrs_->at(attr).is_null(); }
double Args::number(const char* attr, double otherwise) const {
  if (!given(attr)) return otherwise;
  const json& value = attrs_->at(attr);
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();  // "-inf"
}
int64_t Args::integer(const char* attr, int64_t otherwise) const {
  return given(attr) ? attrs_->at(attr).get<int64_t>() : otherwise;
}
bool Args::flag(const char* attr) const { return given(attr) && attrs_->at(attr).get<bool>(); }
std::string Args::text(const char* attr, const std::string& otherwise) const {
  return given(attr) ? attrs_->at(attr).get<std::string>() : otherwise;
}
std::vector<double> Args::numbers(const char* attr) const { return attrs_->at(attr).get<std::vector<double>>(); }
Dims Args::dims(const char* attr) const {
  Dims dims;
  if (!given(attr)) return dims;
  const json& value = attrs_->at(attr);
  if (value.is_number()) return {value.get<int64_t>()};
  for (const json& d : value) dims.push_back(d.get<int64_t>());
  return dims;
}

void set_parameters(Module& m, std::map<std::string, Tensor> values) {
  for_each_parameter(m, [&](const std::string& path, Parameter& p) {
    const auto it = values.find(path);
    if (it == values.end()) throw FormatError("set_parameters: no value for " + path);
    static_cast<Tensor&>(p) = it->second;
    values.erase(it);
  });
  if (!values.empty()) throw FormatError("set_parameters: the module has no " + values.begin()->first);
}

}  // namespace tapestry::golden
