// Construction and the call of LstmLm, and its decoding loop.
// Next: zoo.cpp.
#include "lstm_lm.h"

#include "../autograd/error.h"
#include "../autograd/grad_mode.h"
#include "../autograd/random.h"
#include "../ops/ops.h"

namespace tapestry {
namespace {

const LstmLmConfig& validated(const LstmLmConfig& c) {
  c.validate();
  return c;
}

}  // namespace

void LstmLmConfig::validate() const {
  const auto at_least_one = [](const char* field, int64_t value) {
    if (value < 1) fail<ValueError>("LstmLmConfig: {} is {}; it must be at least 1", field, value);
  };
  at_least_one("vocab_size", vocab_size);
  at_least_one("d_model", d_model);
  at_least_one("hidden_size", hidden_size);
  at_least_one("n_layers", n_layers);
  if (!(0 <= dropout && dropout <= 1)) fail<ValueError>("LstmLmConfig: dropout is {}; it must be from 0 to 1", dropout);
}

LstmLm::LstmLm(const LstmLmConfig& c)
    : config(validated(c)),
      token_embedding(c.vocab_size, c.d_model),
      lstm(c.d_model, c.hidden_size, {.num_layers = c.n_layers, .dropout = c.dropout}),
      dropout(c.dropout),
      lm_head(c.hidden_size, c.vocab_size) {
  for (const RecurrentWeights& w : lstm.stack.weights) {
    slice(w.bias_ih.detach(), 0, c.hidden_size, 2 * c.hidden_size).fill_(1);
    slice(w.bias_hh.detach(), 0, c.hidden_size, 2 * c.hidden_size).fill_(0);
  }
}

Tensor LstmLm::forward(const Tensor& tokens, LSTMState* state) const {
  if (tokens.dim() != 2) fail<ShapeError>("LstmLm: tokens are {}; they must be (B, T)", tokens.describe());
  const LSTMOutput y = lstm(token_embedding(mT(tokens)), state != nullptr ? *state : LSTMState{});  // (T, B, H)
  if (state != nullptr) *state = y.state;
  return transpose(lm_head(dropout(y.output)), 0, 1);
}

Tensor LstmLm::loss(const Tensor& tokens, const Tensor& targets) const {
  return cross_entropy((*this)(tokens), targets);
}

void LstmLm::visit(Visitor& v) {
  v.child("token_embedding", token_embedding);
  v.child("lstm", lstm);
  v.child("dropout", dropout);
  v.child("lm_head", lm_head);
}

std::vector<float> LstmReader::read(std::span<const int32_t> tokens) {
  if (tokens.empty()) fail<ValueError>("generate: there are no tokens to read; give at least one");
  const NoGrad no_grad;
  const std::vector<int64_t> ids(tokens.begin(), tokens.end());
  const Tensor logits = model_(from(ids, {1, static_cast<int64_t>(ids.size())}), &state_);
  return select(select(logits, 0, 0), 0, -1).to_vector<float>();
}

void generate(const LstmLm& model, std::span<const int32_t> prompt, const GenerateOptions& options,
              const std::function<void(int32_t id)>& emit) {
  Writer writer(options, options.seed, prompt);
  LstmReader reader(model);
  std::vector<int32_t> next(prompt.begin(), prompt.end());
  while (!writer.done()) {
    const std::optional<int32_t> id = writer.draw(reader.read(next));
    if (id) emit(*id), next = {*id};
  }
}

}  // namespace tapestry
