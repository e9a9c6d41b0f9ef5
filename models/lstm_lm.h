// A language model of LSTM layers: token embedding, the layers, a linear head.
// Not here: its training (training/step.h takes any model from tokens to logits), tokenizers (text/).
// Next: zoo.h.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "../nn/dropout.h"
#include "../nn/embedding.h"
#include "../nn/linear.h"
#include "../nn/recurrent.h"
#include "transformer/generate.h"

namespace tapestry {

struct LstmLmConfig {
  int64_t vocab_size = 256;   ///< V
  int64_t d_model = 128;      ///< D, width of the embedding
  int64_t hidden_size = 320;  ///< H
  int64_t n_layers = 2;
  double dropout = 0;  ///< on the outputs of every layer, while training; Zaremba et al. 2014

  /// ValueError naming the first field out of its domain.
  void validate() const;
};

/// xₜ = E[tokenₜ], hₜ = LSTM(xₜ, hₜ₋₁), logitsₜ = W hₜ + b; Sutskever et al. 2011, Graves 2013. Forget gates start with a
/// bias of 1 (Jozefowicz et al. 2015), everything else as its layer says.
///
///     LstmLm model({.vocab_size = 65});
///     model.loss(tokens, targets).backward();      // both (B, T): windows that start from zero states
///     LSTMState state;
///     Tensor logits = model(tokens, &state);       // reads on from `state` and leaves the new one there
struct LstmLm : Layer<LstmLm> {
  LstmLmConfig config;
  Embedding token_embedding;  // (V, D)
  LSTM lstm;
  Dropout dropout;
  Linear lm_head;  // (V, H)

  explicit LstmLm(const LstmLmConfig& c);
  /// Scores of the next token at every position: tokens i64 (B, T) to logits (B, T, V). `state`, where given, is that
  /// after the tokens before (undefined: none) and becomes that after these.
  [[nodiscard]] Tensor forward(const Tensor& tokens, LSTMState* state = nullptr) const;
  /// Mean cross-entropy, in nats a token, of the logits against targets (B, T).
  [[nodiscard]] Tensor loss(const Tensor& tokens, const Tensor& targets) const;
  void visit(Visitor& v) override;
};

/// Reads tokens of one sequence of any length and says what comes next. Borrows the model; eval() it first if it has
/// dropout.
class LstmReader {
 public:
  explicit LstmReader(const LstmLm& model) : model_(model) {}
  /// Logits (V) of the token that follows `tokens`, which follow what was read before. ValueError for none, IndexError
  /// for an id out of range.
  std::vector<float> read(std::span<const int32_t> tokens);

 private:
  const LstmLm& model_;
  LSTMState state_;
};

/// Draws options.max_tokens tokens after `prompt` and gives each to `emit` as soon as it is drawn. Errors as
/// LstmReader::read and sample().
void generate(const LstmLm& model, std::span<const int32_t> prompt, const GenerateOptions& options,
              const std::function<void(int32_t id)>& emit);

}  // namespace tapestry
