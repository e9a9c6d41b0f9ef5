// The JSON behind ConfigFields, and which of its fields were asked for.
// Next: common_fields.cpp.
#include "config_fields.h"

#include <nlohmann/json.hpp>
#include <set>

#include "../../../autograd/error.h"
#include "../../strict_json.h"

namespace tapestry::hf {
namespace {

using Json = nlohmann::ordered_json;

struct NamedActivation {
  std::string_view name;
  Activation activation;
};
constexpr NamedActivation activations[] = {
    {"silu", Activation::silu},          {"swish", Activation::silu},
    {"gelu", Activation::gelu},          {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"gelu_new", Activation::gelu_tanh}, {"relu", Activation::relu},
    {"relu2", Activation::relu_squared}, {"tanh", Activation::tanh},
    {"sigmoid", Activation::sigmoid}};

}  // namespace

struct ConfigFields::State {
  bool reading = true;
  std::string file;           // "'DIR/config.json': "
  std::string prefix;         // "rope_scaling."
  Json own = Json::object();  // of the outermost object
  Json* json = &own;
  std::set<std::string, std::less<>> asked;

  /// The value, if it is there and not null; marks it as asked for.
  const Json* find(std::string_view name) {
    asked.emplace(name);
    const auto it = json->find(std::string(name));
    return it == json->end() || it->is_null() ? nullptr : &*it;
  }
  [[noreturn]] void fail_kind(std::string_view name, const Json& value, std::string_view expected) const {
    fail<FormatError>("{}{}{} is {}; it must be {}", file, prefix, name, value.dump(), expected);
  }
  const Json& need(std::string_view name) {
    const Json* value = find(name);
    if (value == nullptr) fail<FormatError>("{}{}{} is missing", file, prefix, name);
    return *value;
  }
  [[nodiscard]] int64_t integer(std::string_view name, const Json& value) const {
    if (!value.is_number_integer()) fail_kind(name, value, "a whole number");
    if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) fail_kind(name, value, "below 2^63");
    return value.get<int64_t>();
  }
  [[nodiscard]] double number(std::string_view name, const Json& value) const {
    if (!value.is_number()) fail_kind(name, value, "a number");
    return value.get<double>();
  }
  template <class T>
  void put(std::string_view name, const T& value) {
    (*json)[std::string(name)] = value;
  }
};

ConfigFields::ConfigFields(std::unique_ptr<State> state) : state_(std::move(state)) {}
ConfigFields::ConfigFields(ConfigFields&&) noexcept = default;
ConfigFields& ConfigFields::operator=(ConfigFields&&) noexcept = default;
ConfigFields::~ConfigFields() = default;

ConfigFields ConfigFields::reading(const std::string& file, std::string_view json) {
  auto state = std::make_unique<State>();
  state->file = fmt::format("'{}': ", file);
  state->own = parse_strict_json(file, json);
  if (!state->own.is_object()) fail<FormatError>("{}not a JSON object", state->file);
  return ConfigFields(std::move(state));
}
ConfigFields ConfigFields::writing() {
  auto state = std::make_unique<State>();
  state->reading = false;
  return ConfigFields(std::move(state));
}

bool ConfigFields::is_reading() const { return state_->reading; }
bool ConfigFields::present(std::string_view name) const {
  return state_->reading && state_->json->contains(std::string(name));
}
bool ConfigFields::given(std::string_view name) const {
  return present(name) && !state_->json->at(std::string(name)).is_null();
}

void ConfigFields::size(std::string_view name, int64_t& value) {
  integer(name, value);
  if (is_reading() && (value < 1 || value > int64_t{1} << 31)) refuse(name, "it must be 1 to 2^31");
}
void ConfigFields::integer(std::string_view name, int64_t& value) {
  if (!is_reading()) return state_->put(name, value);
  value = state_->integer(name, state_->need(name));
}
void ConfigFields::integer(std::string_view name, int64_t& value, int64_t absent) {
  if (!is_reading()) return state_->put(name, value);
  const Json* found = state_->find(name);
  value = found != nullptr ? state_->integer(name, *found) : absent;
}
void ConfigFields::number(std::string_view name, double& value) {
  if (!is_reading()) return state_->put(name, value);
  value = state_->number(name, state_->need(name));
}
void ConfigFields::number(std::string_view name, double& value, double absent) {
  if (!is_reading()) return state_->put(name, value);
  const Json* found = state_->find(name);
  value = found != nullptr ? state_->number(name, *found) : absent;
}
void ConfigFields::flag(std::string_view name, bool& value, bool absent) {
  if (!is_reading()) return state_->put(name, value);
  const Json* found = state_->find(name);
  if (found != nullptr && !found->is_boolean()) state_->fail_kind(name, *found, "true or false");
  value = found != nullptr ? found->get<bool>() : absent;
}
void ConfigFields::text(std::string_view name, std::string& value, std::string_view absent) {
  if (!is_reading()) return state_->put(name, value);
  const Json* found = state_->find(name);
  if (found != nullptr && !found->is_string()) state_->fail_kind(name, *found, "a string");
  value = found != nullptr ? found->get<std::string>() : std::string(absent);
}

