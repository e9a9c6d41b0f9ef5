// Rows of the products beside matmul: Einstein's sums, tensor, outer, Kronecker and vector products, traces, distances and angles.
#include <map>
#include <string_view>

#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

constexpr Bounds product_bounds = {1e-12, 4e-6, 0x1p-7};

/// An equation as the op takes it, and with all its dots and its arrow spelled out in letters.
struct Equation {
  const char *written, *spelled;
};
constexpr Equation equations[] = {
    {"ij,jk->ik", "ij,jk->ik"},
    {"bij, bkj -> bik", "bij,bkj->bik"},
    {"ii->i", "ii->i"},
    {"i,j->ij", "i,j->ij"},
    {"...ij,...jk", "abij,bjk->abik"},
    {"ij,jk,kl->li", "ij,jk,kl->li"},
    {"iij->j", "iij->j"},
    {"ba", "ba->ab"},
    {"ij,ij->", "ij,ij->"},
    {"bi,bi->b", "bi,bi->b"},
    {"ijk,jil->kl", "ijk,jil->kl"},
    {"...ii->...i", "abii->abi"},
};

/// Loops over every value of every letter. Sizes of 1 are read again and again where another operand has more.
Array einsum_of(const Arrays& xs, std::string_view equation) {
  const size_t arrow = equation.find("->");
  std::vector<std::string_view> terms;
  for (std::string_view rest = equation.substr(0, arrow);;) {
    terms.push_back(rest.substr(0, rest.find(',')));
    if (rest.find(',') == std::string_view::npos) break;
    rest.remove_prefix(rest.find(',') + 1);
  }
  std::map<char, int64_t> sizes, at;
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t d = 0; d < terms[i].size(); ++d) {
      int64_t& size = sizes.try_emplace(terms[i][d], 1).first->second;
      if (xs[i].size(static_cast<int>(d)) != 1) size = xs[i].size(static_cast<int>(d));
    }
  Shape all, out;
  for (const auto& [letter, size] : sizes) all.push_back(size);
  const std::string_view result = equation.substr(arrow + 2);
  for (const char c : result) out.push_back(sizes[c]);
  Array y = reference::build(out, [](const Dims&) { return 0; });
  reference::for_each(all, [&](const Dims& index) {
    int d = 0;
    for (const auto& [letter, size] : sizes) at[letter] = index[d++];
    const auto place = [&](std::string_view term, const Shape& shape) {
      Dims own;
      for (const char c : term) own.push_back(shape[own.rank()] == 1 ? 0 : at[c]);
      return own;
    };
    double product = 1;
    for (size_t i = 0; i < terms.size(); ++i) product *= xs[i](place(terms[i], xs[i].shape));
    y(place(result, out)) += product;
  });
  return y;
}

Array twice(Array x) {
  for (double& v : x.values) v *= 2;
  return x;
}

Array bilinear_of(const Arrays& a) {
  Array y = einsum_of({a[0], a[1], a[2]}, a[0].shape.rank() == 1 ? "n,m,knm->k" : "bn,bm,knm->bk");
  if (a.size() > 3) reference::for_each(y.shape, [&](const Dims& i) { y(i) += a[3]({i[i.rank() - 1]}); });
  return y;
}

Array cross_of(const Array& a, const Array& b, int dim) {
  const Shape shape = broadcast_shapes("reference", a.shape, b.shape);
  return reference::build(shape, [&](const Dims& i) {
    const auto at = [&](const Array& x, int64_t step) {
      return x.broadcast(reference::replaced(i, dim, (i[dim] + step) % 3));
    };
    return at(a, 1) * at(b, 2) - at(a, 2) * at(b, 1);
  });
}

