// Rows of the table of presets.
// Next: ../programs/train.cpp.
#include "presets.h"

#include <array>

#include "../../autograd/error.h"

namespace tapestry {
namespace {

const std::array table{
    Preset{.name = "demo",
           .what = "a small model of bytes, made for 90 seconds of training on two cores",
           .config = {.model = {.vocab_size = 0,
                                .max_seq_len = 128,
                                .n_layers = 4,
                                .n_heads = 4,
                                .n_kv_heads = 4,
                                .d_model = 128,
                                .d_ff = 384},
                      .tokenizer = "byte",
                      .context = 128,
                      .batch = 8,
                      .steps = 1600,
                      .lr = 3e-3,
                      .lr_min = 1e-4,
                      .warmup = 100,
                      .eval_interval = 200}},
    Preset{.name = "nano",
           .what = "nanoGPT's setting for a CPU: characters, context 64, about a minute",
           .config = {.model = {.vocab_size = 0,
                                .max_seq_len = 64,
                                .n_layers = 4,
                                .n_heads = 4,
                                .n_kv_heads = 4,
                                .d_model = 128,
                                .d_ff = 384}}},
    Preset{.name = "small",
           .what = "six layers of width 384, context 256: an hour or so",
           .config = {.model = {.vocab_size = 0,
                                .max_seq_len = 256,
                                .n_layers = 6,
                                .n_heads = 6,
                                .n_kv_heads = 6,
                                .d_model = 384,
                                .d_ff = 1024},
                      .context = 256,
                      .batch = 16,
                      .steps = 5000}},
    Preset{.name = "base",
           .what = "twelve layers of width 512, context 512, accumulated over micro-batches: a day",
           .config = {.model = {.vocab_size = 0,
                                .max_seq_len = 512,
                                .n_layers = 12,
                                .n_heads = 8,
                                .n_kv_heads = 8,
                                .d_model = 512,
                                .d_ff = 1408},
                      .context = 512,
                      .batch = 32,
                      .micro_batch = 8,
                      .steps = 10000,
                      .lr = 6e-4,
                      .lr_min = 6e-5,
                      .warmup = 500}},
};

}  // namespace

std::span<const Preset> presets() { return table; }

const TrainConfig& preset(std::string_view name) {
  std::string names;
  for (const Preset& row : table) {
    if (row.name == name) return row.config;
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  fail<ValueError>("preset: there is no preset called '{}'; there are {}", name, names);
}

}  // namespace tapestry