void ConfigFields::activation(std::string_view name, Activation& value, Activation absent, bool gpt2_names) {
  if (!is_reading()) {
    for (const NamedActivation& a : activations)
      if (a.activation == value && (a.name == "gelu_new") == (gpt2_names && value == Activation::gelu_tanh))
        return state_->put(name, a.name);
    return;  // what is read back then differs
  }
  const Json* found = state_->find(name);
  value = absent;
  if (found == nullptr) return;
  std::string names;
  for (const NamedActivation& a : activations) {
    if (*found == a.name) {
      value = a.activation;
      return;
    }
    names += (names.empty() ? "one of " : ", ") + std::string(a.name);
  }
  state_->fail_kind(name, *found, names);
}

void ConfigFields::integer_or_null(std::string_view name, int64_t& value) {
  if (!is_reading()) return value == 0 ? state_->put(name, nullptr) : state_->put(name, value);
  const Json* found = state_->find(name);
  value = found != nullptr ? state_->integer(name, *found) : 0;
  if (found != nullptr && value <= 0) state_->fail_kind(name, *found, "positive, or null");
}
void ConfigFields::number_or_null(std::string_view name, double& value) {
  if (!is_reading()) return value == 0 ? state_->put(name, nullptr) : state_->put(name, value);
  const Json* found = state_->find(name);
  value = found != nullptr ? state_->number(name, *found) : 0;
  if (found != nullptr && !(value > 0)) state_->fail_kind(name, *found, "positive, or null");
}

bool ConfigFields::layer_types(std::string_view name, std::vector<AttentionSpan>& value) {
  if (!is_reading()) {
    Json list = Json::array();
    for (const AttentionSpan s : value)
      list.push_back(s == AttentionSpan::full ? "full_attention" : "sliding_attention");
    if (!value.empty()) state_->put(name, list);
    return !value.empty();
  }
  value.clear();
  const Json* found = state_->find(name);
  if (found == nullptr) return false;
  if (!found->is_array()) state_->fail_kind(name, *found, "a list");
  for (const Json& type : *found) {
    if (type != "full_attention" && type != "sliding_attention")
      state_->fail_kind(name, *found, "a list of full_attention and sliding_attention");
    value.push_back(type == "full_attention" ? AttentionSpan::full : AttentionSpan::sliding);
  }
  return true;
}
void ConfigFields::integers(std::string_view name, std::vector<int64_t>& value) {
  if (!is_reading()) return state_->put(name, value);
  value.clear();
  const Json* found = state_->find(name);
  if (found == nullptr) return;
  if (!found->is_array()) state_->fail_kind(name, *found, "a list");
  for (const Json& element : *found) value.push_back(state_->integer(name, element));
}
void ConfigFields::ids(std::string_view name, std::vector<int64_t>& value) {
  if (!is_reading()) {
    if (value.size() == 1) state_->put(name, value[0]);
    if (value.size() > 1) state_->put(name, value);
    return;
  }
  const Json* found = state_->find(name);
  if (found != nullptr && found->is_number()) {
    value = {state_->integer(name, *found)};
    return;
  }
  integers(name, value);
}

void ConfigFields::harmless(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) state_->asked.emplace(name);
}
void ConfigFields::must_be(std::string_view name, std::string_view value, std::string_view why) {
  if (!is_reading()) return;
  const Json* found = state_->find(name);
  if (found != nullptr && *found != Json::parse(value))
    fail<FormatError>("{}{}{} is {}, but must be {}: {}", state_->file, state_->prefix, name, found->dump(), value,
                      why);
}
void ConfigFields::put(std::string_view name, std::string_view value) {
  if (!is_reading()) state_->put(name, Json::parse(value));
}

std::optional<ConfigFields> ConfigFields::object(std::string_view name) {
  if (is_reading() && state_->find(name) == nullptr) return {};
  Json& inner = (*state_->json)[std::string(name)];
  if (is_reading() && !inner.is_object()) state_->fail_kind(name, inner, "an object");
  auto state = std::make_unique<State>();
  state->reading = state_->reading;
  state->file = state_->file;
  state->prefix = state_->prefix + std::string(name) + ".";
  state->json = &inner;
  return ConfigFields(std::move(state));
}

void ConfigFields::finish(std::string_view what) const {
  if (!is_reading()) return;
  for (const auto& [name, value] : state_->json->items())
    if (!value.is_null() && !state_->asked.contains(name))
      fail<FormatError>("{}{} has no field {}{} ({}); it may change what the model computes, so it is refused",
                        state_->file, what, state_->prefix, name, value.dump());
}
void ConfigFields::refuse(std::string_view name, const std::string& why) const {
  const auto it = state_->json->find(std::string(name));
  fail<FormatError>("{}{}{} is {}: {}", state_->file, state_->prefix, name,
                    it == state_->json->end() ? "missing" : it->dump(), why);
}
std::string ConfigFields::to_json() const { return state_->json->dump(2) + "\n"; }

std::string first_difference(const TransformerConfig& a, const TransformerConfig& b) {
  const Json ja = Json::parse(a.to_json()), jb = Json::parse(b.to_json());
  for (const auto& [name, value] : ja.items())
    if (value != jb.at(name)) return fmt::format("{} ({} instead of {})", name, jb.at(name).dump(), value.dump());
  return "";
}

}  // namespace tapestry::hf
