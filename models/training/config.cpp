// The fields of TrainConfig once, for checking, reading and writing.
// Next: presets.cpp.
#include "config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "../../autograd/error.h"
#include "../strict_json.h"
#include "../text/tokenizer.h"

namespace tapestry {
namespace {

using Json = nlohmann::ordered_json;

/// f(name, field) for every field of "training".
template <class Config, class F>
void each_field(Config& c, F&& f) {
  f("tokenizer", c.tokenizer);
  f("held_out", c.held_out);
  f("context", c.context);
  f("batch", c.batch);
  f("micro_batch", c.micro_batch);
  f("recompute", c.recompute);
  f("steps", c.steps);
  f("lr", c.lr);
  f("lr_min", c.lr_min);
  f("warmup", c.warmup);
  f("beta1", c.beta1);
  f("beta2", c.beta2);
  f("eps", c.eps);
  f("weight_decay", c.weight_decay);
  f("label_smoothing", c.label_smoothing);
  f("z_loss", c.z_loss);
  f("balance_loss", c.balance_loss);
  f("clip", c.clip);
  f("eval_interval", c.eval_interval);
  f("eval_windows", c.eval_windows);
  f("max_skipped", c.max_skipped);
  f("seed", c.seed);
}

void read(const char* name, const Json& json, std::string& value) {
  if (!json.is_string()) fail<FormatError>("config: {} is {}; expected a string", name, json.dump());
  value = json.get<std::string>();
}
void read(const char* name, const Json& json, int64_t& value) {
  if (!json.is_number_integer()) fail<FormatError>("config: {} is {}; expected a whole number", name, json.dump());
  value = json.get<int64_t>();
}
void read(const char* name, const Json& json, bool& value) {
  if (!json.is_boolean()) fail<FormatError>("config: {} is {}; expected true or false", name, json.dump());
  value = json.get<bool>();
}
void read(const char* name, const Json& json, double& value) {
  if (!json.is_number()) fail<FormatError>("config: {} is {}; expected a number", name, json.dump());
  value = json.get<double>();
}

TransformerConfig read_model(Json json) {
  const auto vocab_size = json.is_object() ? json.find("vocab_size") : json.end();
  const bool from_tokenizer = json.is_object() && (vocab_size == json.end() || *vocab_size == 0);
  if (from_tokenizer) json["vocab_size"] = 1;  // any valid value: the rest is checked as it is
  TransformerConfig model = TransformerConfig::from_json(json.dump());
  if (from_tokenizer) model.vocab_size = 0;
  return model;
}

}  // namespace

void TrainConfig::validate() const {
  const auto at_least = [](const char* name, int64_t value, int64_t low) {
    if (value < low) fail<ValueError>("config: {} is {}; it must be at least {}", name, value, low);
  };
  const auto not_negative = [](const char* name, double value) {
    if (!(value >= 0) || !std::isfinite(value))
      fail<ValueError>("config: {} is {}; it must be finite and not negative", name, value);
  };
  const auto fraction = [](const char* name, double value) {
    if (!(value >= 0 && value < 1)) fail<ValueError>("config: {} is {}; it must be in [0, 1)", name, value);
  };
  if (tokenizer != "char" && tokenizer != "byte" && !is_tokenizer_path(tokenizer))
    fail<ValueError>("config: tokenizer is '{}'; there are char and byte, and files such as ./tokenizer.json",
                     tokenizer);
  if (!(held_out > 0 && held_out < 1))
    fail<ValueError>("config: held_out is {}; it must lie between 0 and 1", held_out);
  at_least("context", context, 1);
  at_least("batch", batch, 1);
  at_least("micro_batch", micro_batch, 0);
  if (constexpr int64_t most = int64_t{1} << 31; batch > most)
    fail<ValueError>("config: batch is {}; it must be at most {}", batch, most);
  at_least("steps", steps, 0);
  not_negative("lr", lr);
  not_negative("lr_min", lr_min);
  at_least("warmup", warmup, 0);
  fraction("beta1", beta1);
  fraction("beta2", beta2);
  not_negative("eps", eps);
  not_negative("weight_decay", weight_decay);
  fraction("label_smoothing", label_smoothing);
  not_negative("z_loss", z_loss);
  not_negative("balance_loss", balance_loss);
  not_negative("clip", clip);
  at_least("eval_interval", eval_interval, 1);
  at_least("eval_windows", eval_windows, 0);
  at_least("max_skipped", max_skipped, 1);
  at_least("seed", seed, 0);
  if (context > model.max_seq_len)
    fail<ValueError>("config: context {} is more than the model's max_seq_len {}", context, model.max_seq_len);
  if (lr_min > lr) fail<ValueError>("config: lr_min {} is more than lr {}", lr_min, lr);
}

std::string TrainConfig::to_json() const {
  Json training;
  each_field(*this, [&](const char* name, const auto& value) { training[name] = value; });
  return Json{{"model", Json::parse(model.to_json())}, {"training", training}}.dump(2) + "\n";
}

TrainConfig TrainConfig::from_json(const std::string& text) {
  const Json json = parse_strict_json("config", text);
  if (!json.is_object()) fail<FormatError>("config: not a JSON object");
  for (const auto& [name, value] : json.items())
    if (name != "model" && name != "training" && name != "tokenizer")
      fail<FormatError>("config: unknown field {}: {}", name, value.dump());
  if (!json.contains("model")) fail<FormatError>("config: model is missing");
  TrainConfig c;
  c.model = read_model(json["model"]);
  const Json training = json.value("training", Json::object());
  if (!training.is_object()) fail<FormatError>("config: training is {}; expected a JSON object", training.dump());
  std::set<std::string> known;
  each_field(c, [&](const char* name, auto& value) {
    known.insert(name);
    if (const auto it = training.find(name); it != training.end()) read(name, *it, value);
  });
  if (!training.contains("context")) c.context = std::min(c.context, c.model.max_seq_len);
  for (const auto& [name, value] : training.items())
    if (!known.contains(name)) fail<FormatError>("config: unknown field training.{}: {}", name, value.dump());
  c.validate();
  return c;
}

}  // namespace tapestry
