// Counts and their smoothed frequencies.
// Not here: the loss of a model (../training).
// Next: words.cpp.
#include "baseline.h"

#include <cmath>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../../autograd/error.h"

namespace tapestry {
namespace {

void check(std::string_view op, std::string_view part, std::span<const int32_t> tokens, int64_t vocab_size) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocab_size) {
      fail<IndexError>("{}: token {} of the {} part is {}, out of range for a vocabulary of {}", op, i, part, tokens[i],
                       vocab_size);
    }
  }
}

void check(std::string_view op, std::span<const int32_t> train, std::span<const int32_t> held_out, int64_t vocab_size) {
  if (held_out.size() < 2) {
    fail<ValueError>("{}: the held-out part needs at least 2 tokens, it has {}", op, held_out.size());
  }
  check(op, "training", train, vocab_size);
  check(op, "held-out", held_out, vocab_size);
}

/// p(b) = (c(b) + 1) / (n + V) for every b.
std::vector<double> unigram(std::span<const int32_t> train, int64_t vocab_size) {
  std::vector<double> p(static_cast<size_t>(vocab_size), 1.0);
  for (const int32_t b : train) p[static_cast<size_t>(b)] += 1;
  for (double& x : p) x /= static_cast<double>(train.size()) + static_cast<double>(vocab_size);
  return p;
}

uint64_t pair_key(int32_t a, int32_t b) { return (static_cast<uint64_t>(a) << 32) | static_cast<uint32_t>(b); }

}  // namespace

double unigram_loss(std::span<const int32_t> train, std::span<const int32_t> held_out, int64_t vocab_size) {
  check("unigram_loss", train, held_out, vocab_size);
  const std::vector<double> p = unigram(train, vocab_size);
  double sum = 0;
  for (const int32_t b : held_out.subspan(1)) sum -= std::log(p[static_cast<size_t>(b)]);
  return sum / static_cast<double>(held_out.size() - 1);
}

double bigram_loss(std::span<const int32_t> train, std::span<const int32_t> held_out, int64_t vocab_size) {
  check("bigram_loss", train, held_out, vocab_size);
  const std::vector<double> p = unigram(train, vocab_size);
  std::unordered_map<uint64_t, double> count;
  std::vector<double> begun(p.size()), different(p.size());
  for (size_t i = 1; i < train.size(); ++i) {
    const auto a = static_cast<size_t>(train[i - 1]);
    if (++count[pair_key(train[i - 1], train[i])] == 1) ++different[a];
    ++begun[a];
  }
  double sum = 0;
  for (size_t i = 1; i < held_out.size(); ++i) {
    const auto a = static_cast<size_t>(held_out[i - 1]), b = static_cast<size_t>(held_out[i]);
    const auto found = count.find(pair_key(held_out[i - 1], held_out[i]));
    const double pairs = found == count.end() ? 0 : found->second;
    const double smoothed = begun[a] == 0 ? p[b] : (pairs + different[a] * p[b]) / (begun[a] + different[a]);
    sum -= std::log(smoothed);
  }
  return sum / static_cast<double>(held_out.size() - 1);
}

}  // namespace tapestry
