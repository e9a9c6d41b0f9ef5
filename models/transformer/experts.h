// A mixture of experts: a router sends every token to a few of many feed-forward networks.
// Not here: the one network of an ordinary block (nn/feed_forward.h).
// Next: block.h.
#pragma once

#include "../../nn/containers.h"
#include "../../nn/feed_forward.h"

namespace tapestry {

struct MixtureOfExpertsOptions {
  int64_t n_experts = 8;                 ///< E
  int64_t experts_per_token = 2;         ///< k
  int64_t n_shared_experts = 0;          ///< width, in units of an expert's, of a network every token takes beside
  bool normalise = true;                 ///< the k weights are divided by their sum
  FeedForwardOptions feed_forward = {};  ///< of every expert
};

/// Collects what training adds to the loss so that the router spreads its tokens: E·Σ_e f_e·P_e of every mixture that
/// was called, f_e the share of the choices that fell on expert e and P_e its mean probability; 1 where both are even
/// (Fedus et al. 2022). Only P has a gradient.
class BalanceLoss {
 public:
  void add(const Tensor& loss) {
    sum_ = layers_ == 0 ? loss : sum_ + loss;
    ++layers_;
  }
  /// The mean over the mixtures called; undefined if there was none.
  [[nodiscard]] Tensor mean() const { return layers_ == 0 ? sum_ : sum_ / static_cast<double>(layers_); }

 private:
  Tensor sum_;
  int64_t layers_ = 0;
};

struct MixtureArgs {
  BalanceLoss* balance = nullptr;
};

/// y = Σ_j p_j·expert_j(x) over the k most probable experts, p = softmax(router x) over all of them, ties to the lower
/// number (Shazeer et al. 2017; Jiang et al. 2024). The choice is discrete: gradients go through the weights p_j and the
/// experts; one nobody chose has gradient 0. (…, D) to (…, D).
struct MixtureOfExperts : Layer<MixtureOfExperts> {
  int64_t experts_per_token;
  bool normalise;
  Linear router;  // (E, D)
  List<FeedForward> experts;
  std::optional<FeedForward> shared_expert;

  /// ValueError unless 1 ≤ k ≤ E.
  MixtureOfExperts(int64_t d_model, int64_t d_expert, const MixtureOfExpertsOptions& options);
  [[nodiscard]] Tensor forward(const Tensor& x, const MixtureArgs& args = {}) const;
  void visit(Visitor& v) override;
};

}  // namespace tapestry
