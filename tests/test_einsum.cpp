// Einstein's sums beyond the rows of the op table: the same bits as the products they spell, what they record, implicit results, errors.
#include <set>

#include "../autograd/node.h"
#include "op_checks.h"

using namespace tapestry;
using namespace tapestry::testing;

namespace {

std::set<std::string_view> recorded(const Tensor& y) {
  std::set<std::string_view> names;
  for (const Ref<Node>& node : tape(y)) names.insert(node->name());
  return names;
}

std::string value_error(std::string_view equation, std::initializer_list<Tensor> xs) {
  return message<ValueError>([&] { (void)einsum(equation, xs); });
}

}  // namespace

TEST_SUITE("einsum") {
  TEST_CASE("products by another name have the same bits") {
    const Tensor a = uniform({5, 7}, 1), b = uniform({7, 3}, 2), q = uniform({2, 3, 5, 4}, 3),
                 k = uniform({2, 3, 6, 4}, 4);
    CHECK(difference(einsum("ij,jk->ik", {a, b}), matmul(a, b)) == 0);
    CHECK(difference(einsum("ij,jk", {a, b}), matmul(a, b)) == 0);
    CHECK(difference(einsum("ij,jk->ki", {a, b}), mT(matmul(a, b))) == 0);
    CHECK(difference(einsum("bhqd,bhkd->bhqk", {q, k}), matmul(q, mT(k))) == 0);
    CHECK(difference(einsum("...qd,...kd->...qk", {q, k}), matmul(q, mT(k))) == 0);
    CHECK(difference(einsum("i,i", {select(a, 0, 0), select(a, 0, 1)}), dot(select(a, 0, 0), select(a, 0, 1))) == 0);
    CHECK(difference(einsum("ii", {matmul(a, mT(a))}), trace(matmul(a, mT(a)))) == 0);
    CHECK(difference(einsum("i,j->ij", {select(a, 0, 0), select(a, 0, 1)}), outer(select(a, 0, 0), select(a, 0, 1))) ==
          0);
    CHECK(difference(einsum("iii->i", {uniform({3, 3, 3}, 5)}), diagonal(diagonal(uniform({3, 3, 3}, 5)))) == 0);
    CHECK(difference(einsum("Ba", {a}), a) == 0);  // capitals come first in the alphabet of codes
    CHECK(difference(einsum("aB", {a}), mT(a)) == 0);
    CHECK(einsum("->", {scalar(3)}).item() == 3);
    CHECK(einsum(",", {scalar(3), scalar(4)}).item() == 12);
    CHECK(difference(einsum("i...,i...->...", {a, a}), sum(a * a, {0})) < 1e-15);
    check_derivatives([](const Tensor& x) { return einsum("iij,jj->", {x, select(x, 2, 0)}); }, {leaf({2, 2, 2}, 6)});
  }

  TEST_CASE("a sum over shared letters is a matmul, never a larger product that is summed afterwards") {
    const Tensor a = leaf({5, 7}, 1), b = leaf({7, 3}, 2), c = leaf({3, 4}, 3);
    for (const Tensor& y :
         {einsum("ij,jk->ik", {a, b}), einsum("ij,jk,kl->il", {a, b, c}), einsum("ij,jk->k", {a, b})}) {
      const auto names = recorded(y);
      CHECK(names.contains("matmul"));
      CHECK(!names.contains("mul"));
    }
    CHECK(!recorded(einsum("ij,ij->ij", {a, a})).contains("matmul"));
    // What no other operand and no result asks for is summed before the product.
    CHECK(difference(einsum("ij,kl->", {a, b}).detach(), (sum(a) * sum(b)).detach()) < 1e-13);
  }

  TEST_CASE("dims behind dots broadcast, letters do not") {
    const Tensor a = uniform({2, 1, 3, 4}, 1), b = uniform({5, 4, 2}, 2);
    CHECK(difference(einsum("...ij,...jk->...ik", {a, b}), matmul(a, b)) < 1e-15);
    CHECK(difference(einsum("...ij,...jk->ik...", {a, b}), permute(matmul(a, b), {2, 3, 0, 1})) < 1e-15);
    CHECK(difference(einsum("i...,i...", {uniform({3, 1, 2}, 3), uniform({3, 4, 1}, 4)}),
                     sum(uniform({3, 1, 2}, 3) * uniform({3, 4, 1}, 4), {0})) < 1e-15);
    CHECK(einsum("...i->...", {zeros({0, 1, 3})}).shape() == Shape{0, 1});
    CHECK(message<ShapeError>([&] {
            (void)einsum("...i,...i", {zeros({2, 3}), zeros({4, 3})});
          }) ==
          "einsum: dim -1 of \"...\" has size 2 in operand 0 ([2, 3] f32, \"...i\") but 4 in operand 1 ([4, 3] f32, "
          "\"...i\")");
    CHECK(message<ShapeError>([&] {
            (void)einsum("ij,jk", {zeros({2, 1}), zeros({3, 2})});
          }) ==
          "einsum: letter j has size 1 in operand 0 ([2, 1] f32, \"ij\") but 3 in operand 1 ([3, 2] f32, \"jk\")");
    CHECK(message<ShapeError>([&] {
            (void)einsum("ii", {zeros({2, 3})});
          }).starts_with("einsum: letter i has size 2 in operand 0 ([2, 3] f32, \"ii\") but 3 in operand 0"));
  }

  TEST_CASE("whole numbers and bf16") {
    const Tensor i = arange(6), j = reshape(i, {2, 3});
    CHECK(einsum("ij,kj->ik", {j, j}).to_vector<double>() == std::vector<double>{5, 14, 14, 50});
    const Tensor long_row = ones({4096}, DType::bf16);
    CHECK(einsum("i,i->", {long_row, long_row}).item() == 4096);
  }

  TEST_CASE("errors name the letter or the operand") {
    const Tensor x = zeros({2, 3});
    CHECK(value_error("ij->ij->ij", {x}).starts_with("einsum: \"-\" in \"ij->ij\" is no letter"));
    CHECK(value_error("......", {x}).starts_with("einsum: \".\" in \"......\" is no letter"));
    CHECK(value_error("..ij", {x}).starts_with("einsum: \".\" in \"..ij\" is no letter"));
    CHECK(value_error("i\nj", {x}).starts_with("einsum: \"?\" in \"i?j\" is no letter"));
    CHECK(value_error("é", {x}).starts_with("einsum: \"?\" in \"??\" is no letter"));
    CHECK(value_error("ij,", {x}) == "einsum: the equation names 2 operands, 1 are given; separate them by commas");
    CHECK(value_error("ij->iz", {x}) ==
          "einsum: letter z of the result \"iz\" is in no operand; every letter comes from one");
    CHECK(value_error("i...->i", {x}) ==
          "einsum: the result \"i\" has no place for the 1 dims of \"...\"; write \"...i\"");
    CHECK(message<DTypeError>([&] {
            (void)einsum("ij,ij", {x, zeros({2, 3}, DType::f64)});
          }) ==
          "einsum: dtypes differ: operand 0 is [2, 3] f32, operand 1 is [2, 3] f64; convert with to(x, DType::f32)");
    CHECK(message<DTypeError>([&] {
            (void)einsum("ij", {zeros({2, 3}, DType::boolean)});
          }) == "einsum: bool has no product: operand 0 is [2, 3] bool; convert with to(x, DType::i64)");
    CHECK(message<AutogradError>([&] { (void)einsum("ij,ij", {x, Tensor{}}); }) == "einsum: operand 1 is undefined");
    CHECK(message<ShapeError>([&] {
            (void)einsum("ij", {zeros({2, 3, 4})});
          }) == "einsum: operand 0 is [2, 3, 4] f32, \"ij\" names 2 dims; one letter a dim, \"...\" for any number");
  }

  TEST_CASE("products that cannot be name themselves, not the matmul inside") {
    const Tensor v = ones({3}, DType::boolean), m = ones({3, 3}, DType::boolean), deep = ones({1, 1, 1, 1, 1});
    CHECK(message<DTypeError>([&] { (void)outer(v, v); }).starts_with("outer: bool has no product"));
    CHECK(message<DTypeError>([&] { (void)dot(v, v); }).starts_with("dot: bool has no product"));
    CHECK(message<DTypeError>([&] { (void)tensordot(m, m, {0}, {0}); }).starts_with("tensordot: bool has no product"));
    CHECK(message<DTypeError>([&] { (void)kron(m, m); }).starts_with("kron: bool has no product"));
    CHECK(message<DTypeError>([&] { (void)cross(v, v); }).starts_with("cross: bool has no product"));
    CHECK(message<ShapeError>([&] {
            (void)tensordot(deep, deep, {}, {});
          }).ends_with("the result has 10 dims, at most 8 are supported"));
  }

  TEST_CASE("cdist keeps its digits where rows lie close together, and has gradient 0 where they meet") {
    const Tensor a = tensor({{10000, 20000, 30000}}), b = tensor({{10000, 20000.0078125, 30000}});
    CHECK(cdist(a, b).item() == 0.0078125);
    CHECK(cdist(to(a, DType::bf16), to(a, DType::bf16)).item() == 0);
    const Tensor huge = tensor<double>({{3e200, 0}}), far = tensor<double>({{0, 4e200}});
    CHECK(cdist(huge, far).item() == doctest::Approx(5e200));
    for (const double p : {1.0, 2.0}) {
      const Tensor x = tensor<double>({{1, 2}, {4, 6}}).requires_grad_();
      const Tensor y = cdist(x, x, p);
      const Tensor g = grad({sum(y)}, {x}, {.create_graph = true})[0];
      const double far_x = p == 1 ? 1 : 0.6, far_y = p == 1 ? 1 : 0.8;
      CHECK(difference(g.detach(), tensor<double>({{-2 * far_x, -2 * far_y}, {2 * far_x, 2 * far_y}})) < 1e-15);
      if (g.requires_grad()) {
        const Tensor h = grad({sum(square(g))}, {x}, {.allow_unused = true})[0];
        if (h.defined()) CHECK(std::isfinite(sum(h).item()));
      }
    }
    const Tensor x = leaf({3, 4}, 1), z = leaf({2, 4}, 2);
    for (const double p : {1.0, 2.0})
      check_derivatives([p](const Tensor& u, const Tensor& v) { return cdist(u, v, p); }, {x, z});
  }

  TEST_CASE("cosine similarity: zero rows are similar to nothing, large ones do not overflow") {
    const Tensor x = tensor<double>({{0, 0}, {3e200, 4e200}}).requires_grad_(),
                 y = tensor<double>({{1, 2}, {3e200, 4e200}});
    const Tensor c = cosine_similarity(x, y);
    CHECK(difference(c.detach(), tensor<double>({0, 1})) < 1e-15);
    const Tensor g = grad({select(c, 0, 1)}, {x})[0];
    CHECK(max(abs(g)).item() < 1e-200);
    CHECK(max(cosine_similarity(ones({1, 4096}, DType::bf16), ones({1, 4096}, DType::bf16))).item() == 1);
  }
}
