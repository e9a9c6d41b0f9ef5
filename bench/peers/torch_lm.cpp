// The training step of bench_lm in libtorch: the same architecture, loss, clipping and AdamW, written as its users write it, with the projections fused
// into one product each for queries, keys and values, and for gate and up, which is its faster form.
// Built where libtorch-dev is installed; run beside bench_lm by alternate.sh.
#include <sys/resource.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

using torch::Tensor;
namespace F = torch::nn::functional;

namespace {

std::map<std::string, int64_t> option{{"--layers", 6}, {"--dim", 384},  {"--heads", 6},     {"--ff", 1024},
                                      {"--vocab", 65}, {"--batch", 8},  {"--context", 256}, {"--steps", 5},
                                      {"--warmup", 2}, {"--threads", 2}};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Norm : torch::nn::Module {
  Tensor weight;
  explicit Norm(int64_t d) { weight = register_parameter("weight", torch::ones({d})); }
  Tensor operator()(const Tensor& x) const { return x * torch::rsqrt(x.square().mean(-1, true) + 1e-5) * weight; }
};

Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin) {  // (B, H, T, Dh), split halves
  const auto half = x.chunk(2, -1);
  return torch::cat({half[0] * cos - half[1] * sin, half[1] * cos + half[0] * sin}, -1);
}

struct Block : torch::nn::Module {
  int64_t heads;
  std::shared_ptr<Norm> norm1, norm2;
  Tensor qkv, out, gate_up, down;
  Block(int64_t d, int64_t h, int64_t ff) : heads(h) {
    norm1 = register_module("norm1", std::make_shared<Norm>(d));
    norm2 = register_module("norm2", std::make_shared<Norm>(d));
    qkv = register_parameter("qkv", 0.02 * torch::randn({3 * d, d}));
    out = register_parameter("out", 0.02 * torch::randn({d, d}));
    gate_up = register_parameter("gate_up", 0.02 * torch::randn({2 * ff, d}));
    down = register_parameter("down", 0.02 * torch::randn({d, ff}));
  }
  Tensor operator()(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& mask) const {
    const int64_t B = x.size(0), T = x.size(1), D = x.size(2), Dh = D / heads;
    auto p = F::linear((*norm1)(x), qkv).view({B, T, 3, heads, Dh}).permute({2, 0, 3, 1, 4}).unbind(0);
    const auto flat = [&](const Tensor& t) { return t.reshape({B * heads, T, Dh}); };
    const Tensor q = flat(rope(p[0], cos, sin)), k = flat(rope(p[1], cos, sin)), v = flat(p[2]);
    const Tensor scores = torch::baddbmm(mask, q, k.transpose(1, 2), 1.0, 1.0 / std::sqrt(static_cast<double>(Dh)));
    const Tensor mixed = torch::bmm(scores.softmax(-1), v).view({B, heads, T, Dh}).transpose(1, 2).reshape({B, T, D});
    const Tensor z = x + F::linear(mixed, out);
    const auto u = F::linear((*norm2)(z), gate_up).chunk(2, -1);
    return z + F::linear(torch::silu(u[0]) * u[1], down);
  }
};

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto it = option.find(argv[i]);
    if (it == option.end()) return std::fprintf(stderr, "torch_lm: unknown option %s\n", argv[i]), 2;
    it->second = std::stoll(argv[i + 1]);
  }
  const int64_t L = option["--layers"], d = option["--dim"], h = option["--heads"], V = option["--vocab"],
                T = option["--context"], B = option["--batch"], steps = option["--steps"], warmup = option["--warmup"];
  torch::manual_seed(1);
  at::set_num_threads(static_cast<int>(option["--threads"]));

  std::vector<Tensor> parameters;
  const auto keep = [&](Tensor t) { return parameters.emplace_back(t.requires_grad_()); };
  const Tensor embedding = keep(0.02 * torch::randn({V, d})), head = keep(0.02 * torch::randn({V, d}));
  std::vector<std::shared_ptr<Block>> blocks;
  for (int64_t i = 0; i < L; ++i) {
    blocks.push_back(std::make_shared<Block>(d, h, option["--ff"]));
    for (const auto& p : blocks.back()->parameters()) parameters.push_back(p);
  }
  const Norm last(d);
  for (const auto& p : last.parameters()) parameters.push_back(p);
  const Tensor frequencies =
      torch::pow(10000.0, -torch::arange(0, d / h, 2).to(torch::kFloat) / static_cast<double>(d / h));
  const Tensor angles = torch::outer(torch::arange(T).to(torch::kFloat), frequencies), cos = angles.cos(),
               sin = angles.sin();
  const Tensor mask = torch::full({1, T, T}, -1e9F).triu(1);
  torch::optim::AdamW optimizer(parameters, torch::optim::AdamWOptions(1e-3).weight_decay(0.1).betas({0.9, 0.95}));
  const Tensor tokens = torch::randint(V, {B, T + 1}, torch::kLong);
  const Tensor x = tokens.slice(1, 0, T).contiguous(), y = tokens.slice(1, 1, T + 1).reshape({-1});

  std::vector<double> times;
  double loss = 0;
  for (int64_t step = -warmup; step < steps; ++step) {
    const double t0 = now();
    Tensor s = torch::embedding(embedding, x);
    for (const auto& block : blocks) s = (*block)(s, cos, sin, mask);
    const Tensor l = F::cross_entropy(F::linear(last(s), head).view({-1, V}), y);
    loss = l.item<double>();
    l.backward();
    torch::nn::utils::clip_grad_norm_(parameters, 1.0);
    optimizer.step();
    for (auto& p : parameters) p.mutable_grad().reset();
    if (step >= 0) times.push_back(now() - t0);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  const double step = times[times.size() / 2];
  int64_t n = 0;
  for (const auto& p : parameters) n += p.numel();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "libtorch L%ld d%ld h%ld V%ld ctx%ld B%ld params %.2fM | step %.2f ms | %.0f tok/s | peak %.0f MiB | loss %.4f\n",
      L, d, h, V, T, B, static_cast<double>(n) * 1e-6, step * 1e3, static_cast<double>(B * T) / step,
      static_cast<double>(usage.ru_maxrss) / 1024, loss);
}
