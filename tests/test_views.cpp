// Views, parts, joins and copies: what shares memory with what, Python's slices, adjoints, and the words of the errors.
// Not the values of every op over every dtype and layout: those are rows of the op table.
// Next: test_reduce.cpp.
#include <doctest/doctest.h>

#include "../ops/ops.h"
#include "adjoint.h"

using namespace tapestry;
using testing::check_adjoint, testing::scattered, testing::whole_numbers;
using Values = std::vector<double>;

namespace {

struct Row {
  const char* name;
  Tensor (*f)(const Tensor&);
};

// All take (3, 4, 2).
const Row views[] = {
    {"reshape",
     [](const Tensor& x) {
       return reshape(x, {4, -1});
     }},
    {"view",
     [](const Tensor& x) {
       return view(x, {2, 12});
     }},
    {"flatten", [](const Tensor& x) { return flatten(x, 1); }},
    {"transpose", [](const Tensor& x) { return transpose(x, 0, -1); }},
    {"permute",
     [](const Tensor& x) {
       return permute(x, {2, 0, 1});
     }},
    {"mT", [](const Tensor& x) { return mT(x); }},
    {"unsqueeze", [](const Tensor& x) { return unsqueeze(x, -1); }},
    {"squeeze", [](const Tensor& x) { return squeeze(unsqueeze(x, 1), 1); }},
    {"squeeze all", [](const Tensor& x) { return squeeze(unsqueeze(unsqueeze(x, 0), 2)); }},
    {"expand",
     [](const Tensor& x) {
       return expand(unsqueeze(x, 1), {2, -1, 5, 4, 2});
     }},
    {"slice", [](const Tensor& x) { return slice(x, 1, 1, {}, 2); }},
    {"slice backwards", [](const Tensor& x) { return slice(x, 0, {}, {}, -2); }},
    {"select", [](const Tensor& x) { return select(x, -2, -1); }},
    {"split",
     [](const Tensor& x) {
       return split(x, {1, 0, 3}, 1)[2];
     }},
    {"chunk", [](const Tensor& x) { return chunk(x, 2, 0)[1]; }},
    {"unbind", [](const Tensor& x) { return unbind(x, 1)[2]; }},
    {"pad that cuts", [](const Tensor& x) { return pad(x, 1, -1, -2); }},
    {"flip",
     [](const Tensor& x) {
       return flip(x, {0, -1});
     }},
    {"movedim", [](const Tensor& x) { return movedim(x, 0, -1); }},
    {"diagonal", [](const Tensor& x) { return diagonal(x, 1, 0, 1); }},
    {"unfold", [](const Tensor& x) { return unfold(x, 1, 3, 1); }},
    {"meshgrid",
     [](const Tensor& x) {
       const Tensor line = select(select(x, 2, 1), 0, 1);
       return meshgrid(std::array{line, line})[1];
     }},
    {"as_strided",
     [](const Tensor& x) {
       return as_strided(contiguous(x), {3, 2, 4}, {5, 1, 2}, 3);
     }},
    {"index by numbers and ranges",
     [](const Tensor& x) {
       return index(x, {-1, range(2, 0, -1)});
     }},
};

const Row copies[] = {
    {"clone", [](const Tensor& x) { return clone(x); }},
    {"contiguous", [](const Tensor& x) { return contiguous(transpose(x, 0, 1)); }},
    {"reshape of a transpose",
     [](const Tensor& x) {
       return reshape(transpose(x, 0, 1), {3, 8});
     }},
    {"pad", [](const Tensor& x) { return pad(x, 1, 2, 1); }},
    {"pad and cut", [](const Tensor& x) { return pad(x, 0, -1, 2); }},
    {"tril", [](const Tensor& x) { return tril(x, -1); }},
    {"triu", [](const Tensor& x) { return triu(x, 1); }},
    {"cat",
     [](const Tensor& x) {
       return cat({x, slice(x, 1, 0, 0), slice(x, 1, 2, 3), x}, 1);
     }},
    {"stack",
     [](const Tensor& x) {
       return stack({x, x}, -1);
     }},
    {"roll",
     [](const Tensor& x) {
       return roll(x, {1, -3}, {0, 1});
     }},
    {"diag_embed", [](const Tensor& x) { return diag_embed(x, -1); }},
    {"repeat",
     [](const Tensor& x) {
       return repeat(x, {2, 1, 3, 2});
     }},
    {"repeat_interleave", [](const Tensor& x) { return repeat_interleave(x, 3, 1); }},
    {"fold", [](const Tensor& x) { return fold(x, 1, 8, 2); }},
    {"all pieces",
     [](const Tensor& x) {
       auto p = split(x, 2, 1);
       return cat({p[1], p[0]}, 0);
     }},
};

Values sliced(std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step) {
  return slice(arange(7), 0, start, stop, step).to_vector<double>();
}

}  // namespace

