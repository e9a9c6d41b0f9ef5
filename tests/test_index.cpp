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
        check_adjoint([&](const Tensor& t) { return scatter(zeros_like(in), dim, places, t); }, scattered(few));
        check_adjoint([&](const Tensor& t) { return scatter(t, dim, places, zeros_like(few)); }, in);
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

  TEST_CASE("of several that meet the last stays and takes the gradient") {
    const Tensor x = zeros({3}, DType::f64).requires_grad_(), src = tensor<double>({1, 2, 3, 4}).requires_grad_();
    const Tensor at = tensor<int64_t>({0, 2, 0, 0}), g = tensor<double>({10, 20, 30});
    for (const Tensor& y : {scatter(x, 0, at, src), index_put(x, {at}, src), index_put(x, {at - 3}, src)}) {
      CHECK(y.to_vector<double>() == Values{4, 0, 2});
      const auto gs = grad({y}, {x, src}, {.grad_outputs = {g}});
      CHECK(gs[0].to_vector<double>() == Values{0, 20, 0});
      CHECK(gs[1].to_vector<double>() == Values{0, 30, 0, 10});
    }
    // One value for all places: only the winners count, once a place.
    const Tensor v = scalar(7, DType::f64).requires_grad_();
    CHECK(grad({index_put(x, {at}, v)}, {v}, {.grad_outputs = {g}})[0].item() == 40);
    CHECK(grad({index_put(x, {at}, v, true)}, {v}, {.grad_outputs = {g}})[0].item() == 60);
  }

  TEST_CASE("the padding row of an embedding is read, but gets no gradient in any order") {
    const Tensor table = whole_numbers({4, 2}, 5).requires_grad_(), ids = tensor<int64_t>({1, 2, 1, 3});
    const Tensor y = embedding(table, ids, 1);
    CHECK(y.to_vector<double>() == embedding(table, ids).to_vector<double>());
    const Tensor first = grad({sum(y * y * y)}, {table}, {.create_graph = true})[0];
    const auto values = table.to_vector<double>(), g = first.to_vector<double>();
    const auto second = grad({sum(first)}, {table})[0].to_vector<double>();
    for (size_t i = 0; i < 8; ++i) {
      const bool read = i >= 4;  // rows 2 and 3, once each
      CHECK(g[i] == (read ? 3 * values[i] * values[i] : 0));
      CHECK(second[i] == (read ? 6 * values[i] : 0));
    }
    // Whatever arrives there, it is not multiplied by 0.
    CHECK(grad({embedding(table, ids, 1)}, {table}, {.grad_outputs = {full({4, 2}, INFINITY, DType::f64)}})[0]
              .to_vector<double>()[2] == 0);
    CHECK_THROWS_WITH_AS(embedding(table, ids, 4), "embedding: padding_idx 4 is out of range for a table of 4 rows",
                         IndexError);
  }

  TEST_CASE("index() puts the dims of its tensors where NumPy does") {
    const Tensor x = whole_numbers({2, 3, 4, 5}, 5), i = zeros({6, 7}, DType::i64), j = zeros({7}, DType::i64);
    const Index all;
    CHECK(index(x, {}).is_same(x));
    CHECK(index(x, {i}).shape() == Shape{6, 7, 3, 4, 5});
    CHECK(index(x, {all, i, j}).shape() == Shape{2, 6, 7, 5});
    CHECK(index(x, {all, i, all, j}).shape() == Shape{6, 7, 2, 4});
    CHECK(index(x, {all, all, i, j}).shape() == Shape{2, 3, 6, 7});
    CHECK(index(x, {all, 0, i}).shape() == Shape{2, 6, 7, 5});
    CHECK(index(x, {0, all, i}).shape() == Shape{6, 7, 3, 5});  // a number parts as a tensor does
    CHECK(index(x, {all, i, range(1, 3), 0}).shape() == Shape{6, 7, 2, 2});
    CHECK(index(x, {all, range({}, {}, -1), j}).shape() == Shape{2, 3, 7, 5});
    CHECK(index(x, {all, zeros({3, 4}, DType::boolean)}).shape() == Shape{2, 0, 5});
    CHECK(index(x, {ones({2}, DType::boolean), all, tensor<int64_t>({1, 3})}).to_vector<double>() ==
          stack({select(select(x, 2, 1), 0, 0), select(select(x, 2, 3), 0, 1)}).to_vector<double>());
    CHECK(index(x, {1, range({}, 2), -1}).shares_storage(x));
    CHECK_THROWS_AS(index(x, {ones({2, 2}, DType::boolean)}), ShapeError);
    CHECK_THROWS_AS(index(x, {scalar(1, DType::boolean)}), ShapeError);
    CHECK_THROWS_AS(index(x, {Index(Tensor{})}), DTypeError);
  }

  TEST_CASE("index_put writes where index reads, in every form and dtype") {
    const Tensor i = tensor<int64_t>({{1}, {0}}), j = tensor<int64_t>({2, 0, 3});
    const Index all;
    const std::vector<std::vector<Index>> forms = {
        {i, j},
        {all, i, j},
        {i, all, j},
        {0, all, j},
        {range({}, {}, -1), all, -2},
        {1},
        {all},
        {},
        {tensor<bool>({{0, 1, 1, 0}, {1, 1, 1, 0}, {0, 0, 0, 1}}), range(1, 3)}};
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i64, DType::boolean})
      for (const auto& form : forms) {
        const Tensor x = to(whole_numbers({3, 4, 4}, 5), dtype);
        const Shape shape = index(x, form).shape();
        const Tensor values = to(whole_numbers(shape, 9) > 0.0, dtype), y = index_put(x, form, values);
        CHECK(index(y, form).to_vector<double>() == values.to_vector<double>());
        const Tensor touched = index_put(zeros({3, 4, 4}, DType::boolean), form, scalar(1, DType::boolean));
        CHECK(where(touched, 0.0, to(y, DType::f64)).to_vector<double>() ==
              where(touched, 0.0, to(x, DType::f64)).to_vector<double>());
        CHECK(sum(touched).item<int64_t>() == numel(shape));  // none of them names a place twice
        if (dtype == DType::boolean) continue;
        CHECK(index_put(x, form, values, true).to_vector<double>() ==
              index_put(x, form, index(x, form) + values).to_vector<double>());
      }
  }

  TEST_CASE("segments: empty ones, ties and NaN") {
    const Tensor x = tensor<double>({1, 5, 5, 2, NAN, 3}).requires_grad_(), at = tensor<int64_t>({3, 0, 0, 0, 4, 4});
    const Tensor y = segment_max(x, at, 5);
    const auto values = y.to_vector<double>();
    CHECK(values[0] == 5);
    CHECK(values[1] == -INFINITY);
    CHECK(std::isnan(values[4]));
    y.backward(tensor<double>({6, 100, 100, 7, 8}));
    CHECK(x.grad().to_vector<double>() == Values{7, 3, 3, 0, 8, 0});
    CHECK(segment_mean(tensor({1, 2}), tensor<int64_t>({2, 2}), 3).to_vector<double>() == Values{0, 0, 1.5});
    CHECK(segment_mean(ones({4096}, DType::bf16), zeros({4096}, DType::i64), 1).item() == 1);
    CHECK(segment_sum(tensor<int64_t>({1, 2}), tensor<int64_t>({1, 1}), 2).to_vector<int64_t>() ==
          std::vector<int64_t>{0, 3});
  }

  TEST_CASE("masks over pieces of the counting loop") {
    manual_seed(3);
    const Tensor x = rand({200000}), mask = x < 0.3F, places = nonzero(mask);
    CHECK(places.shape() == Shape{sum(mask).item<int64_t>(), 1});
    CHECK(masked_select(x, mask).to_vector() == index_select(x, 0, flatten(places)).to_vector());
    CHECK(masked_scatter(zeros({200000}), mask, masked_select(x, mask)).to_vector() == where(mask, x, 0.0).to_vector());
    CHECK(nonzero(scalar(3)).shape() == Shape{1, 0});
    CHECK(nonzero(tensor({0, -0.0, NAN, INFINITY})).to_vector<double>() == Values{2, 3});
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
    CHECK_THROWS_WITH_AS(masked_fill(x, zeros({2}, DType::boolean), 0),
                         "masked_fill: cannot broadcast [2] with [2, 3] (dim -1: 2 vs 3)", ShapeError);
    CHECK_THROWS_WITH_AS(one_hot(two, 1), "one_hot: index 1 at [1] is out of range for 1 classes", IndexError);
    CHECK_THROWS_AS(one_hot(two, -1), ValueError);
    const Tensor deep = zeros({1, 1, 1, 1, 1, 1, 1, 1}, DType::i64);
    CHECK_THROWS_WITH_AS(embedding(x, deep), "embedding: the result would have 9 dims, at most 8 are supported",
                         ShapeError);
    CHECK_THROWS_WITH_AS(one_hot(deep, 2), "one_hot: the result would have 9 dims, at most 8 are supported",
                         ShapeError);
    CHECK_THROWS_WITH_AS(index(x, {deep}), "index: the result would have 9 dims, at most 8 are supported", ShapeError);
    CHECK(index(zeros({2}), {deep}).dim() == 8);
  }
}
