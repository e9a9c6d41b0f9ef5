// Indexing by tensors: adjoints, repeated targets in a fixed order, what is added in which precision, and the words of the errors.
// Not the values over every dtype and layout: those are rows of the op table.
// Next: adjoint.h.
#include <doctest/doctest.h>

#include "../autograd/parallel.h"
#include "../ops/ops.h"
#include "adjoint.h"

using namespace tapestry;
using testing::check_adjoint, testing::scattered, testing::whole_numbers;
using Values = std::vector<double>;

namespace {

Tensor indices(const Shape& shape, int64_t n) {
  std::vector<int64_t> values(static_cast<size_t>(numel(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i * i * 7 + i) % n;
  return from(values, shape);
}

}  // namespace

TEST_SUITE("index") {
  TEST_CASE("the backward of each is its adjoint, for every order") {
    const Tensor x = whole_numbers({3, 4, 5}, 5), table = whole_numbers({6, 5}, 5);
    for (const Tensor& in : {x, scattered(x)})
      for (int64_t dim = -3; dim < 3; ++dim) {
        CAPTURE(dim);
        const int64_t n = x.size(dim);
        Shape small{2, 3, 4}, several = x.shape();
        small[static_cast<int>((dim + 3) % 3)] = 7;
        several[static_cast<int>((dim + 3) % 3)] = 7;
        const Tensor at = indices({7}, n), many = whole_numbers(several, 3), places = indices(small, n),
                     few = whole_numbers(small, 3);
        check_adjoint([&](const Tensor& t) { return gather(t, dim, places); }, in);
        check_adjoint([&](const Tensor& t) { return index_select(t, dim, sub(at, n)); }, in);
        check_adjoint(
            [&](const Tensor& t) { return sub(index_add(t, dim, at, many), index_add(zeros_like(in), dim, at, many)); },
            in);
        check_adjoint([&](const Tensor& t) { return index_add(zeros_like(in), dim, at, t); }, scattered(many));
        check_adjoint([&](const Tensor& t) { return scatter_add(zeros_like(in), dim, places, t); }, scattered(few));
      }
    check_adjoint([&](const Tensor& t) { return embedding(t, indices({2, 3}, 6)); }, scattered(table));
  }

  TEST_CASE("values against loops") {
    const Tensor x = whole_numbers({4, 3}, 5), index = indices({2, 3}, 4);
    const auto at = [](const Tensor& t, int64_t i, int64_t j) { return select(select(t, 0, i), 0, j).item(); };
    const auto id = [](const Tensor& t, int64_t i, int64_t j) { return select(select(t, 0, i), 0, j).item<int64_t>(); };
    const Tensor picked = gather(x, 0, index), rows = embedding(x, index), hot = one_hot(index, 4);
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 3; ++j) {
        CHECK(at(picked, i, j) == at(x, id(index, i, j), j));
        CHECK(select(select(rows, 0, i), 0, j).to_vector<double>() ==
              select(x, 0, id(index, i, j)).to_vector<double>());
        for (int64_t k = 0; k < 4; ++k) CHECK(at(select(hot, 2, k), i, j) == (k == id(index, i, j)));
      }
    CHECK(embedding(x, tensor<int64_t>({-0})).shape() == Shape{1, 3});
    CHECK(embedding(x, zeros({0, 2}, DType::i64)).shape() == Shape{0, 2, 3});
    CHECK(index_select(x, 1, zeros({0}, DType::i64)).shape() == Shape{4, 0});
    CHECK(one_hot(tensor<int64_t>({1}), 2, DType::boolean).to_vector<bool>() == std::vector<bool>{false, true});
  }

  TEST_CASE("repeated targets add up") {
    CHECK(index_add(zeros({3}), 0, tensor<int64_t>({0, 0}), ones({2})).to_vector<double>() == Values{2, 0, 0});
    const Tensor x = zeros({3}, DType::f64), y = index_select(x.requires_grad_(), 0, tensor<int64_t>({0, 0, 2}));
    y.backward(tensor<double>({10, 100, 1000}));
    CHECK(x.grad().to_vector<double>() == Values{110, 0, 1000});
    const Tensor base = zeros({3}, DType::f64), v = zeros({}, DType::f64);
    index_add(base.requires_grad_(), 0, tensor<int64_t>({0, 0}), expand(v.requires_grad_(), {2}))
        .backward(tensor<double>({5, 7, 9}));
    CHECK(base.grad().to_vector<double>() == Values{5, 7, 9});
    CHECK(v.grad().item() == 10);
    // In bf16 a running sum would stand still at 256.
    const Tensor ones_bf16 = ones({4096}, DType::bf16), place = zeros({4096}, DType::i64);
    CHECK(index_add(zeros({1}, DType::bf16), 0, place, ones_bf16).item() == 4096);
    CHECK(scatter_add(zeros({1}, DType::bf16), 0, place, ones_bf16).item() == 4096);
  }

  TEST_CASE("sums do not depend on the thread count or the run") {
    const int threads = num_threads();
    const Tensor at = randint(0, 100, {10000}), src = rand({10000}), rows = rand({10000, 70});
    const auto sums = [&] {
      auto a = index_add(zeros({100}), 0, at, src).to_vector(),
           b = index_add(zeros({100, 70}), 0, at, rows).to_vector();
      const auto c = scatter_add(zeros({100, 70}), 0, expand(unsqueeze(at, 1), {10000, 70}), rows).to_vector();
      CHECK(b == c);
      a.insert(a.end(), b.begin(), b.end());
      return a;
    };
    const auto expected = sums();
    for (const int n : {1, 2, 4}) {
      set_num_threads(n);
      for (int run = 0; run < 5; ++run) CHECK(sums() == expected);
    }
    set_num_threads(threads);
  }

  TEST_CASE("an embedding's gradient goes straight into an existing .grad") {
    const Tensor table = whole_numbers({5, 3}, 5), ids = indices({2, 4}, 5), g = whole_numbers({2, 4, 3}, 7);
    table.requires_grad_();
    embedding(table, ids).backward(g);
    const Tensor first = table.grad();
    const Values once = first.to_vector<double>();
    embedding(table, ids).backward(transpose(contiguous(transpose(g, 0, 2)), 0, 2));
    CHECK(table.grad().is_same(first));
    const Values twice = table.grad().to_vector<double>();
    for (size_t i = 0; i < once.size(); ++i) CHECK(twice[i] == 2 * once[i]);
  }

  TEST_CASE("a write to the indices between forward and backward is noticed") {
    const Tensor table = zeros({4, 2}).requires_grad_(), ids = tensor<int64_t>({1, 2}), y = embedding(table, ids);
    ids.fill_(3);
    CHECK_THROWS_AS(y.backward(ones({2, 2})), AutogradError);
  }

  TEST_CASE("errors") {
    const Tensor x = zeros({2, 3}), ids = tensor<int64_t>({{0, 1}, {2, 5}}), two = tensor<int64_t>({0, 1});
    CHECK_THROWS_WITH_AS(embedding(zeros({5, 2}), ids),
                         "embedding: index 5 at [1, 1] is out of range for a table of 5 rows", IndexError);
    CHECK_THROWS_WITH_AS(embedding(x, tensor<int64_t>({-1})),
                         "embedding: index -1 at [0] is out of range for a table of 2 rows", IndexError);
    CHECK_THROWS_WITH_AS(embedding(zeros({5}), ids), "embedding: the table is [5] f32; it must be (rows, width)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(embedding(x, zeros({2})),
                         "embedding: indices must be i64, got [2] f32; convert with to(x, DType::i64)", DTypeError);
    CHECK_THROWS_WITH_AS(gather(x, 1, ids), "gather: index 5 at [1, 1] is out of range for dim 1 of [2, 3] f32",
                         IndexError);
    CHECK_THROWS_WITH_AS(
        gather(x, 1, two),
        "gather: index [2] i64 does not fit x [2, 3] f32; it needs x's rank and no size larger than x's outside dim 1",
        ShapeError);
    CHECK_THROWS_AS(gather(x, 1, zeros({3, 1}, DType::i64)), ShapeError);
    CHECK_THROWS_WITH_AS(scatter_add(x, 1, ids, zeros({2, 3})),
                         "scatter_add: index is [2, 2] i64, src is [2, 3] f32; they must have one shape", ShapeError);
    CHECK_THROWS_AS(scatter_add(x, 0, ids, zeros({2, 2}, DType::f64)), DTypeError);
    CHECK_THROWS_WITH_AS(index_select(x, 0, ids), "index_select: index is [2, 2] i64; it must have rank 1", ShapeError);
    CHECK_THROWS_WITH_AS(index_select(x, 0, tensor<int64_t>({-3})),
                         "index_select: index -3 at [0] is out of range for dim 0 of [2, 3] f32", IndexError);
    CHECK_THROWS_WITH_AS(
        index_add(x, 0, two, zeros({3, 3})),
        "index_add: src is [3, 3] f32, with x [2, 3] f32 and index [2] i64 along dim 0 it must be [2, 3]", ShapeError);
    CHECK_THROWS_AS(index_add(zeros({2}, DType::boolean), 0, two, zeros({2}, DType::boolean)), DTypeError);
    CHECK_THROWS_WITH_AS(one_hot(two, 1), "one_hot: index 1 at [1] is out of range for 1 classes", IndexError);
    CHECK_THROWS_AS(one_hot(two, -1), ValueError);
  }
}