TEST_SUITE("views") {
  TEST_CASE("views share storage and its version, copies do not") {
    for (const Row& row : views) {
      CAPTURE(row.name);
      const Tensor x = whole_numbers({3, 4, 2}, 5), y = row.f(x);
      CHECK(y.shares_storage(x));
      const uint32_t before = x.version();
      y.fill_(100);
      CHECK(x.version() == before + 1);
      CHECK(y.version() == before + 1);
      double written = 0;
      for (const double value : x.to_vector<double>()) written += value == 100;
      CHECK(written > 0);
    }
    for (const Row& row : copies) {
      CAPTURE(row.name);
      const Tensor x = whole_numbers({3, 4, 2}, 5), y = row.f(x);
      CHECK_FALSE(y.shares_storage(x));
      CHECK(y.is_contiguous());
    }
  }

  TEST_CASE("the backward of each is its adjoint, in any layout and for every order") {
    for (const auto rows : {std::span<const Row>(views), std::span<const Row>(copies)})
      for (const Row& row : rows) {
        CAPTURE(row.name);
        const Tensor x = whole_numbers({3, 4, 2}, 5);
        check_adjoint(row.f, x);
        if (std::string_view(row.name) != "view") check_adjoint(row.f, scattered(x));
      }
  }

  TEST_CASE("slices follow Python") {
    CHECK(sliced({}, {}, 1) == Values{0, 1, 2, 3, 4, 5, 6});
    CHECK(sliced(2, 5, 1) == Values{2, 3, 4});
    CHECK(sliced(-3, {}, 1) == Values{4, 5, 6});
    CHECK(sliced({}, -5, 1) == Values{0, 1});
    CHECK(sliced(1, 100, 3) == Values{1, 4});
    CHECK(sliced(-100, 2, 1) == Values{0, 1});
    CHECK(sliced({}, {}, -1) == Values{6, 5, 4, 3, 2, 1, 0});
    CHECK(sliced(5, 1, -2) == Values{5, 3});
    CHECK(sliced(100, -100, -3) == Values{6, 3, 0});
    CHECK(sliced(-100, {}, -1) == Values{});
    CHECK(sliced(4, 2, 1) == Values{});
    CHECK(sliced(2, 2, -1) == Values{});
    CHECK(sliced(3, {}, INT64_MAX) == Values{3});
    CHECK(sliced(3, {}, INT64_MIN) == Values{3});
    CHECK(slice(whole_numbers({2, 3}, 5), 1, {}, {}, -1).strides() == Strides{3, -1});
  }

  TEST_CASE("a view is made wherever the strides allow one") {
    const Tensor x = arange(24, DType::f64), y = reshape(x, {2, 3, 4});
    CHECK(reshape(transpose(y, 0, 1), {3, 2, 2, 2}).shares_storage(x));
    CHECK(reshape(slice(y, 2, 0, 2), {6, 2}).shares_storage(x));
    CHECK(reshape(slice(y, 0, {}, {}, -1), {2, 12}).shares_storage(x));
    const Tensor flat = reshape(slice(y, 0, {}, {}, -1), {24});
    CHECK_FALSE(flat.shares_storage(x));
    CHECK(flat.to_vector<double>()[0] == 12);
    CHECK(reshape(transpose(y, 0, 2), {4, 6}).to_vector<double>() == transpose(y, 0, 2).to_vector<double>());
    CHECK(reshape(expand(scalar(2), {3, 4}), {2, 6}).to_vector<double>() == Values(12, 2));
    CHECK(reshape(zeros({0, 4}), {2, 0, 7}).shape() == Shape{2, 0, 7});
    CHECK(reshape(x, {24}).is_same(x));
    CHECK(contiguous(x).is_same(x));
  }

  TEST_CASE("pieces and joins of odd sizes") {
    const Tensor x = arange(7);
    const auto sizes = [](const Tensors& pieces) {
      Values list;
      for (const Tensor& piece : pieces) list.push_back(static_cast<double>(piece.size(0)));
      return list;
    };
    CHECK(sizes(split(x, 3)) == Values{3, 3, 1});
    CHECK(sizes(split(x, 10)) == Values{7});
    CHECK(sizes(split(zeros({0}), 3)) == Values{0});
    CHECK(sizes(chunk(x, 3)) == Values{3, 3, 1});
    CHECK(sizes(chunk(x, 5)) == Values{2, 2, 2, 1});
    CHECK(unbind(zeros({2, 0}), 1).empty());
    CHECK(cat({x, x, zeros({0}, DType::i64)}).to_vector<double>().size() == 14);
    CHECK(pad(tensor({1, 2}), 0, 1, 2, -1).to_vector<double>() == Values{-1, 1, 2, -1, -1});
    CHECK(pad(tensor({1, 2, 3}), 0, -2, 1).to_vector<double>() == Values{3, 0});
    CHECK(tril(ones({2, 3}), -INT64_MAX).to_vector<double>() == Values(6, 0));
    CHECK(triu(ones({2, 3}), INT64_MIN).to_vector<double>() == Values(6, 1));
    CHECK(tril(full({2, 2}, NAN)).to_vector<double>()[1] == 0);
  }

  TEST_CASE("a piece nobody used costs no gradient, and an input nobody needs gets none") {
    const Tensor x = whole_numbers({6}, 5), other = whole_numbers({2}, 5);
    x.requires_grad_();
    const Tensors pieces = split(x, 2);
    cat({pieces[1], other}).backward(tensor<double>({1, 2, 3, 4}));
    CHECK(x.grad().to_vector<double>() == Values{0, 0, 1, 2, 0, 0});
    CHECK_FALSE(other.grad().defined());
  }

  TEST_CASE("integers and booleans are moved as well, without a node") {
    const Tensor mask = tril(ones({3, 3}, DType::boolean));
    CHECK(mask.to_vector<double>() == Values{1, 0, 0, 1, 1, 0, 1, 1, 1});
    CHECK_FALSE(transpose(cat({mask, mask}), 0, 1).requires_grad());
    CHECK(roll(flip(mask, {0}), {1}, {1}).to_vector<double>() == Values{1, 1, 1, 0, 1, 1, 0, 1, 0});
    CHECK(diag_embed(diagonal(mask, -1)).to_vector<double>() == Values{1, 0, 0, 1});
    CHECK(repeat(unfold(mask, 1, 2, 1), {1, 1, 1}).to_vector<double>() == Values{1, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1});
    CHECK(fold(unfold(arange(5), 0, 3, 1), 0, 5, 1).to_vector<int64_t>() == std::vector<int64_t>{0, 2, 6, 6, 4});
    CHECK_THROWS_AS(fold(unfold(mask, 0, 2, 1), 0, 3, 1), DTypeError);
  }

  TEST_CASE("a write through a view or from one reaches every element once") {
    const Tensor x = arange(6, DType::f64), y = x.detach();
    flip(x, {0}).copy_(x);  // source and target lie on one another
    CHECK(x.to_vector<double>() == Values{5, 4, 3, 2, 1, 0});
    diagonal(reshape(x, {2, 3})).copy_(scalar(9));
    CHECK(x.to_vector<double>() == Values{9, 4, 3, 2, 9, 0});
    as_strided(x, {2}, {-2}, 3).copy_(tensor({7, 8}));
    CHECK(x.to_vector<double>() == Values{9, 8, 3, 7, 9, 0});
    select(unfold(x, 0, 2, 2), 1, 1).fill_(1);
    CHECK(y.to_vector<double>() == Values{9, 1, 3, 1, 9, 1});
    CHECK(y.version() == 4);

    const Tensor leaf = whole_numbers({3, 4, 2}, 5).requires_grad_();
    for (const Row& row : views) {
      CAPTURE(row.name);
      const Tensor z = leaf * leaf;
      row.f(leaf.detach()).copy_(scalar(1, DType::f64));
      CHECK_THROWS_AS(z.backward(ones({3, 4, 2}, DType::f64)), AutogradError);
    }
  }

  TEST_CASE("as_strided gives each storage position's gradient to the elements that lie there") {
    const auto gradient = [](const Tensor& base, const std::function<Tensor(const Tensor&)>& f) {
      const Tensor leaf = base.detach().requires_grad_();
      const Tensor y = f(leaf);
      return grad({y}, {leaf}, {.grad_outputs = {whole_numbers(y.shape(), 7)}})[0].to_vector<double>();
    };
    const auto overlapping = [](const Tensor& x) { return as_strided(x, {2, 3}, {1, 1}); };
    // Windows of 3 on 4 elements; g is {-8, -1, 6}, {-10, -3, 4}.
    const Values direct = gradient(arange(4, DType::f64), overlapping);
    CHECK(direct == Values{-8, -11, 3, 4});
    // Of an expanded base the elements on one position share what arrives there: their sum is what it was.
    const auto rows = [&](const Tensor& x) { return overlapping(expand(x, {5, 4})); };
    CHECK(gradient(arange(4, DType::f64), rows) == direct);
    const Tensor wide = expand(arange(4, DType::f64), {2, 4});
    CHECK(gradient(wide, overlapping) == Values{-4, -5.5, 1.5, 2, -4, -5.5, 1.5, 2});
    // Strides and offset count in the storage, from x's first element, whatever way x runs through it.
    const Tensor square = reshape(arange(16, DType::f64), {4, 4});
    for (const Tensor& x : {square, transpose(square, 0, 1), flip(square, {0})}) {
      const auto positions = as_strided(x, {2, 3}, {1, -1}, 2 + (x.offset() > 0 ? -6 : 0)).to_vector<double>();
      Values expected(16), g = whole_numbers({2, 3}, 7).to_vector<double>(), elements = x.to_vector<double>();
      for (size_t j = 0; j < 6; ++j)
        for (size_t i = 0; i < 16; ++i) expected[i] += elements[i] == positions[j] ? g[j] : 0;
      CHECK(gradient(x, [](const Tensor& t) {
              return as_strided(t, {2, 3}, {1, -1}, 2 + (t.offset() > 0 ? -6 : 0));
            }) == expected);
    }
    // Reading beyond x is a view like any other while no gradient is wanted.
    const Tensor part = slice(square, 1, 1, 2);
    CHECK(as_strided(part, {2}, {1}).to_vector<double>() == Values{1, 2});
    part.requires_grad_();
    CHECK_THROWS_AS(as_strided(part, {2}, {1}), ShapeError);
    CHECK(as_strided(part, {2}, {4}, 4).to_vector<double>() == Values{5, 9});
  }

  TEST_CASE("tensors of the highest rank are repeated, too") {
    const Tensor x = whole_numbers({2, 1, 1, 1, 1, 1, 1, 3}, 5);
    CHECK(repeat(x, {1, 1, 1, 1, 1, 1, 1, 2}).shape() == Shape{2, 1, 1, 1, 1, 1, 1, 6});
    CHECK(repeat_interleave(x, 2, 0).to_vector<double>() ==
          index_select(x, 0, tensor<int64_t>({0, 0, 1, 1})).to_vector<double>());
    CHECK_THROWS_AS(unfold(x, 0, 1, 1), ShapeError);
    CHECK_THROWS_AS(diag_embed(x), ShapeError);
  }

  TEST_CASE("errors") {
    const Tensor x = zeros({2, 3});
    CHECK_THROWS_WITH_AS(reshape(x, {4}),
                         "reshape: [2, 3] f32 has 6 elements, [4] has 4; give a shape of as many elements", ShapeError);
    CHECK_THROWS_WITH_AS(reshape(x, {-1, -1}),
                         "reshape: more than one -1 in [-1, -1]; at most one size can be inferred", ShapeError);
    CHECK_THROWS_WITH_AS(reshape(x, {-1, 4}),
                         "reshape: cannot infer the -1 in [-1, 4]: [2, 3] f32 has 6 elements, the other sizes have "
                         "product 4; give sizes that divide",
                         ShapeError);
    CHECK_THROWS_AS(reshape(zeros({0}), {-1, 0}), ShapeError);
    CHECK_THROWS_WITH_AS(reshape(x, {-2, 3}), "reshape: negative size in [-2, 3]; only -1 has a meaning", ShapeError);
    CHECK_THROWS_WITH_AS(view(mT(x), {6}),
                         "view: [3, 2] f32 with strides [1, 3] cannot be seen as [6] without a copy; use reshape",
                         ShapeError);
    CHECK_THROWS_WITH_AS(flatten(x, 1, 0), "flatten: the first dim 1 comes after the last 0 in [2, 3] f32; swap them",
                         ShapeError);
    CHECK_THROWS_AS(transpose(x, 0, 2), IndexError);
    CHECK_THROWS_WITH_AS(mT(zeros({3})), "mT: [3] f32 has rank 1; it needs two dims to swap", ShapeError);
    CHECK_THROWS_WITH_AS(permute(x, {0}), "permute: 1 dims [0] for [2, 3] f32; name each of its 2 dims once",
                         ShapeError);
    CHECK_THROWS_WITH_AS(permute(x, {1, -1}),
                         "permute: dim 1 is named twice in [1, -1] for [2, 3] f32; name each dim once", ShapeError);
    CHECK_THROWS_WITH_AS(expand(x, {4, 3}), "expand: cannot expand [2, 3] to [4, 3] (dim -2: 2 vs 4)", ShapeError);
    CHECK_THROWS_WITH_AS(
        expand(x, {-1, 2, 3}),
        "expand: cannot expand [2, 3] f32 to [-1, 2, 3] (dim -3: -1); -1 keeps the size of a dim that x has",
        ShapeError);
    CHECK_THROWS_AS(expand(x, {3}), ShapeError);
    CHECK_THROWS_WITH_AS(slice(x, 0, 0, 1, 0),
                         "slice: step 0 along dim 0 of [2, 3] f32; use a positive or negative step", ValueError);
    CHECK_THROWS_WITH_AS(select(x, 1, 3), "select: index 3 is out of range for dim 1 of [2, 3] f32; use -3 to 2",
                         IndexError);
    CHECK_THROWS_WITH_AS(split(x, 0), "split: pieces of size 0 along dim 0 of [2, 3] f32; the size must be positive",
                         ValueError);
    CHECK_THROWS_WITH_AS(split(x, {1, 1}, 1),
                         "split: sizes [1, 1] sum to 2, dim 1 of [2, 3] f32 has 3; they must agree", ShapeError);
    CHECK_THROWS_AS(split(x, {4, -1}, 1), ValueError);
    CHECK_THROWS_WITH_AS(chunk(x, 0), "chunk: 0 chunks of [2, 3] f32; ask for at least one", ValueError);
    CHECK_THROWS_WITH_AS(cat({}), "cat: no tensors; pass at least one", ShapeError);
    CHECK_THROWS_WITH_AS(cat({scalar(1)}), "cat: [] f32 has no dims to join along; use stack", ShapeError);
    CHECK_THROWS_WITH_AS(
        cat({x, zeros({2, 2})}),
        "cat: shapes differ outside dim 0: input 0 is [2, 3] f32, input 1 is [2, 2] f32; only dim 0 may differ",
        ShapeError);
    CHECK_THROWS_WITH_AS(
        cat({x, zeros({2, 3}, DType::f64)}),
        "cat: dtypes differ: input 0 is [2, 3] f32, input 1 is [2, 3] f64; convert with to(x, DType::f32)", DTypeError);
    CHECK_THROWS_WITH_AS(stack({x, zeros({2})}),
                         "stack: shapes differ: input 0 is [2, 3] f32, input 1 is [2] f32; all must be equal",
                         ShapeError);
    CHECK_THROWS_WITH_AS(stack({ones({1, 1, 1, 1, 1, 1, 1, 1})}),
                         "stack: [1, 1, 1, 1, 1, 1, 1, 1] f32 already has 8 dims, the most there can be; use cat",
                         ShapeError);
    CHECK_THROWS_AS(pad(arange(2), 0, 1, 1, 0.5), DTypeError);  // as masked_fill and where
    CHECK_THROWS_WITH_AS(pad(x, 1, -2, -2),
                         "pad: before = -2 and after = -2 cut more than dim 1 of [2, 3] f32 has; cut at most 3",
                         ShapeError);
    CHECK_THROWS_WITH_AS(tril(zeros({3})), "tril: [3] f32 has rank 1; it needs the two dims of a matrix", ShapeError);
    CHECK_THROWS_AS(unsqueeze(zeros({1, 1, 1, 1, 1, 1, 1, 1}), 0), ShapeError);
  }

  TEST_CASE("sizes past 2^63 are refused, not wrapped around") {
    constexpr int64_t most = INT64_MAX, least = INT64_MIN;
    const Tensor x = zeros({2, 3}), vast = expand(scalar(0), {int64_t{1} << 62});
    for (const auto& [before, after] : {std::pair{most, most}, {most, int64_t{2}}, {least, least}, {least, most}})
      CHECK_THROWS_AS(pad(x, 0, before, after), ShapeError);
    CHECK_THROWS_AS(split(x, {most, most, 4}, 0), ShapeError);
    CHECK_THROWS_AS(cat({vast, vast, vast, vast}), ShapeError);
    CHECK_THROWS_AS(expand(scalar(0), {int64_t{1} << 32, int64_t{1} << 32}), ShapeError);
  }
}
