// The form of a checkpoint and its strict reading.
// Next: verify_resume.cpp.
#include "checkpoint.h"

#include <nlohmann/json.hpp>

#include "../../autograd/error.h"
#include "../../nn/safetensors.h"
#include "../../nn/state_dict.h"
#include "../strict_json.h"

namespace tapestry {
namespace {

using Json = nlohmann::ordered_json;

/// The numbers of a state by name, for writing and reading.
template <class State, class F>
void each_field(State& s, F&& f) {
  f("step", s.step);
  f("loss_sum", s.loss_sum);
  f("loss_steps", s.loss_steps);
  f("tokens", s.tokens);
  f("skipped", s.skipped);
  f("skipped_in_a_row", s.skipped_in_a_row);
  f("seconds_steps", s.seconds.steps);
  f("seconds_data", s.seconds.data);
  f("seconds_evaluation", s.seconds.evaluation);
  f("seconds_checkpoint", s.seconds.checkpoint);
  f("log_bytes", s.log_bytes);
}

const Json& member(const Json& json, const char* name, const std::string& path) {
  const auto it = json.is_object() ? json.find(name) : json.end();
  if (!json.is_object() || it == json.end())
    fail<FormatError>("checkpoint: '{}' has no {} in its run description", path, name);
  return *it;
}

std::string text_of(const Json& json, const char* name, const std::string& path) {
  const Json& value = member(json, name, path);
  if (!value.is_string())
    fail<FormatError>("checkpoint: '{}' has {} = {}; expected a string", path, name, value.dump());
  return value.get<std::string>();
}

void split(const std::map<std::string, Tensor>& tensors, Checkpoint& c, const std::string& path) {
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with("model."))
      c.model[name.substr(6)] = tensor;
    else if (name.starts_with("optimizer."))
      c.optimizer[name.substr(10)] = tensor;
    else
      fail<FormatError>("checkpoint: '{}' holds a tensor '{}', which is neither of the model nor of the optimizer",
                        path, name);
  }
}

}  // namespace

void save_checkpoint(const std::string& path, const Trainer& trainer) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, tensor] : state_dict(trainer.model())) tensors["model." + name] = tensor;
  for (const auto& [name, tensor] : trainer.optimizer().state_dict()) tensors["optimizer." + name] = tensor;
  Json state;
  each_field(trainer.state(), [&](const char* name, const auto& value) { state[name] = value; });
  const TrainingText& text = trainer.text();
  const Json run{
      {"version", 1},
      {"state", state},
      {"config", Json::parse(trainer.config().to_json())},
      {"tokenizer", Json::parse(text.tokenizer().to_json())},
      {"text",
       {{"source", text.source()}, {"bytes", text.bytes().size()}, {"hash", fmt::format("{:016x}", text.hash())}}}};
  write_safetensors(path, tensors, {{"tapestry_run", run.dump()}});
}

Checkpoint read_checkpoint(const std::string& path) {
  const TensorFile file = read_safetensors(path);
  const auto it = file.metadata.find("tapestry_run");
  if (it == file.metadata.end())
    fail<FormatError>("checkpoint: '{}' is not a checkpoint: it has no run description", path);
  const Json run = parse_strict_json("checkpoint", it->second);
  if (const Json& version = member(run, "version", path); version != 1)
    fail<FormatError>("checkpoint: '{}' has version {}; this program reads version 1", path, version.dump());
  Checkpoint c;
  c.config = TrainConfig::from_json(member(run, "config", path).dump());
  c.tokenizer = tokenizer_from_json(member(run, "tokenizer", path).dump());
  const Json& text = member(run, "text", path);
  c.source = text_of(text, "source", path);
  const std::string hash = text_of(text, "hash", path);
  if (hash.size() != 16 || hash.find_first_not_of("0123456789abcdef") != std::string::npos)
    fail<FormatError>("checkpoint: '{}' has hash = '{}'; expected 16 hexadecimal digits", path, hash);
  c.text_hash = std::stoull(hash, nullptr, 16);
  const Json& state = member(run, "state", path);
  each_field(c.state, [&](const char* name, auto& value) {
    const Json& number = member(state, name, path);
    const bool fits =
        std::is_integral_v<std::remove_cvref_t<decltype(value)>> ? number.is_number_integer() : number.is_number();
    if (fits) value = number.get<std::remove_cvref_t<decltype(value)>>();
    if (!fits || value < 0)
      fail<FormatError>("checkpoint: '{}' has {} = {}; expected a number that is not negative", path, name,
                        number.dump());
  });
  split(file.tensors, c, path);
  return c;
}

void check_text(const Checkpoint& checkpoint, const TrainingText& text) {
  if (text.hash() == checkpoint.text_hash) return;
  fail<FormatError>("resume: {} is not the text this run was trained on; name that file with --data",
                    text.source().empty() ? "the embedded corpus" : "'" + text.source() + "'");
}

void restore(Trainer& trainer, const Checkpoint& checkpoint) {
  check_text(checkpoint, trainer.text());
  load_state_dict(trainer.model(), checkpoint.model);
  trainer.optimizer().load_state_dict(checkpoint.optimizer);
  trainer.state() = checkpoint.state;
}

}  // namespace tapestry