Array cdist_of(const Array& a, const Array& b, double p) {
  Shape shape = a.shape;
  shape[shape.rank() - 1] = b.size(-2);
  return reference::build(shape, [&](const Dims& i) {
    const int r = i.rank();
    double sum = 0;
    for (int64_t k = 0; k < a.size(-1); ++k) {
      const double d = a(reference::replaced(i, r - 1, k)) -
                       b(reference::replaced(reference::replaced(i, r - 2, i[r - 1]), r - 1, k));
      sum += p == 1 ? std::abs(d) : d * d;
    }
    return p == 1 ? sum : std::sqrt(sum);
  });
}

Array cosine_of(const Array& a, const Array& b, int dim) {
  Shape shape = broadcast_shapes("reference", a.shape, b.shape);
  const int64_t n = shape[dim];
  shape.erase(dim);
  return reference::build(shape, [&](const Dims& i) {
    double ab = 0, aa = 0, bb = 0;
    for (int64_t k = 0; k < n; ++k) {
      const Dims at = reference::inserted(i, dim, k);
      const double x = a.broadcast(at), y = b.broadcast(at);
      ab += x * y;
      aa += x * x;
      bb += y * y;
    }
    return ab / std::max(std::sqrt(aa), 1e-8) / std::max(std::sqrt(bb), 1e-8);
  });
}

