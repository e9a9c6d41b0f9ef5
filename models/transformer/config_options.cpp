// Rows of the table of choices. Next: config_page.cpp.
#include "config_options.h"

#include <array>

namespace tapestry {
namespace {

using Text = std::string_view;

constexpr Text norm_placement[] = {"{}", R"({"norm_placement": "post"})", R"({"norm_placement": "double_norm"})",
                                   R"({"norm_placement": "non_residual_post"})"};
constexpr Text norm_kind[] = {"{}", R"({"norm_kind": "rms_unit_offset"})", R"({"norm_kind": "layer_no_bias"})",
                              R"({"norm_kind": "layer"})"};
constexpr Text norm_eps[] = {"{}", R"({"norm_eps": 0.01})"};
constexpr Text final_norm[] = {"{}", R"({"final_norm": false})"};
constexpr Text kv_heads[] = {"{}", R"({"n_kv_heads": 2})", R"({"n_kv_heads": 1})"};
constexpr Text head_dim[] = {"{}", R"({"head_dim": 8})"};
constexpr Text positions[] = {"{}", R"({"positions": "learned"})", R"({"positions": "sinusoidal"})",
                              R"({"positions": "none"})"};
constexpr Text rope_layout[] = {"{}", R"({"rope_layout": "half"})"};
constexpr Text rope_theta[] = {"{}", R"({"rope_theta": 50.0})"};
constexpr Text rope_local_theta[] = {"{}", R"({"rope_local_theta": 20.0, "window": 3})"};
constexpr Text rotary_fraction[] = {"{}", R"({"rotary_fraction": 0.5})"};
constexpr Text rope_scaling[] = {
    "{}",
    R"({"rope_scaling": {"rule": "linear", "factor": 4}})",
    R"({"rope_scaling": {"rule": "ntk", "factor": 4}})",
    R"({"rope_scaling": {"rule": "dynamic", "factor": 2, "original_max_seq_len": 4}})",
    R"({"rope_scaling": {"rule": "yarn", "factor": 4, "original_max_seq_len": 4, "beta_fast": 0.4, "beta_slow": 0.1}})",
    R"({"rope_scaling": {"rule": "yarn_simple", "factor": 4, "original_max_seq_len": 8}})",
    R"({"rope_scaling": {"rule": "llama3", "factor": 4, "original_max_seq_len": 16}})"};
constexpr Text rope_layers[] = {"{}", R"({"rope_layers": [true, false]})"};
constexpr Text window[] = {"{}", R"({"window": 2})",
                           R"({"window": 3, "layer_types": ["sliding_attention", "full_attention"]})"};
constexpr Text fused_qkv[] = {"{}", R"({"fused_qkv": true})"};
constexpr Text qk_norm[] = {"{}",
                            R"({"qk_norm": "head"})",
                            R"({"qk_norm": "projection"})",
                            R"({"qk_norm": "head", "qk_norm_kind": "rms_unit_offset"})",
                            R"({"qk_norm": "head", "qk_norm_kind": "layer_no_bias"})",
                            R"({"qk_norm": "projection", "qk_norm_kind": "layer"})"};
constexpr Text attention_scale[] = {"{}", R"({"attention_scale": 0.3})"};
constexpr Text attention_soft_cap[] = {"{}", R"({"attention_soft_cap": 0.7})"};
constexpr Text activation[] = {"{}",
                               R"({"activation": "gelu"})",
                               R"({"activation": "gelu_tanh"})",
                               R"({"activation": "relu"})",
                               R"({"activation": "relu_squared"})",
                               R"({"activation": "sigmoid"})"};
constexpr Text gated[] = {"{}", R"({"gated": false})"};
constexpr Text fused_gate_up[] = {"{}", R"({"fused_gate_up": true})"};
constexpr Text experts[] = {
    "{}", R"({"n_experts": 3})",
    R"({"n_experts": 3, "experts_per_token": 1, "normalise_experts": false, "d_expert": 4})",
    R"({"n_experts": 3, "n_shared_experts": 2, "d_expert": 4, "expert_layers": [false, true]})"};
constexpr Text attention_biases[] = {"{}", R"({"q_bias": true, "k_bias": true, "v_bias": true})",
                                     R"({"q_bias": true, "k_bias": true, "v_bias": true, "o_bias": true})"};
constexpr Text feed_forward_biases[] = {"{}", R"({"up_bias": true, "down_bias": true})",
                                        R"({"gate_bias": true, "up_bias": true, "down_bias": true})"};
constexpr Text head_bias[] = {"{}", R"({"head_bias": true})"};
constexpr Text tied_embeddings[] = {"{}", R"({"tied_embeddings": true})"};
constexpr Text scale_embedding[] = {"{}", R"({"scale_embedding": true})"};
constexpr Text final_soft_cap[] = {"{}", R"({"final_soft_cap": 1.5})"};
constexpr Text dropout[] = {"{}", R"({"attention_dropout": 0.3})",
                            R"({"residual_dropout": 0.3, "embedding_dropout": 0.2})"};

constexpr ConfigOption table[] = {
    {"norm_placement",
     "pre: h + F(Norm(h)); post: Norm(h + F(h)); double_norm: h + Norm(F(Norm(h))); non_residual_post: h + Norm(F(h))",
     "Xiong et al. 2020; Vaswani et al. 2017; Gemma 2 (2024); OLMo 2 (2024)",
     "Leave it: the residual path then reaches the first layer untouched. post needs warm-up and a smaller rate in "
     "deep "
     "models; the last two bound what a branch may add.",
     norm_placement},
    {"norm_kind",
     "rms: x/√(mean(x²) + ε)·w; rms_unit_offset: the same with 1 + w; layer: (x − mean)/√(var + ε)·w + b; "
     "layer_no_bias: without b",
     "Zhang & Sennrich 2019; Gemma (2024); Ba et al. 2016",
     "Leave it: RMSNorm reads and writes less and trains as well. The others are for the checkpoints that have them.",
     norm_kind},
    {"norm_eps", "ε inside the root of every norm", "Zhang & Sennrich 2019",
     "As the checkpoint has it; 1e-5 or 1e-6 for new models.", norm_eps},
    {"final_norm", "logits = head(Norm(h)) or head(h)", "Radford et al. 2019",
     "Off only after post-norm blocks, which end in a norm themselves.", final_norm},
    {"n_kv_heads", "query head h reads key and value head ⌊h/(H/Hkv)⌋", "Ainslie et al. 2023; Shazeer 2019 for 1",
     "Fewer where decoding is bound by reading the cache, whose size is proportional to it: a quarter or an eighth of "
     "n_heads costs little quality.",
     kv_heads},
    {"head_dim", "width of a head; 0: d_model/n_heads", "Vaswani et al. 2017",
     "Free of d_model/n_heads where a checkpoint has it so; 64 to 128 suit the hardware.", head_dim},
    {"positions",
     "rope: queries and keys turned by position; learned: h + P[p]; sinusoidal: h + (sin, cos)(p/10000^(2i/D)); none",
     "Su et al. 2021; Radford et al. 2018; Vaswani et al. 2017; Haviv et al. 2022",
     "Leave it: scores then depend on distance alone. learned cannot go past max_seq_len; none leaves order to "
     "causality.",
     positions},
    {"rope_layout", "pairs (x₂ᵢ, x₂ᵢ₊₁) (adjacent) or (xᵢ, x_{i+r/2}) (half)", "Su et al. 2021; GPT-NeoX (2022)",
     "half for Hugging Face weights. to_rope_layout (nn/rope.h) converts the rows of the projections.", rope_layout},
    {"rope_theta", "pair i turns by p·θ^(−2i/r)", "Su et al. 2021",
     "Larger for longer contexts: 10,000 for some thousand tokens, 500,000 or more for a hundred thousand.",
     rope_theta},
    {"rope_local_theta", "θ of sliding layers, never scaled; 0: as the others", "Gemma 3 (2025)",
     "Smaller than rope_theta where sliding layers see only short distances and full ones are stretched.",
     rope_local_theta},
    {"rotary_fraction", "only the first ⌊fraction·Dh⌋ entries of a head turn", "GPT-J (2021); Phi (2023)",
     "Below 1 for checkpoints that have it: some entries then carry content free of position.", rotary_fraction},
    {"rope_scaling", "frequencies changed by a rule (RopeScalingRule in nn/rope.h has the formulas)",
     "Chen et al. 2023 (linear); Peng et al. 2023 (yarn, ntk, dynamic); Llama 3 (2024)",
     "To run a model past the length it was trained on; yarn or llama3, with some training at the new length. dynamic "
     "here scales for max_seq_len once, so that cached keys stay right.",
     rope_scaling},
    {"rope_layers", "layers whose queries and keys turn; empty: all", "Yang et al. 2025; SmolLM3 (2025)",
     "Every fourth full layer without positions generalises better to lengths not trained on.", rope_layers},
    {"window, layer_types",
     "sliding layers: query p sees keys p − W + 1 … p; full layers: 0 … p. every_kth_full makes a pattern",
     "Beltagy et al. 2020; Mistral (2023); Gemma 2 (2024)",
     "For long contexts: a sliding layer costs O(T·W) and caches W tokens. Keep some layers full, or distance is only "
     "bridged from layer to layer.",
     window},
    {"fused_qkv", "one product for q, k and v", "Radford et al. 2019",
     "For checkpoints that store it so; one large product is a little faster than three. Its initial weights are "
     "smaller, "
     "as out counts all rows.",
     fused_qkv},
    {"qk_norm, qk_norm_kind",
     "q and k normalised before they turn: every head over Dh (head), or the whole projection (projection)",
     "Henry et al. 2020; Dehghani et al. 2023",
     "Where attention logits grow and training becomes unstable, at large rates above all.", qk_norm},
    {"attention_scale", "scores = q·k·scale; 0: 1/√Dh", "Vaswani et al. 2017; Gemma 2 (2024)",
     "As the checkpoint has it (Gemma: query_pre_attn_scalar^(−1/2)).", attention_scale},
    {"attention_soft_cap", "scores become cap·tanh(score/cap), before the mask", "Gemma 2 (2024)",
     "Bounds the scores as qk_norm does, at the cost of a tanh a score.", attention_soft_cap},
    {"activation", "act in the feed-forward network; gated: sigmoid is GLU, relu ReGLU, gelu GeGLU, silu SwiGLU",
     "Shazeer 2020; So et al. 2021 (relu_squared); Hendrycks & Gimpel 2016", "Leave it, or as the checkpoint has it.",
     activation},
    {"gated", "down(act(gate x)·up x), else down(act(up x))", "Shazeer 2020",
     "Leave it, with d_ff 8/3·D; without a gate 4·D has the same parameters (feed_forward_width).", gated},
    {"fused_gate_up", "one product for gate and up", "Phi-3 (2024)", "For checkpoints that store it so.",
     fused_gate_up},
    {"n_experts, experts_per_token, d_expert, normalise_experts, n_shared_experts, expert_layers",
     "Σ_j p_j·expert_j(x) over the k most probable experts of softmax(router x)",
     "Shazeer et al. 2017; Fedus et al. 2022; Jiang et al. 2024; Dai et al. 2024 (shared)",
     "More parameters at the compute of k experts, where memory is no limit. Train with a balance loss.", experts},
    {"q_bias, k_bias, v_bias, o_bias", "W x + b in the projections of attention", "Vaswani et al. 2017; Qwen2 (2024)",
     "As the checkpoint has it: beside norms they add little.", attention_biases},
    {"gate_bias, up_bias, down_bias", "W x + b in the feed-forward network", "Vaswani et al. 2017",
     "As the checkpoint has it.", feed_forward_biases},
    {"head_bias", "logits = W h + b", "Phi (2023)", "As the checkpoint has it; not with tied embeddings.", head_bias},
    {"tied_embeddings", "the head's weight is the token embedding's", "Press & Wolf 2017",
     "For small models, where the vocabulary is most of the parameters.", tied_embeddings},
    {"scale_embedding", "embeddings times √D", "Vaswani et al. 2017; Gemma (2024)",
     "As the checkpoint has it: it lets a tied table be small at the head and large at the entrance.", scale_embedding},
    {"final_soft_cap", "logits become cap·tanh(logit/cap)", "Bello et al. 2016; Gemma 2 (2024)",
     "Bounds the logits; z_loss in training does so more gently.", final_soft_cap},
    {"attention_dropout, residual_dropout, embedding_dropout",
     "inverted dropout of the probabilities, of what a branch adds, of what enters the first block",
     "Srivastava et al. 2014; Vaswani et al. 2017",
     "0 where the data is seen once; 0.1 to 0.2 for many epochs over little data. attention_dropout takes an unfused "
     "path "
     "that holds all scores.",
     dropout},
};

}  // namespace

std::span<const ConfigOption> config_options() { return table; }

}  // namespace tapestry
