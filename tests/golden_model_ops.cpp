// Golden ops of whole models: the Transformer under foreign names, its cache, and training steps.
// Next: golden_optimizer_ops.cpp.
#include "../autograd/grad_mode.h"
#include "../models/transformer/hf/weight_map.h"
#include "../nn/mapped_file.h"
#include "../nn/state_dict.h"
#include "../nn/visitor.h"
#include "../optim/adamw.h"
#include "../optim/clip.h"
#include "../optim/optimizer.h"
#include "../optim/schedule.h"
#include "golden_ops.h"

namespace tapestry::golden {
namespace {

using Weights = std::map<std::string, Tensor>;

/// Our names for the weights of the seed's model; q, k and v rows are one matrix there.
Weights from_seed(const Args& a, int64_t n_layers) {
  Weights w{{"token_embedding.weight", a["embedding.embeddings"]},
            {"norm.weight", a["norm.g"]},
            {"lm_head.weight", a["out_linear.w"]}};
  for (int64_t i = 0; i < n_layers; ++i) {
    const std::string ours = "layers." + std::to_string(i) + ".", theirs = "blocks." + std::to_string(i) + ".";
    const Tensors rows = chunk(a[theirs + "mult_head_atten.project.w"], 3);
    w[ours + "attention_norm.weight"] = a[theirs + "rms_norm1.g"];
    w[ours + "feed_forward_norm.weight"] = a[theirs + "rms_norm2.g"];
    w[ours + "attention.q_proj.weight"] = rows[0];
    w[ours + "attention.k_proj.weight"] = rows[1];
    w[ours + "attention.v_proj.weight"] = rows[2];
    w[ours + "attention.o_proj.weight"] = a[theirs + "mult_head_atten.out_linear.w"];
    w[ours + "feed_forward.gate_proj.weight"] = a[theirs + "ffe.w1.w"];
    w[ours + "feed_forward.up_proj.weight"] = a[theirs + "ffe.w3.w"];
    w[ours + "feed_forward.down_proj.weight"] = a[theirs + "ffe.w2.w"];
  }
  return w;
}

/// The seed's names for our weights.
Outputs to_seed(const Weights& w, int64_t n_layers, const std::string& prefix) {
  Outputs s{{prefix + "embedding.embeddings", w.at("token_embedding.weight")},
            {prefix + "norm.g", w.at("norm.weight")},
            {prefix + "out_linear.w", w.at("lm_head.weight")}};
  for (int64_t i = 0; i < n_layers; ++i) {
    const std::string ours = "layers." + std::to_string(i) + ".", theirs = prefix + "blocks." + std::to_string(i) + ".";
    s[theirs + "rms_norm1.g"] = w.at(ours + "attention_norm.weight");
    s[theirs + "rms_norm2.g"] = w.at(ours + "feed_forward_norm.weight");
    s[theirs + "mult_head_atten.project.w"] =
        cat({w.at(ours + "attention.q_proj.weight"), w.at(ours + "attention.k_proj.weight"),
             w.at(ours + "attention.v_proj.weight")});
    s[theirs + "mult_head_atten.out_linear.w"] = w.at(ours + "attention.o_proj.weight");
    s[theirs + "ffe.w1.w"] = w.at(ours + "feed_forward.gate_proj.weight");
    s[theirs + "ffe.w3.w"] = w.at(ours + "feed_forward.up_proj.weight");
    s[theirs + "ffe.w2.w"] = w.at(ours + "feed_forward.down_proj.weight");
  }
  return s;
}

int64_t count_layers(const Args& a, const std::string& first_of_layer) {
  int64_t n = 0;
  while (a.has("blocks." + std::to_string(n) + first_of_layer)) ++n;
  return n;
}

TransformerConfig config_of(const Weights& w, int64_t n_layers, int64_t n_heads, int64_t max_seq_len, double theta,
                            double eps) {
  const Tensor& table = w.at("token_embedding.weight");
  return {.vocab_size = table.size(0),
          .max_seq_len = max_seq_len,
          .n_layers = n_layers,
          .n_heads = n_heads,
          .n_kv_heads = n_heads,
          .d_model = table.size(1),
          .d_ff = w.at("layers.0.feed_forward.gate_proj.weight").size(0),
          .norm_eps = eps,
          .rope_theta = theta};
}

struct SeedModel {
  int64_t n_layers;
  Weights weights;
  TransformerConfig config;
  SeedModel(const Args& a, int64_t n_heads, int64_t max_seq_len)
      : n_layers(count_layers(a, ".rms_norm1.g")),
        weights(from_seed(a, n_layers)),
        config(config_of(weights, n_layers, n_heads, max_seq_len, a.number("theta", 0), 1e-5)) {}
};

Outputs seed_transformer(const Args& a) {
  const SeedModel seed(a, a.integer("heads", 1), 64);
  const Transformer model = bound(Transformer(seed.config), seed.weights);
  const Tensor logits = model(a["ids"], TransformerArgs{.positions = a.find("pos")});
  if (!a.has("targets")) return {{"y", logits}};
  return {{"logits", logits}, {"loss", cross_entropy(logits, a["targets"])}};
}

Outputs cached(const Args& a) {
  const NoGrad plain;
  const Tensor& ids = a["ids"];
  const SeedModel seed(a, a.integer("heads", 1), ids.size(1));
  const Transformer model = bound(Transformer(seed.config), seed.weights);
  KeyValueCache cache(seed.config, {.rows = ids.size(0), .dtype = a.dtype});
  std::vector<Tensor> pieces;
  for (const int64_t n : a.dims("chunks")) {
    const Tensor chunk = slice(ids, 1, cache.size(), cache.size() + n);
    pieces.push_back(model(chunk, TransformerArgs{.cache = &cache}));
  }
  Outputs out{{"logits_full", model(ids)}, {"logits_cached", cat(pieces, 1)}};
  const Tensor nothing = empty({ids.size(0), seed.config.n_heads, 0, seed.config.head_width()}, a.dtype);
  for (size_t i = 0; i < cache.n_layers(); ++i) {
    const StoredKeys stored = cache.store(i).extend(nothing, nothing);
    out["k_cache." + std::to_string(i)] = stored.keys;
    out["v_cache." + std::to_string(i)] = stored.values;
  }
  return out;
}

/// The model of a published folder, its parameters made from the weights under the file's names.
Transformer published(const Args& a) {
  const std::string path = a.text("folder", "") + "/config.json";
  const MappedFile file(path);
  const hf::ReadConfig read = hf::read_config(path, file.bytes());
  Transformer model(read.config);
  const hf::WeightMap map(*read.family, model);
  Weights weights;
  for (const std::string& name : map.parameters())
    weights[name] = map.parameter(name, [&](const std::string& stored) { return a[stored]; });
  model.eval();  // some configs have dropout
  return bound(std::move(model), weights);
}

/// The likeliest tokens after the first `prompt` ones of each row: with a cache, which reads the prompt in pieces of
/// `chunk`, or without (0).
Tensor greedy(const Transformer& model, const Args& a, int64_t prompt, int64_t tokens, int64_t chunk) {
  const NoGrad plain;
  KeyValueCache cache(model.config, {.rows = a["input_ids"].size(0), .dtype = a.dtype});
  Tensor ids = slice(a["input_ids"], 1, 0, prompt);
  for (int64_t i = 0; i < tokens; ++i) {
    Tensor logits;
    if (chunk == 0) logits = model(ids, TransformerArgs{.last_only = true});
    while (chunk != 0 && cache.size() < ids.size(1)) {
      const Tensor next = slice(ids, 1, cache.size(), std::min(cache.size() + chunk, ids.size(1)));
      logits = model(next, TransformerArgs{.cache = &cache, .last_only = true});
    }
    ids = cat({ids, argmax(select(logits, 1, -1), -1, true)}, 1);
  }
  return ids;
}

Outputs causal_lm(const Args& a) {
  const Transformer model = published(a);
  const Tensor& ids = a["input_ids"];
  const int64_t length = ids.size(1), prompt = a.integer("prompt_len", 0), tokens = a.integer("new_tokens", 0);
  const Tensor logits = model(ids);
  const Tensor loss = cross_entropy(slice(logits, 1, 0, length - 1), slice(a["labels"], 1, 1, length));
  const Tensor written = greedy(model, a, prompt, tokens, 0);
  for (const int64_t chunk : {prompt, int64_t{3}, int64_t{1}})
    if (!all(equal(greedy(model, a, prompt, tokens, chunk), written)).item<bool>())
      throw FormatError("with a cache filled " + std::to_string(chunk) + " at a time, other tokens are the likeliest");
  return {{"logits", logits}, {"loss", loss}, {"greedy_ids", written}};
}

Outputs train(const Args& a) {
  const SeedModel seed(a, a.integer("H", 1), a.integer("T", 1));
  Transformer model(seed.config);
  to(model, a.dtype);
  load_state_dict(model, seed.weights);
  Optimizer<AdamW> optimizer(named_parameters(model), {.beta1 = a.number("beta1", 0),
                                                       .beta2 = a.number("beta2", 0),
                                                       .eps = a.number("eps", 0),
                                                       .weight_decay = a.number("wd", 0),
                                                       .decay = Decay::last});
  const int64_t steps = a.integer("S", 0);
  const CosineWithWarmup schedule{.lr_max = a.number("hi", 0),
                                  .lr_min = a.number("lo", 0),
                                  .warmup_steps = a.integer("warm", 0),
                                  .total_steps = steps};
  std::vector<double> losses, norms, rates;
  for (int64_t t = 0; t < steps; ++t) {
    const Tensor loss = cross_entropy(model(select(a["ids"], 0, t)), select(a["targets"], 0, t));
    loss.backward();
    losses.push_back(loss.item());
    norms.push_back(clip_grad_norm_(optimizer.parameters(), a.number("clip", 0)));
    rates.push_back(schedule(t));
    optimizer.set_lr(rates.back());
    optimizer.step();
    optimizer.zero_grad();
  }
  Outputs out = to_seed(state_dict(model), seed.n_layers, "final.");
  out["loss"] = to(from(losses), a.dtype);
  out["grad_norm"] = to(from(norms), a.dtype);
  out["lr"] = to(from(rates), a.dtype);
  return out;
}

constexpr Op rows[] = {
    {"seed_transformer", seed_transformer}, {"kv_cache", cached}, {"causal_lm", causal_lm}, {"train", train}};

}  // namespace

std::span<const Op> model_ops() { return rows; }

}  // namespace tapestry::golden
