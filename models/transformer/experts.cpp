// Routing on the host, one expert after the other on the rows it was given.
// Next: block.cpp.
#include "experts.h"

#include "../../autograd/error.h"

namespace tapestry {
namespace {

/// For every expert the places n·k + j of the choices that fell on it.
std::vector<std::vector<int64_t>> places_of(const Tensor& choices, size_t n_experts) {
  std::vector<std::vector<int64_t>> places(n_experts);
  const std::vector<int64_t> ids = choices.to_vector<int64_t>();
  for (size_t i = 0; i < ids.size(); ++i) places[static_cast<size_t>(ids[i])].push_back(static_cast<int64_t>(i));
  return places;
}

}  // namespace

MixtureOfExperts::MixtureOfExperts(int64_t d_model, int64_t d_expert, const MixtureOfExpertsOptions& o)
    : experts_per_token(o.experts_per_token),
      normalise(o.normalise),
      router(d_model, o.n_experts, LinearOptions{.bias = false}),
      experts(o.n_experts, [&](int64_t) { return FeedForward(d_model, d_expert, o.feed_forward); }) {
  if (experts_per_token < 1 || experts_per_token > o.n_experts)
    fail<ValueError>("MixtureOfExperts: experts_per_token is {}; it must be 1 to n_experts {}", experts_per_token,
                     o.n_experts);
  if (o.n_shared_experts > 0) shared_expert.emplace(d_model, o.n_shared_experts * d_expert, o.feed_forward);
}

Tensor MixtureOfExperts::forward(const Tensor& x, const MixtureArgs& args) const {
  const int64_t width = x.size(-1), k = experts_per_token;
  const Tensor rows = reshape(x, {-1, width});             // (N, D)
  const Tensor probabilities = softmax(router(rows), -1);  // (N, E)
  auto [weights, choices] = topk(probabilities, k);        // (N, k)
  if (normalise) weights = weights / sum(weights, {-1}, true);
  const Tensor each_weight = unsqueeze(flatten(weights), 1);  // (N·k, 1)
  const auto places = places_of(choices, experts.size());
  Tensor y = shared_expert ? (*shared_expert)(rows) : zeros(rows.shape(), rows.dtype());
  std::vector<double> shares;
  for (size_t e = 0; e < experts.size(); ++e) {
    std::vector<int64_t> tokens;
    for (const int64_t place : places[e]) tokens.push_back(place / k);
    const Tensor index = from(tokens), at = from(places[e]);
    y = index_add(y, 0, index, experts[e](index_select(rows, 0, index)) * index_select(each_weight, 0, at));
    shares.push_back(static_cast<double>(tokens.size()) / static_cast<double>(std::max<int64_t>(choices.numel(), 1)));
  }
  if (args.balance != nullptr) {
    const Tensor share = to(from(shares), probabilities.dtype());
    args.balance->add(sum(mean(probabilities, {0}) * share) * static_cast<double>(experts.size()));
  }
  return reshape(y, x.shape());
}

void MixtureOfExperts::visit(Visitor& v) {
  v.child("router", router);
  v.child("experts", experts);
  if (shared_expert) v.child("shared_expert", *shared_expert);
}

}  // namespace tapestry
