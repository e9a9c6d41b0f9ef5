// test_inplace.cpp: a write between the moment a value was saved or recorded and its use in backward is refused, however it was made.
// Not random programs (test_fuzz_inplace.cpp), nor what a write stores (test_tensor.cpp, test_views.cpp).
#include <doctest/doctest.h>

#include <functional>

#include "../autograd/engine.h"
#include "../autograd/grad_mode.h"
#include "../autograd/hooks.h"
#include "../ops/ops.h"
#include "../optim/adamw.h"
#include "../optim/optimizer.h"
#include "../optim/sgd.h"

using namespace tapestry;
using V = std::vector<double>;

namespace {

Tensor leaf(const Shape& shape, double value = 2) { return full(shape, value, DType::f64).requires_grad_(); }

/// Does walking `y` fail because `writer` overwrote what `op` saved?
bool refused(const Tensor& y, const std::string& op, const std::string& writer) {
  try {
    sum(y).backward();
  } catch (const AutogradError& e) {
    const std::string what = e.what();
    const bool named = what.starts_with(op + ": ") && what.find("was overwritten by " + writer) != std::string::npos;
    if (!named) MESSAGE(what);
    return named;
  }
  return false;
}

}  // namespace

TEST_SUITE("inplace") {
  TEST_CASE("every way to write what was saved is seen, and the writer is named") {
    const struct {
      const char* what;
      std::function<void(const Tensor&)> write;
      const char* writer;
    } writes[] = {
        {"slice", [](const Tensor& t) { slice(t, 0, 1, 2).fill_(0); }, "fill_"},
        {"select", [](const Tensor& t) { select(t, 1, 0).fill_(0); }, "fill_"},
        {"transposed", [](const Tensor& t) { mT(t).zero_(); }, "fill_"},
        {"reshape", [](const Tensor& t) { reshape(t, {4}).copy_(ones({4})); }, "copy_"},
        {"a view of a view of detach()", [](const Tensor& t) { select(slice(t.detach(), 0, 0, 1), 0, 0).fill_(9); },
         "fill_"},
        {"copy_ into a view",
         [](const Tensor& t) {
           slice(t, 1, 0, 1).copy_(ones({2, 1}));
         },
         "copy_"},
        {"its pointer", [](const Tensor& t) { t.mutable_data<double>()[3] = 1; }, "mutable_data"},
        {"a named writer", [](const Tensor& t) { (void)t.mutable_raw_data("my_op"); }, "my_op"},
        {"the same values again", [](const Tensor& t) { t.copy_(t * 1.0); }, "copy_"},
    };
    for (const auto& row : writes) {
      CAPTURE(row.what);
      const Tensor x = leaf({2, 2}), constant = full({2, 2}, 3, DType::f64), w = leaf({2, 2});
      const Tensor by_constant = x * constant, by_leaf = x * w, by_result = exp(x);
      const NoGrad off;
      row.write(constant);
      row.write(w);
      row.write(by_result);
      const EnableGrad on;
      CHECK(refused(by_constant, "mul", row.writer));
      CHECK(refused(by_leaf, "mul", row.writer));
      CHECK_THROWS_AS(sum(by_result), AutogradError);  // it is no longer what exp gave
    }
  }

  TEST_CASE("a saved view: writing its base is seen, even beside it; a copy is safe") {
    const Tensor x = leaf({2}), base = full({4}, 3, DType::f64);
    const auto part = [&] { return slice(base, 0, 0, 2); };
    const Tensor viewed = x * part(), expanded = x * expand(slice(base, 0, 3, 4), {2}), copied = x * clone(part());
    slice(base, 0, 2, 3).fill_(5);
    CHECK(refused(viewed, "mul", "fill_"));
    CHECK(refused(expanded, "mul", "fill_"));
    sum(copied).backward();
    CHECK(x.grad().to_vector<double>() == V{3, 3});
  }

  TEST_CASE("an op with a composite keeps its inputs, and its rule sees that they were written") {
    const Tensor x = leaf({2, 2}), w = leaf({2});
    const Tensor y = rms_norm(x, w), z = rms_norm(x * 1.0, w);
    const NoGrad off;
    slice(x, 0, 1, 2).fill_(0);
    const EnableGrad on;
    CHECK(refused(y, "rms_norm", "fill_"));
    sum(z).backward();  // it saw other memory
    CHECK(w.grad().defined());
  }

  TEST_CASE("indices and masks are saved, too; values that are not may be written") {
    const Tensor x = leaf({3}), ids = from(std::vector<int64_t>{2, 0}),
                 mask = less(arange(int64_t{3}), scalar(1, DType::i64));
    const Tensor picked = index_select(x, 0, ids), masked = masked_fill(x, mask, 0);
    ids.fill_(1);
    mask.fill_(1);
    CHECK(refused(picked, "index_select", "fill_"));
    CHECK(refused(masked, "where", "fill_"));
    const Tensor weight = ones({3}, DType::f64), scores = leaf({2, 3});
    const Tensor loss = cross_entropy(scores, from(std::vector<int64_t>{2, 0}), {.weight = weight});
    slice(weight, 0, 2, 3).fill_(4);
    CHECK(refused(loss, "cross_entropy", "fill_"));

    const Tensor a = leaf({2}), b = full({2}, 3, DType::f64);
    const Tensor total = sum(a + b), grown = sum(exp(a));  // add saves nothing, exp its result
    {
      const NoGrad off;
      b.fill_(7);
      a.fill_(7);
    }
    total.backward();
    CHECK(a.grad().to_vector<double>() == V{1, 1});
    a.clear_grad();
    grown.backward();
    CHECK(a.grad().to_vector<double>()[0] == doctest::Approx(std::exp(2.0)));
  }

  TEST_CASE("a recorded view does not outlive a write to what it shows") {
    const Tensor w = leaf({3});
    const Tensor part = slice(w, 0, 0, 2), y = w * 2.0, piece = slice(y, 0, 1, 2);
    {
      const NoGrad off;
      w.fill_(5);
      y.fill_(5);
    }
    CHECK_THROWS_WITH_AS(
        (void)(part * 3.0),
        doctest::Contains("input 0 (shape [2], result of slice) was overwritten by fill_ after it was recorded"),
        AutogradError);
    CHECK_THROWS_WITH_AS((void)(piece + 1.0), doctest::Contains("was overwritten by fill_"), AutogradError);
    sum(slice(w, 0, 0, 2) * 3.0).backward();  // seen again, it has the new values
    CHECK(w.grad().to_vector<double>() == V{3, 3, 0});
  }

  TEST_CASE("an optimizer's step between forward and backward is a write") {
    const auto updated_between = [](const auto& make, const char* writer) {
      const Tensor w = leaf({2, 2}), x = full({1, 2}, 3, DType::f64).requires_grad_();
      auto optimizer = make(w);
      const Tensor y = matmul(x, w), loss = sum(square(y));
      loss.backward({}, {.retain_graph = true});
      optimizer.step();
      CHECK(refused(loss, "matmul", writer));
      optimizer.zero_grad();
      sum(square(matmul(x, w))).backward();  // a new forward sees the new weights
      CHECK(w.grad().defined());
    };
    updated_between([](const Tensor& w) { return Optimizer<SGD>({{"w", w}}, {.lr = 0.1}); }, "mutable_data");
    updated_between([](const Tensor& w) { return Optimizer<AdamW>({{"w", w}}, {.lr = 0.1}); }, "mutable_data");
  }

  TEST_CASE("a .grad that a graph saved is not added to unseen, by the engine or by a rule itself") {
    const Tensor w = leaf({2, 2}), x = full({2, 2}, 3, DType::f64), k = leaf({2, 2});
    sum(w * 2.0).backward();
    const Tensor by_engine = k * w.grad();
    sum(w * 2.0).backward();
    CHECK(refused(by_engine, "mul", "accumulate"));
    const Tensor by_rule = k * w.grad();
    sum(matmul(x, w)).backward();  // adds into w.grad with its GEMM
    CHECK(refused(by_rule, "mul", "matmul"));
  }

  TEST_CASE("a write by a hook in the middle of the walk is seen by the rules behind it") {
    const Tensor x = leaf({2}), c = full({2}, 3, DType::f64);
    const Tensor y = x * c, z = y * 2.0;
    const auto hook = y.register_hook([&](const Tensor&) {
      c.fill_(0);
      return Tensor{};
    });
    CHECK(refused(z, "mul", "fill_"));
  }

  TEST_CASE("while recording, a recorded tensor and its views refuse to be written; y *= 2 makes a new one") {
    const Tensor w = leaf({3});
    Tensor y = w * 3.0;
    const Tensor before = y;
    CHECK_THROWS_AS(w.fill_(0), AutogradError);
    CHECK_THROWS_AS(slice(w, 0, 0, 1).fill_(0), AutogradError);
    CHECK_THROWS_AS(expand(y, {2, 3}).fill_(0), AutogradError);
    CHECK_THROWS_AS((void)y.mutable_data<double>(), AutogradError);
    y *= 2.0;
    CHECK(before.to_vector<double>() == V{6, 6, 6});
    CHECK(y.to_vector<double>() == V{12, 12, 12});
    sum(y * before).backward();
    CHECK(w.grad().to_vector<double>() == V{72, 72, 72});
  }
}
