// test_tensor.cpp: making, reading, writing, viewing and printing tensors; shapes and their arithmetic.
// Not ops and not autograd (test_engine.cpp). Next: ../autograd/factory.h.
#include "../autograd/tensor.h"

#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

#include "../autograd/factory.h"
#include "../autograd/grad_mode.h"
#include "../autograd/print.h"
#include "../autograd/strided.h"
#include "plain_ops.h"

using namespace tapestry;
using V = std::vector<double>;

namespace {

template <class E = Error, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}

V values(const Tensor& x) { return x.to_vector<double>(); }

}  // namespace

TEST_SUITE("tensor") {
  TEST_CASE("nested lists: shapes, dtypes, ragged ones are refused") {
    const Tensor x = tensor({{1, 2}, {3, 4}, {5, 6}});
    CHECK(x.shape() == Shape{3, 2});
    CHECK(x.dtype() == DType::f32);
    CHECK(values(x) == V{1, 2, 3, 4, 5, 6});
    CHECK(tensor<int64_t>({7, 8}).dtype() == DType::i64);
    CHECK(values(tensor<bool>({0, 2, -1})) == V{0, 1, 1});
    CHECK(values(tensor<bf16>({1.00390625})) == V{1});
    CHECK(tensor({{{1}, {2}}}).shape() == Shape{1, 2, 1});
    CHECK(tensor({}).shape() == Shape{0});
    CHECK(scalar(2.5).dim() == 0);
    CHECK(error_of<ShapeError>([] {
            tensor({{1, 2}, {3}});
          }) == "tensor: ragged list: one part has shape [2], another [1]");
    CHECK(error_of<ShapeError>([] { tensor({1, {2}}); }) == "tensor: ragged list: one part has shape [], another [1]");
  }

  TEST_CASE("from() copies; borrow_external_memory() does not, and keeps its owner") {
    Tensor copied;
    {
      std::vector<double> source(9);
      for (size_t i = 0; i < 9; ++i) source[i] = static_cast<double>(i);
      copied = from(source, {3, 3});
    }
    CHECK(copied.dtype() == DType::f64);
    CHECK(values(copied) == V{0, 1, 2, 3, 4, 5, 6, 7, 8});
    CHECK(error_of<ShapeError>([] {
            from(V{1, 2, 3}, {2, 2});
          }) == "from: 3 values do not fill the shape [2, 2] (4 elements)");
    auto memory = std::make_shared<std::vector<float>>(4, 1.0F);
    Tensor lent = borrow_external_memory(std::span<float>(*memory), {2, 2}, memory);
    CHECK(memory.use_count() == 2);
    lent.fill_(3);
    CHECK((*memory)[3] == 3);
    CHECK_FALSE(lent.is_sole_owner());
    lent = Tensor{};
    CHECK(memory.use_count() == 1);
  }

  TEST_CASE("rules: zeros, arange, linspace, eye, random ones") {
    CHECK(values(arange(3)) == V{0, 1, 2});
    CHECK(values(arange(1, 2, 0.25, DType::f64)) == V{1, 1.25, 1.5, 1.75});
    CHECK(values(arange(3, 0, -1, DType::f64)) == V{3, 2, 1});
    CHECK(arange(0, -1, 1).numel() == 0);
    CHECK(values(linspace(0, 1, 5, DType::f64)) == V{0, 0.25, 0.5, 0.75, 1});
    CHECK(values(linspace(2, 9, 1)) == V{2});
    CHECK(values(eye(2)) == V{1, 0, 0, 1});
    CHECK(values(full({2}, 2.5, DType::i64)) == V{2, 2});
    CHECK(values(ones_like(tensor<int64_t>({5, 6}))) == V{1, 1});
    CHECK(zeros({2, 0, 3}).numel() == 0);
    CHECK(error_of<ValueError>([] { arange(0, 1, 0); }) == "arange: start 0, end 1, step 0 make no finite range");
    CHECK(error_of<ValueError>([] { randint(3, 3, {2}); }) == "randint: empty range [3, 3)");
    CHECK(error_of<ShapeError>([] { zeros({-1}); }) == "shape: negative size in [-1]");
    CHECK(error_of<ShapeError>([] {
            zeros({INT64_C(1) << 40, INT64_C(1) << 40});
          }).find("more than 2^63 elements") != std::string::npos);
    CHECK(error_of<ShapeError>([] {
            zeros({INT64_C(1) << 62}, DType::f64);
          }).find("has more bytes than there can be") != std::string::npos);
    CHECK(error_of<ShapeError>([] { zeros({1, 1, 1, 1, 1, 1, 1, 1, 1}); }) == "shape: 9 dims, at most 8 are supported");
  }

  TEST_CASE("reading: typed data, item, conversion, undefined tensors") {
    const Tensor x = tensor({{1.5, -2}});
    CHECK(x.data<float>()[1] == -2);
    CHECK(error_of<DTypeError>([&] { (void)x.data<double>(); }) ==
          "data: the tensor [1, 2] f32 does not hold f64 elements; convert with to(x, DType::f64)");
    CHECK(error_of<ShapeError>([&] { (void)x.item(); }) == "item: the tensor [1, 2] f32 has 2 elements, not one");
    CHECK(full({1, 1}, 3.75).item<int64_t>() == 3);
    CHECK(full({}, 0.5).item<bool>());
    CHECK(x.to_vector<int64_t>() == std::vector<int64_t>{1, -2});
    CHECK(error_of([] { (void)Tensor{}.shape(); }) == "shape: the tensor is undefined");
    CHECK(x.size(-1) == 2);
    CHECK(error_of<IndexError>([&] { (void)x.size(2); }) == "size: dim 2 is out of range for rank 2; use -2 to 1");
  }

  TEST_CASE("writing: fill_, copy_ over views, overlapping views, versions") {
    const Tensor x = zeros({2, 3}, DType::f64);
    const Tensor transposed = x.view_of({3, 2}, {1, 3}, 0);
    transposed.copy_(tensor({{1, 4}, {2, 5}, {3, 6}}));
    CHECK(values(x) == V{1, 2, 3, 4, 5, 6});
    x.view_of({2}, {3}, 1).fill_(-1);
    CHECK(values(x) == V{1, -1, 3, 4, -1, 6});
    x.copy_(tensor({7, 8, 9}));  // broadcast
    CHECK(values(x) == V{7, 8, 9, 7, 8, 9});
    const Tensor flat = x.view_of({6}, {1}, 0);
    flat.copy_(tensor<double>({0, 1, 2, 3, 4, 5}));
    flat.view_of({5}, {1}, 1).copy_(flat.view_of({5}, {1}, 0));
    CHECK(values(x) == V{0, 0, 1, 2, 3, 4});
    CHECK(x.version() == 6);  // the zeros were written too
    CHECK(x.version() == transposed.version());
    CHECK(x.shares_storage(flat));
    CHECK(error_of<ShapeError>([&] { x.copy_(zeros({2})); }).starts_with("copy_: cannot expand [2] to [2, 3]"));
  }

  TEST_CASE("views: negative and zero strides read back, dense() copies only where it must") {
    const Tensor x = tensor<double>({{1, 2, 3}, {4, 5, 6}});
    CHECK(values(x.view_of({2, 3}, {3, -1}, 2)) == V{3, 2, 1, 6, 5, 4});
    CHECK(values(x.view_of({2, 2}, {0, 1}, 1)) == V{2, 3, 2, 3});
    CHECK(dense(x).is_same(x));
    CHECK_FALSE(x.view_of({3, 2}, {1, 3}, 0).is_contiguous());
    CHECK(x.view_of({1, 3}, {77, 1}, 3).is_contiguous());  // the stride of a dim of size 1 is never used
    CHECK(x.view_of({0, 3}, {9, 9}, 0).is_contiguous());
    CHECK(zeros({3, 0, 2}).strides() == Strides{2, 2, 1});
  }

  TEST_CASE("strided copies of every shape and dtype agree with a plain loop") {
    const Shape shapes[] = {{}, {1}, {7}, {3, 5}, {40, 70}, {2, 33, 3}, {70, 1, 40}, {2, 3, 4, 5}, {130, 65}};
    for (const Shape& shape : shapes) {
      CAPTURE(to_string(shape));
      const Tensor x = randn(shape, DType::f64);
      Shape backwards;
      for (int d = shape.rank() - 1; d >= 0; --d) backwards.push_back(shape[d]);
      Strides reversed;
      const Strides strides = contiguous_strides(shape);
      for (int d = shape.rank() - 1; d >= 0; --d) reversed.push_back(strides[d]);
      const Tensor y = x.view_of(backwards, reversed, 0);
      const V from = values(x), to = values(y);
      bool equal = true;
      for (size_t j = 0; j < to.size(); ++j) {
        int64_t rest = static_cast<int64_t>(j), at = 0;
        for (int d = backwards.rank() - 1; d >= 0; --d) {
          at += rest % backwards[d] * reversed[d];
          rest /= backwards[d];
        }
        equal = equal && to[j] == from[static_cast<size_t>(at)];
      }
      CHECK(equal);
      for (const DType dtype : {DType::f32, DType::bf16, DType::i64, DType::boolean}) {
        const Tensor z = zeros(backwards, dtype);
        z.copy_(y);
        const Tensor w = zeros(shape, dtype);
        w.view_of(backwards, reversed, 0).copy_(z);
        const Tensor direct = zeros(shape, dtype);
        direct.copy_(x);
        CHECK(values(w) == values(direct));
      }
    }
  }

  TEST_CASE("bf16 rounds to nearest even, keeps NaN and infinities") {
    const struct {
      float from, to;
    } rows[] = {{1, 1},
                {1.00390625F, 1},
                {1.01171875F, 1.015625F},
                {-1.005F, -1.0078125F},
                {3.4e38F, INFINITY},
                {INFINITY, INFINITY},
                {1e-40F, 0x1p-133F}};
    for (const auto& row : rows) {
      const auto y = static_cast<float>(bf16(row.from));
      CHECK((y == row.to || std::abs(y - row.to) <= 1e-3F * std::abs(row.to)));
    }
    CHECK(std::isnan(static_cast<float>(bf16(NAN))));
    CHECK(static_cast<float>(bf16(1.00390625F)) == 1);          // a tie goes to even
    CHECK(static_cast<float>(bf16(1.01171875F)) == 1.015625F);  // and this one up
    CHECK(std::signbit(static_cast<float>(bf16(-0.0F))));
  }

  TEST_CASE("views of shapes: which reshapes need no copy") {
    const struct {
      Shape shape;
      Strides strides;
      Shape to;
      bool fits;
      Strides right;
    } rows[] = {
        {{2, 3}, {3, 1}, {6}, true, {1}},
        {{2, 3}, {1, 2}, {6}, false, {}},
        {{2, 3}, {1, 2}, {2, 3, 1}, true, {1, 2, 6}},
        {{4, 3}, {1, 4}, {2, 2, 3}, true, {2, 1, 4}},
        {{2, 3}, {0, 1}, {6}, false, {}},
        {{2, 3}, {0, 0}, {6}, true, {0}},
        {{3, 1}, {2, 7}, {3}, true, {2}},
        {{2, 1, 3}, {6, 99, 2}, {6}, true, {2}},
        {{0, 3}, {5, 5}, {3, 0}, true, {1, 1}},
        {{5}, {-1}, {5, 1}, true, {-1, -5}},
        {{1}, {4}, {}, true, {}},
    };
    for (const auto& row : rows) {
      CAPTURE(to_string(row.shape));
      CAPTURE(to_string(row.to));
      Strides strides;
      CHECK(view_strides(row.shape, row.strides, row.to, strides) == row.fits);
      if (!row.fits) continue;
      for (int d = 0; d < row.to.rank(); ++d)
        if (row.to[d] > 1) CHECK(strides[d] == row.right[d]);
    }
  }

  TEST_CASE("printing") {
    CHECK(to_string(Tensor{}) == "tensor(undefined)");
    CHECK(to_string(full({}, 0.1, DType::f64)) == "tensor(0.1, f64 [])");
    CHECK(to_string(tensor({{1, -2.5}, {30, 4}})) == "tensor([[   1, -2.5],\n        [  30,    4]], f32 [2, 2])");
    CHECK(to_string(tensor({{{1}, {2}}, {{3}, {4}}})) ==
          "tensor([[[1],\n         [2]],\n\n        [[3],\n         [4]]], f32 [2, 2, 1])");
    CHECK(to_string(tensor<bool>({1, 0})) == "tensor([ true, false], bool [2])");
    CHECK(to_string(tensor<bf16>({3.14159, 100})) == "tensor([3.141,   100], bf16 [2])");
    CHECK(to_string(zeros({0, 2}, DType::i64)) == "tensor([], i64 [0, 2])");
    CHECK(to_string(arange(6).view_of({3, 2}, {1, 3}, 0)) ==
          "tensor([[0, 3],\n        [1, 4],\n        [2, 5]], i64 [3, 2], strides [1, 3])");
    CHECK(to_string(arange(2000)) == "tensor([   0,    1,    2, ..., 1997, 1998, 1999], i64 [2000])");
    CHECK(to_string(zeros({2, 1000})) ==
          "tensor([[0, 0, 0, ..., 0, 0, 0],\n        [0, 0, 0, ..., 0, 0, 0]], f32 [2, 1000])");
    const Tensor x = plain::leaf({1, 2});
    CHECK(to_string(x) == "tensor([1, 2], f64 [2], requires_grad)");
    std::ostringstream out;
    out << plain::mul(x, x);
    CHECK(out.str() == "tensor([1, 4], f64 [2], requires_grad, result of mul)");
    CHECK(to_string(tensor<double>({NAN, INFINITY, -INFINITY})) == "tensor([ nan,  inf, -inf], f64 [3])");
  }

  TEST_CASE("gradients of a leaf: setting, clearing, what does not fit") {
    const Tensor x = plain::leaf({1, 2});
    const Tensor g = tensor<double>({3, 4});
    x.set_grad(g);
    x.backward(ones({2}, DType::f64));
    CHECK(values(g) == V{3, 4});
    CHECK(values(x.grad()) == V{4, 5});
    x.set_grad(g);
    CHECK(values(x.grad()) == V{3, 4});
    CHECK(error_of<ShapeError>([&] { x.set_grad(zeros({3}, DType::f64)); }) ==
          "set_grad: the gradient [3] f64 does not have the shape of the tensor [2] f64");
    CHECK(error_of<DTypeError>([&] { x.set_grad(zeros({2})); }) ==
          "set_grad: the gradient [2] f32 does not have the dtype of the tensor [2] f64");
    CHECK(error_of<AutogradError>([] { zeros({2}).set_grad(zeros({2})); }) ==
          "set_grad: the tensor [2] f32 is not a leaf that requires a gradient");
    x.clear_grad();
    CHECK_FALSE(x.grad().defined());
    CHECK(error_of<DTypeError>([] { tensor<int64_t>({1}).requires_grad_(); }) ==
          "requires_grad_: only floating tensors have gradients, this one is [1] i64");
    CHECK(error_of<AutogradError>([&] { plain::mul(x, x).requires_grad_(false); }) ==
          "requires_grad_: the tensor [2] f64 is the result of mul; use detach()");
    CHECK_FALSE(x.detach().requires_grad());
    CHECK(x.detach().shares_storage(x));
  }
}
