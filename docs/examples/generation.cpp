// Letting a Transformer write: tokens, text, several prompts, a cache of one's own, and a conversation.
// Next: ../generation.md.
#include <tapestry/autograd/grad_mode.h>
#include <tapestry/autograd/random.h>
#include <tapestry/models/transformer/chat.h>
#include <tapestry/models/transformer/check_cache.h>
#include <tapestry/ops/ops.h>

#include <cstdio>

using namespace tapestry;

namespace {

void write_tokens(const Transformer& model) {
  const GenerateOptions options{
      .max_tokens = 20, .sampler = {.temperature = 0.8, .top_k = 40, .min_p = 0.05}, .seed = 7};
  const Generation g =
      generate(model, std::vector<int32_t>{1, 2, 3}, options, [](int32_t id) { std::printf("%d ", id); });
  std::printf("\n%zu tokens, ended by %s\n", g.ids.size(), std::string(name_of(g.reason)).c_str());
}

void write_texts(const Transformer& model, const Tokenizer& tokenizer) {
  const std::vector<std::vector<int32_t>> prompts = {tokenizer.encode("To be"), tokenizer.encode("The cat sat on")};
  const GenerateOptions options{.max_tokens = 10, .when_full = WhenFull::slide};
  Decoder decoder(model, decoder_options(options));
  for (const TextGeneration& t : generate_text(decoder, tokenizer, prompts, options, {"\n\n"}))
    std::printf("%zu bytes\n", t.text.size());
}

void choose(const std::vector<float>& logits, const std::vector<int32_t>& prompt) {
  TokenCounts counts;
  for (const int32_t id : prompt) counts[id] = 0;
  const SamplerOptions options{.temperature = 0.7, .top_p = 0.9, .repetition_penalty = 1.1};
  const int32_t id = sample(penalise(logits, options, counts), options, 0.25);
  std::printf("token %d, log-probability %.3f\n", id, log_probability(logits, id));
}

std::vector<float> read_in_pieces(const Transformer& model) {
  const NoGrad no_grad;
  KeyValueCache cache(model.config, {.rows = 2});
  cache.set_padding(std::vector<int64_t>{0, 2});  // the second prompt is two tokens shorter
  Tensor logits = model(tensor<int64_t>({{5, 6, 7, 8}, {0, 0, 7, 8}}), TransformerArgs{.cache = &cache});
  logits = model(tensor<int64_t>({{9}, {9}}), TransformerArgs{.cache = &cache, .last_only = true});  // (2, 1, V)
  return select(select(logits, 0, 0), 0, 0).to_vector<float>();
}

}  // namespace

int main() {
  manual_seed(1);
  const Transformer model({.vocab_size = 256,
                           .max_seq_len = 32,
                           .n_layers = 2,
                           .n_heads = 2,
                           .n_kv_heads = 1,
                           .d_model = 16,
                           .d_ff = 32,
                           .window = 8,
                           .layer_types = every_kth_full(2, 2)});
  write_tokens(model);
  write_texts(model, ByteTokenizer());
  choose(read_in_pieces(model), {5, 6, 7, 8});
  std::printf("%s", to_text(chat_turn(chat_template("gemma"), "Why?", "Be brief.")).c_str());
  const double worst = check_cache(model, {.tokens = 24}).worst();
  std::printf("\ncached and recomputed logits differ by %.1e of the largest\n", worst);
  return worst < 1e-5 ? 0 : 1;
}