constexpr OpRow rows[] = {
    {.name = "outer",
     .formula = "y[i][j] = a[i]·b[j]",
     .vjp = "g b, gᵀ a",
     .fn = [](Args a) { return outer(a[0], a[1]); },
     .ref = [](const Arrays& a) { return einsum_of(a, "i,j->ij"); },
     .samples = {{{real(3), real(4)}}, {{real(1), real(2)}}},
     .empty = {{real(0), real(3)}},
     .errors = {{[] {
                   (void)outer(zeros({2, 3}), zeros({3}));
                 },
                 "outer: a is [2, 3] f32; it must have rank 1"}},
     .i64 = true},
    {.name = "dot",
     .formula = "y = Σ a[i]·b[i]",
     .vjp = "g·b, g·a",
     .fn = [](Args a) { return dot(a[0], a[1]); },
     .ref = [](const Arrays& a) { return einsum_of(a, "i,i->"); },
     .samples = {{{real(4), real(4)}}, {{real(1), real(1)}}},
     .empty = {{real(0), real(0)}},
     .errors = {{[] { (void)dot(zeros({2}), zeros({3})); },
                 "dot: lengths differ: a is [2] f32, b is [3] f32; both need as many elements"}},
     .bounds = product_bounds,
     .i64 = true},
    {.name = "tensordot",
     .formula = "y = Σ a·b over pairs of dims",
     .vjp = "tensordot(g, b), tensordot(a, g)",
     .fn =
         [](Args a, const Params& p) {
           if (p.a == 0) return tensordot(a[0], a[1], {1, -3}, {2, 0});
           return p.a == 1 ? tensordot(a[0], a[1], {1}, {0}) : tensordot(a[0], a[1], {}, {});
         },
     .ref =
         [](const Arrays& a, const Params& p) {
           return einsum_of(a, p.a == 0 ? "abc,adb->cd" : p.a == 1 ? "ij,jk->ik" : "i,j->ij");
         },
     .samples = {{{real(2, 3, 4), real(2, 5, 3)}, {0}}, {{real(3, 4), real(4, 2)}, {1}}, {{real(3), real(2)}, {2}}},
     .empty = {{real(3, 0), real(0, 2)}, {1}},
     .errors = {{[] {
                   (void)tensordot(zeros({2, 3}), zeros({4, 2}), {1}, {0});
                 },
                 "tensordot: sizes differ: a is [2, 3] f32, b is [4, 2] f32 (a.size(1) = 3, b.size(0) = 4)"},
                {[] {
                   (void)tensordot(zeros({2, 3}), zeros({3, 2}), {1}, {});
                 },
                 "tensordot: 1 dims of a [1] against 0 of b []; name them in pairs"},
                {[] {
                   (void)tensordot(zeros({2, 2}), zeros({2, 2}), {1, -1}, {0, 1});
                 },
                 "tensordot: dim 1 of a ([2, 2] f32) is named twice in [1, -1]; name each dim once"}},
     .bounds = product_bounds,
     .i64 = true},
    {.name = "einsum",
     .formula = "y = Σ of products over the letters the result does not name",
     .vjp = "einsum with g in the place of the operand",
     .fn = [](Args a, const Params& p) { return einsum(equations[p.a].written, a); },
     .ref = [](const Arrays& a, const Params& p) { return einsum_of(a, equations[p.a].spelled); },
     .samples = {{{real(3, 4), real(4, 2)}, {0}},
                 {{real(2, 3, 4), real(2, 5, 4)}, {1}},
                 {{real(3, 3)}, {2}},
                 {{real(3), real(4)}, {3}},
                 {{real(2, 1, 3, 2), real(3, 2, 2)}, {4}},
                 {{real(2, 3), real(3, 4), real(4, 2)}, {5}}},
     .empty = {{real(3, 0), real(0, 2)}, {0}},
     .large = {{real(8, 64, 48), real(8, 40, 48)}, {1}},
     .errors =
         {{[] {
             (void)einsum("ij,jk->ik", {zeros({2, 3}), zeros({4, 5})});
           },
           "einsum: letter j has size 3 in operand 0 ([2, 3] f32, \"ij\") but 4 in operand 1 ([4, 5] f32, \"jk\")"},
          {[] {
             (void)einsum("ij->ik", {zeros({2, 3})});
           },
           "einsum: letter k of the result \"ik\" is in no operand"},
          {[] {
             (void)einsum("ij,j->i", {zeros({2, 3})});
           },
           "einsum: the equation names 2 operands, 1 are given; separate them by commas"}},
     .bounds = product_bounds,
     .i64 = true},
    {.name = "einsum (one operand, repeated letters)",
     .formula = "diagonals, transposes and sums in one equation",
     .vjp = "g laid back on the diagonals, expanded over the sums",
     .fn = [](Args a, const Params& p) { return einsum(equations[p.a].written, a); },
     .ref = [](const Arrays& a, const Params& p) { return einsum_of(a, equations[p.a].spelled); },
     .samples = {{{real(2, 2, 3)}, {6}},
                 {{real(3, 2)}, {7}},
                 {{real(3, 4), real(3, 4)}, {8}},
                 {{real(3, 4), real(3, 4)}, {9}},
                 {{real(2, 3, 4), real(3, 2, 2)}, {10}},
                 {{real(2, 1, 3, 3)}, {11}}},
     .empty = {{real(0, 0, 3)}, {6}},
     .errors = {{[] {
                   (void)einsum("ijk->i", {zeros({2, 3})});
                 },
                 "einsum: operand 0 is [2, 3] f32, \"ijk\" names 3 dims; one letter a dim, \"...\" for any number"},
                {[] {
                   (void)einsum("i1->i", {zeros({2, 3})});
                 },
                 "einsum: \"1\" in \"i1\" is no letter; use a to z, A to Z and once \"...\""},
                {[] {
                   (void)einsum("ij->ii", {zeros({2, 3})});
                 },
                 "einsum: letter i stands twice in the result \"ii\"; a result names each dim once"}},
     .bounds = product_bounds,
     .i64 = true},
    {.name = "einsum (x twice)",
     .formula = "y = x (2x)ᵀ",
     .vjp = "2 (g + gᵀ) x",
     .fn =
         [](Args a) {
           return einsum("ij,kj->ik", {a[0], 2.0 * a[0]});
         },
     .ref =
         [](const Arrays& a) {
           return einsum_of({a[0], twice(a[0])}, "ij,kj->ik");
         },
     .samples = {{{real(3, 4)}}},
     .empty = {{real(3, 0)}},
     .errors = {{[] {
                   (void)einsum("...i,...i->i", {zeros({2, 3}), zeros({2, 3})});
                 },
                 "einsum: the result \"i\" has no place for the 1 dims of \"...\"; write \"...i\""}},
     .bounds = product_bounds},
    {.name = "bilinear",
     .formula = "y[k] = aᵀ W[k] b + bias[k]",
     .vjp = "Σₖ g[k] W[k] b, Σₖ g[k] W[k]ᵀ a, g[k] a bᵀ, g",
     .fn = [](Args a) { return bilinear(a[0], a[1], a[2], a.size() > 3 ? a[3] : Tensor{}); },
     .ref = [](const Arrays& a) { return bilinear_of(a); },
     .samples = {{{real(3, 2), real(3, 4), real(2, 2, 4), real(2)}},
                 {{real(2), real(3), real(2, 2, 3), real(2)}},
                 {{real(2, 2), real(2, 3), real(3, 2, 3)}}},
     .empty = {{real(0, 2), real(0, 4), real(2, 2, 4), real(2)}},
     .errors =
         {{[] {
             (void)bilinear(zeros({3, 2}), zeros({3, 5}), zeros({2, 2, 4}));
           },
           "bilinear: a is [3, 2] f32, b is [3, 5] f32, weight is [2, 2, 4] f32; the last dims of a and b must be "
           "weight's dims 1 and 2"},
          {[] {
             (void)bilinear(zeros({3, 2}), zeros({3, 4}), zeros({2, 2, 4}), zeros({3}));
           },
           "bilinear: bias is [3] f32, weight is [2, 2, 4] f32; bias must be [2]"}},
     .bounds = {1e-12, 4e-6, 0x1p-5}},
    {.name = "trace",
     .formula = "y = Σ x[i][i]",
     .vjp = "g·1",
     .fn = [](Args a) { return trace(a[0]); },
     .ref = [](const Arrays& a) { return einsum_of(a, a[0].shape.rank() == 2 ? "ii->" : "bii->b"); },
     .samples = {{{real(3, 3)}}, {{real(2, 3, 3)}}, {{real(1, 1)}}},
     .empty = {{real(0, 3, 3)}},
     .errors = {{[] { (void)trace(zeros({3})); }, "trace: x is [3] f32; it needs two dims for a matrix"}},
     .bounds = product_bounds,
     .i64 = true},
    {.name = "kron",
     .formula = "y = blocks a[i][j]·b",
     .vjp = "Σ of g's blocks times b, Σ a[i][j] times g's blocks",
     .fn = [](Args a) { return kron(a[0], a[1]); },
     .ref =
         [](const Arrays& a) {
           const int64_t p = a[1].size(0), q = a[1].size(1);
           return reference::build({a[0].size(0) * p, a[0].size(1) * q}, [&](const Dims& i) {
             return a[0]({i[0] / p, i[1] / q}) * a[1]({i[0] % p, i[1] % q});
           });
         },
     .samples = {{{real(2, 3), real(3, 2)}}, {{real(1, 1), real(2, 2)}}},
     .empty = {{real(0, 2), real(2, 3)}},
     .errors = {{[] {
                   (void)kron(zeros({3}), zeros({2, 2}));
                 },
                 "kron: a is [3] f32; it must have rank 2"}},
     .i64 = true},
    {.name = "cross",
     .formula = "y = a × b along dim",
     .vjp = "b × g, g × a",
     .fn = [](Args a, const Params& p) { return cross(a[0], a[1], p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return cross_of(a[0], a[1], reference::wrap(p.a, std::max(a[0].shape.rank(), a[1].shape.rank())));
         },
     .samples = {{{real(2, 3), real(2, 3)}, {-1}}, {{real(3, 2), real(3, 1)}, {0}}, {{real(3), real(2, 3)}, {-1}}},
     .empty = {{real(0, 3), real(0, 3)}, {1}},
     .errors = {{[] {
                   (void)cross(zeros({2, 4}), zeros({2, 4}));
                 },
                 "cross: a is [2, 4] f32, b is [2, 4] f32; dim 1 must have size 3, it has 4"}},
     .bounds = {1e-13, 2e-6, 0x1p-5},
     .i64 = true},
    {.name = "cdist",
     .fn = [](Args a) { return cdist(a[0], a[1]); },
     .ref = [](const Arrays& a) { return cdist_of(a[0], a[1], 2); },
     .composite = [](Args a) { return norm(unsqueeze(a[0], -2) - unsqueeze(a[1], -3), {-1}); },
     .samples = {{{real(3, 4), real(2, 4)}}, {{real(2, 2, 3), real(2, 3, 3)}}, {{real(1, 1), real(2, 1)}}},
     .empty = {{real(0, 4), real(2, 4)}},
     .large = {{real(200, 40), real(150, 40)}},
     .errors = {{[] {
                   (void)cdist(zeros({2, 3}), zeros({2, 4}));
                 },
                 "cdist: a is [2, 3] f32, b is [2, 4] f32; they must be (…, n, d) and (…, m, d)"},
                {[] {
                   (void)cdist(zeros({2, 3}), zeros({2, 3}), 3);
                 },
                 "cdist: p is 3; it must be 1 or 2"}}},
    {.name = "cdist (p = 1)",
     .fn = [](Args a) { return cdist(a[0], a[1], 1); },
     .ref = [](const Arrays& a) { return cdist_of(a[0], a[1], 1); },
     .composite = [](Args a) { return sum(abs(unsqueeze(a[0], -2) - unsqueeze(a[1], -3)), {-1}); },
     .samples = {{{real(3, 4), real(2, 4)}}, {{real(2, 2, 3), real(2, 3, 3)}}},
     .empty = {{real(0, 4), real(2, 4)}},
     .large = {{real(200, 40), real(150, 40)}},
     .errors = {{[] {
                   (void)cdist(zeros({2, 3}, DType::i64), zeros({2, 3}, DType::i64), 1);
                 },
                 "cdist: needs a floating dtype, got [2, 3] i64; convert with to(x, DType::f32)"}}},
    {.name = "cdist (x twice)",
     .formula = "y[i][j] = ‖x[i] − 2x[j]‖",
     .vjp = "the gradients of both lists",
     .fn = [](Args a) { return cdist(a[0], 2.0 * a[0]); },
     .ref = [](const Arrays& a) { return cdist_of(a[0], twice(a[0]), 2); },
     .samples = {{{real(3, 4)}}},
     .empty = {{real(0, 4)}},
     .errors = {{[] {
                   (void)cdist(zeros({2, 1, 3}), zeros({3, 2, 3}));
                 },
                 "cdist: cannot broadcast [2] with [3]"}}},
    {.name = "cosine_similarity",
     .formula = "y = a·b/(max(‖a‖, ε)·max(‖b‖, ε)) along dim",
     .vjp = "g (b̂ − y â)/‖a‖, g (â − y b̂)/‖b‖",
     .fn = [](Args a, const Params& p) { return cosine_similarity(a[0], a[1], p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return cosine_of(a[0], a[1], reference::wrap(p.a, std::max(a[0].shape.rank(), a[1].shape.rank())));
         },
     .samples = {{{real(3, 4), real(3, 4)}, {-1}}, {{real(3, 2), real(3, 1)}, {0}}, {{real(4), real(2, 4)}, {1}}},
     .empty = {{real(0, 4), real(0, 4)}, {1}},
     .errors = {{[] {
                   (void)cosine_similarity(zeros({2, 3}), zeros({2, 4}));
                 },
                 "cosine_similarity: cannot broadcast [2, 3] with [2, 4]"},
                {[] { (void)cosine_similarity(zeros({2}), zeros({2}), 0, 0); },
                 "cosine_similarity: eps is 0; it must be more than 0"}}},
};

}  // namespace

std::span<const OpRow> product_rows() { return rows; }

}  // namespace tapestry::op_table
