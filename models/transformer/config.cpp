// Checking fields against each other, with messages that name them; JSON in both directions. Next: block.h.
#include "config.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "../../autograd/error.h"
#include "../strict_json.h"

namespace tapestry {
namespace {

/// The fields once, for validation, reading and writing: f(name, field).
template <class Config, class F>
void each_field(Config& c, F&& f) {
  f("vocab_size", c.vocab_size);
  f("max_seq_len", c.max_seq_len);
  f("n_layers", c.n_layers);
  f("n_heads", c.n_heads);
  f("n_kv_heads", c.n_kv_heads);
  f("d_model", c.d_model);
  f("d_ff", c.d_ff);
  f("rope_theta", c.rope_theta);
  f("norm_eps", c.norm_eps);
}

constexpr int64_t largest = int64_t{1} << 31;  // keeps every product of two fields inside 63 bits

}  // namespace

void TransformerConfig::validate() const {
  each_field(*this, [](const char* name, const auto& value) {
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(value)>>) {
      if (value < 1 || value > largest) fail<ValueError>("config: {} is {}; it must be 1 to {}", name, value, largest);
    } else {
      if (!(value > 0) || !std::isfinite(value))
        fail<ValueError>("config: {} is {}; it must be positive and finite", name, value);
    }
  });
  if (d_model % n_heads != 0) fail<ValueError>("config: n_heads {} does not divide d_model {}", n_heads, d_model);
  if (n_heads % n_kv_heads != 0)
    fail<ValueError>("config: n_kv_heads {} does not divide n_heads {}", n_kv_heads, n_heads);
  if (head_dim() % 2 != 0)
    fail<ValueError>("config: d_model/n_heads is {}; rotary positions need an even head width", head_dim());
}

std::string TransformerConfig::to_json() const {
  nlohmann::ordered_json json;
  each_field(*this, [&](const char* name, const auto& value) { json[name] = value; });
  return json.dump(2) + "\n";
}

TransformerConfig TransformerConfig::from_json(const std::string& text) {
  const auto json = parse_strict_json("config", text);
  if (!json.is_object()) fail<FormatError>("config: not a JSON object");
  TransformerConfig c;
  std::set<std::string> known;
  each_field(c, [&](const char* name, auto& value) {
    known.insert(name);
    const auto it = json.find(name);
    if (it == json.end()) fail<FormatError>("config: {} is missing", name);
    const bool fits =
        std::is_integral_v<std::remove_cvref_t<decltype(value)>> ? it->is_number_integer() : it->is_number();
    if (!fits)
      fail<FormatError>("config: {} is {}; expected a {}", name, it->dump(),
                        it->is_number() ? "whole number" : "number");
    value = it->template get<std::remove_cvref_t<decltype(value)>>();
  });
  for (const auto& [name, value] : json.items())
    if (!known.contains(name)) fail<FormatError>("config: unknown field {}: {}", name, value.dump());
  c.validate();
  return c;
}

}  // namespace tapestry
