// What StateReader accepts, and its one message. Next: ../tests/test_optim.cpp.
#include "state_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "../autograd/factory.h"

namespace tapestry::detail {
namespace {

// "2 missing (a, b)", of many the first three.
void describe(std::string& text, const char* what, const std::vector<std::string>& items) {
  if (items.empty()) return;
  const size_t shown = std::min<size_t>(items.size(), 3);
  text += fmt::format("{}{} {} ({}{})", text.empty() ? "" : ", ", items.size(), what,
                      fmt::join(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(shown), "; "),
                      shown < items.size() ? "; …" : "");
}

}  // namespace

Tensor saved_double(double value) { return scalar(value, DType::f64); }
Tensor saved_count(int64_t value) { return from(std::vector<int64_t>{value}, {}); }

const Tensor* StateReader::find(const std::string& key, bool required) {
  const auto it = dict_.find(key);
  if (it == dict_.end()) {
    if (required) missing_.push_back(key);
    return nullptr;
  }
  used_.insert(key);
  return &it->second;
}

bool StateReader::read_double(const std::string& key, bool is_flag, double& value) {
  const Tensor* t = find(key, true);
  if (t == nullptr) return false;
  if (!t->defined() || t->dtype() != DType::f64 || t->numel() != 1) {
    misfits_.push_back(fmt::format("{} is {}, want one f64", key, t->describe()));
    return false;
  }
  value = t->item<double>();
  if (is_flag && value != 0 && value != 1) {
    misfits_.push_back(fmt::format("{} is {}, want 0 or 1", key, value));
    return false;
  }
  return true;
}

void StateReader::count(const std::string& key, int64_t& value) {
  const Tensor* t = find(key, true);
  if (t == nullptr) return;
  if (!t->defined() || t->dtype() != DType::i64 || t->numel() != 1)
    misfits_.push_back(fmt::format("{} is {}, want one i64", key, t->describe()));
  else if (t->item<int64_t>() < 0)
    misfits_.push_back(fmt::format("{} is {}, want a count", key, t->item<int64_t>()));
  else
    value = t->item<int64_t>();
}

void StateReader::tensor(const std::string& key, const Tensor& param, bool required, Tensor& value) {
  const Tensor* t = find(key, required);
  if (t == nullptr) return;
  const DType dtype = state_dtype(param);
  if (!t->defined() || t->shape() != param.shape() || t->dtype() != dtype) {
    misfits_.push_back(fmt::format("{} is {}, want {}", key, t->describe(), to_string(param.shape(), dtype)));
    return;
  }
  value = empty(param.shape(), dtype);
  value.body()->storage->mark(MemoryKind::optimizer);
  value.copy_(*t);
}

void StateReader::finish() const {
  std::vector<std::string> unexpected;
  for (const auto& [key, tensor] : dict_)
    if (!used_.contains(key)) unexpected.push_back(key);
  std::string text;
  describe(text, "missing", missing_);
  describe(text, "unexpected", unexpected);
  describe(text, "misfit", misfits_);
  if (!text.empty()) fail<FormatError>("load_state_dict: {}; nothing was loaded", text);
}

}  // namespace tapestry::detail
