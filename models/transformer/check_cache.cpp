// Next: ../programs/check_cache.cpp.
#include "check_cache.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "../../autograd/error.h"
#include "../../autograd/grad_mode.h"
#include "../../autograd/random.h"
#include "../../ops/ops.h"

namespace tapestry {
namespace {

constexpr int64_t n_rows = 3;

double largest(const Tensor& x) { return max(abs(to(x, DType::f64))).item(); }
double distance(const Tensor& a, const Tensor& b) { return largest(to(a, DType::f64) - to(b, DType::f64)); }

/// NaN is larger than all.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

Tensor read(const Transformer& model, const Tensor& tokens, KeyValueCache& cache, const std::vector<int64_t>& pieces) {
  std::vector<Tensor> parts;
  int64_t at = 0;
  for (const int64_t n : pieces) {
    parts.push_back(model(slice(tokens, 1, at, at + n), TransformerArgs{.cache = &cache}));
    at += n;
  }
  return cat(parts, 1);
}

std::vector<int64_t> in_chunks(int64_t total, int64_t chunk) {
  std::vector<int64_t> pieces;
  for (int64_t at = 0; at < total; at += chunk) pieces.push_back(std::min(chunk, total - at));
  return pieces;
}

}  // namespace

double CacheCheck::worst() const {
  double most = 0;
  for (const Row& row : rows) most = larger(most, row.difference);
  return most;
}

CacheCheck check_cache(const Transformer& model, CacheCheckOptions o) {
  const TransformerConfig& c = model.config;
  bool slides = false;
  for (int64_t i = 0; i < c.n_layers; ++i) slides = slides || c.is_sliding(i);
  if (o.tokens == 0)
    o.tokens = std::min(c.max_seq_len, std::max<int64_t>(64, slides && c.window < 512 ? c.window + 8 : 0));
  if (o.tokens < 2 || o.tokens > c.max_seq_len)
    fail<ValueError>("check-cache: tokens is {}; it must be 2 to max_seq_len {}", o.tokens, c.max_seq_len);
  if (o.chunk < 1) fail<ValueError>("check-cache: chunk is {}; it must be at least 1", o.chunk);
  const NoGrad no_grad;
  const int64_t n = o.tokens;
  const Ticket ticket{.key = o.seed, .stream = hash_name("check_cache")};
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < n_rows * n; ++i)
    ids.push_back(static_cast<int64_t>(ticket.word(static_cast<uint64_t>(i)) % static_cast<uint64_t>(c.vocab_size)));
  const Tensor tokens = from(ids, {n_rows, n});
  const auto cache_for = [&] {
    return KeyValueCacheOptions{.rows = n_rows,
                                .dtype = o.bf16_cache ? DType::bf16 : model.token_embedding.weight.dtype()};
  };

  CacheCheck check;
  const Tensor whole = model(tokens);
  check.tokens = n;
  check.largest_logit = largest(whole);
  if (!std::isfinite(check.largest_logit))
    fail<ValueError>("check-cache: the model's logits are not finite; its weights are damaged or it has diverged");
  check.fills_window = !slides || c.window < n;
  const auto add = [&](const char* way, double difference) {
    check.rows.push_back({way, check.largest_logit > 0 ? difference / check.largest_logit : difference});
  };

  const std::array<int64_t, n_rows> padding = {0, n / 3, n / 2};
  std::vector<Tensor> alone;
  for (int64_t row = 0; row < n_rows; ++row)
    alone.push_back(
        select(model(slice(slice(tokens, 0, row, row + 1), 1, padding[static_cast<size_t>(row)], {})), 0, 0));
  std::vector<int64_t> prompt_then_tokens(static_cast<size_t>(n / 2), 1);
  prompt_then_tokens.insert(prompt_then_tokens.begin(), n - n / 2);

  struct Way {
    const char* name;
    const char* padded_name;
    std::vector<int64_t> pieces;
  };
  const Way ways[] = {{"one shot", "one shot, padded", {n}},
                      {"in pieces", "in pieces, padded", in_chunks(n, o.chunk)},
                      {"token by token", "token by token, padded", std::vector<int64_t>(static_cast<size_t>(n), 1)},
                      {"a prompt, then token by token", "prompts, then token by token, padded", prompt_then_tokens}};
  for (const Way& way : ways) {
    KeyValueCache cache(c, cache_for());
    add(way.name, distance(read(model, tokens, cache, way.pieces), whole));
  }
  for (const Way& way : ways) {
    KeyValueCache cache(c, cache_for());
    cache.set_padding(padding);
    const Tensor ragged = read(model, tokens, cache, way.pieces);
    double most = 0;
    for (int64_t row = 0; row < n_rows; ++row) {
      const auto at = static_cast<size_t>(row);
      most = larger(most, distance(slice(select(ragged, 0, row), 0, padding[at], {}), alone[at]));
    }
    add(way.padded_name, most);
  }
  return check;
}

}  // namespace tapestry
