// Everything that decides what a training run computes, in one struct; read from and written to JSON.
// Not here: threads, folders and output: results do not depend on them.
// Next: presets.h.
#pragma once

#include <cstdint>
#include <string>

#include "../transformer/config.h"

namespace tapestry {

/// Defaults are those of nanoGPT's character model on a CPU.
struct TrainConfig {
  TransformerConfig model;         ///< vocab_size 0: the tokenizer's; any other value must be equal to that
  std::string tokenizer = "char";  ///< "char", "byte" or the path of a tokenizer.json (../text/tokenizer.h)
  double held_out = 0.1;           ///< share of the text, its end, that is only evaluated on; in (0, 1)
  int64_t context = 64;            ///< tokens a training window predicts; at most model.max_seq_len
  int64_t batch = 12;              ///< windows a step
  int64_t micro_batch = 0;  ///< windows computed at once, to save memory: a step adds up its gradients; 0 takes all
  bool recompute = false;   ///< blocks are computed again in backward: less memory, a third more time, the same result
  int64_t steps = 2000;     ///< updates
  double lr = 1e-3;         ///< largest rate, reached after the warm-up
  double lr_min = 1e-4;     ///< rate at the end of the cosine
  int64_t warmup = 100;     ///< steps of linear warm-up
  double beta1 = 0.9, beta2 = 0.99, eps = 1e-8;  ///< AdamW
  double weight_decay = 0.1;                     ///< of tensors of rank 2 and more; gains and biases do not decay
  double label_smoothing = 0;                    ///< share of every target spread over all tokens
  double z_loss = 0;                             ///< times the squared log-sum-exp of the logits; 1e-4 where it is used
  double balance_loss = 0.01;                    ///< times the experts' balance, where there are experts
  double clip = 1.0;                             ///< largest norm of the gradient; 0 leaves it alone
  int64_t eval_interval = 250;                   ///< steps from one evaluation (and checkpoint) to the next
  int64_t eval_windows =
      200;                   ///< held-out windows an evaluation on the way looks at, spread over the part; 0 takes all
  int64_t max_skipped = 10;  ///< steps in a row with a loss or gradient that is not finite before the run gives up
  int64_t seed = 1;

  /// ValueError naming the first field out of its domain. The model is checked when its vocab_size is known.
  void validate() const;
  /// {"model": {…}, "training": {…}}.
  [[nodiscard]] std::string to_json() const;
  /// Fields of "training" that are missing keep their defaults, those of "model" must all be there but for vocab_size.
  /// Unknown ones are refused by name; "tokenizer" is let pass, so that the config.json of a run can start another one.
  /// FormatError or ValueError.
  static TrainConfig from_json(const std::string& text);
  friend bool operator==(const TrainConfig&, const TrainConfig&) = default;
};

}  // namespace tapestry
