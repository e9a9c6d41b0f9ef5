// Two runs and their comparison.
// Next: checkpoint.cpp.
#include "verify_resume.h"

#include <bit>
#include <cstring>
#include <filesystem>
#include <map>

#include "../../autograd/error.h"
#include "../../nn/state_dict.h"
#include "checkpoint.h"

namespace tapestry {
namespace {

std::vector<double> losses_of(Trainer& trainer, int64_t steps) {
  std::vector<double> losses;
  for (int64_t i = 0; i < steps; ++i) losses.push_back(trainer.step().loss);
  return losses;
}

std::map<std::string, Tensor> tensors_of(const Trainer& trainer) {
  std::map<std::string, Tensor> all = trainer.optimizer().state_dict();
  for (const auto& [name, tensor] : state_dict(trainer.model())) all[name] = tensor;
  return all;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const Tensor x = dense(a), y = dense(b);
  return std::memcmp(x.raw_data(), y.raw_data(), static_cast<size_t>(x.numel() * size_of(x.dtype()))) == 0;
}

struct Removed {
  std::string path;
  ~Removed() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

}  // namespace

ResumeVerdict verify_resume(const TrainConfig& config, const TrainingText& text, int64_t steps,
                            const std::string& file) {
  Trainer straight(config, text);
  const std::vector<double> expected = losses_of(straight, 2 * steps);

  const Removed removed{file};
  std::vector<double> losses;
  {
    Trainer first(config, text);
    losses = losses_of(first, steps);
    save_checkpoint(file, first);
  }
  const Checkpoint checkpoint = read_checkpoint(file);
  Trainer second(checkpoint.config, text);
  restore(second, checkpoint);
  for (const double loss : losses_of(second, steps)) losses.push_back(loss);

  for (size_t i = 0; i < expected.size(); ++i)
    if (std::bit_cast<uint64_t>(expected[i]) != std::bit_cast<uint64_t>(losses[i]))
      return {false, fmt::format("loss of step {}: {:.17g} straight, {:.17g} resumed after step {}", i + 1, expected[i],
                                 losses[i], steps)};
  const auto want = tensors_of(straight), got = tensors_of(second);
  for (const auto& [name, tensor] : want) {
    const auto it = got.find(name);
    if (it == got.end() || !same_bits(tensor, it->second))
      return {false, fmt::format("{} differs after step {}", name, 2 * steps)};
  }
  if (want.size() != got.size())
    return {false, fmt::format("{} tensors straight, {} resumed", want.size(), got.size())};
  return {true, fmt::format("{} losses and {} tensors (weights, moments, counts) are equal bit for bit",
                            expected.size(), want.size())};
}

}  // namespace tapestry
