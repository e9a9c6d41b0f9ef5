// test_op_table.cpp: every row of the op table forward: values against the reference in every dtype and memory layout, sizes, threads, errors.
// Not the derivatives (test_op_gradients.cpp). Next: op_table/row.h.
#include <doctest/doctest.h>

#include <fstream>
#include <regex>
#include <set>

#include "../autograd/factory.h"
#include "../autograd/grad_mode.h"
#include "../autograd/parallel.h"
#include "op_expect.h"
#include "op_table/page.h"
#include "op_table/run.h"

using namespace tapestry;
using namespace tapestry::op_table;

namespace {

double bound_of(const OpRow& row, DType dtype) {
  return dtype == DType::f64    ? row.bounds.f64
         : dtype == DType::f32  ? row.bounds.f32
         : dtype == DType::bf16 ? row.bounds.bf16
                                : 0;
}

std::vector<DType> dtypes_of(const OpRow& row) {
  std::vector<DType> list = {DType::f64, DType::f32};
  if (row.no_bf16 == nullptr) list.push_back(DType::bf16);
  if (row.i64) list.push_back(DType::i64);
  return list;
}

/// Runs f(row) for every row, and says which row threw.
template <class F>
void for_rows(F&& f) {
  for (const Family& family : families())
    for (const OpRow& row : family.rows) {
      const std::string name = row.name;
      CAPTURE(name);
      try {
        f(row);
      } catch (const std::exception& e) {
        expect(false, "{} threw {}", row.name, e.what());
      }
    }
}

std::string forward_fault(const OpRow& row, const Sample& sample, DType dtype, Layout layout) {
  const auto inputs = make_inputs(row, sample, dtype, layout, false);
  return compare(call(row, sample, inputs), reference_of(row, sample, inputs), bound_of(row, dtype));
}

}  // namespace

TEST_SUITE("op_table") {
  TEST_CASE("rows are complete and their names unique") {
    std::set<std::string> names;
    for_rows([&](const OpRow& row) {
      CHECK(names.insert(row.name).second);
      CHECK(static_cast<bool>(row.ref) != static_cast<bool>(row.point));
      CHECK(row.samples[0].given());
      CHECK(row.empty.given() != (row.no_empty != nullptr));
      expect((row.errors[0].call != nullptr || row.point.arity == 1), "a row needs an error sample");
    });
  }

  TEST_CASE("every op of the API page has a row") {
    std::set<std::string> rows;
    for_rows([&](const OpRow& row) { rows.insert(std::string(row.name).substr(0, std::string(row.name).find(' '))); });
    std::ifstream page(std::string(TAPESTRY_SOURCE_DIR) + "/ops/ops.h");
    const std::regex declaration("^(Tensor|Tensors|std::array<Tensor, [23]>) ([a-z0-9_T]+)\\(.*");
    int declared = 0;
    for (std::string line; std::getline(page, line);) {
      std::smatch match;
      if (!std::regex_match(line, match, declaration)) continue;
      ++declared;
      expect(rows.contains(match[2]), "{} has no row", match[2].str());
    }
    CHECK(declared > 100);
  }

  TEST_CASE("docs/ops.md is what the table says") {
    for_rows([](const OpRow& row) {
      const Texts texts = texts_of(row);
      expect(!texts.formula.empty(), "{} has no formula", row.name);
      expect(!row.differentiable || !texts.vjp.empty(), "{} does not say its derivative", row.name);
    });
    std::ifstream file(std::string(TAPESTRY_SOURCE_DIR) + "/docs/ops.md", std::ios::binary);
    const std::string written{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    CHECK_MESSAGE(written == page(), "docs/ops.md is stale; write it anew with ./dev docs");
  }

  TEST_CASE("values equal the reference in every dtype and layout") {
    for_rows([](const OpRow& row) {
      for (const DType dtype : dtypes_of(row))
        for (const Sample& sample : samples_of(row))
          for (int layout = 0; layout < 6; ++layout) {
            const auto l = static_cast<Layout>(layout);
            if (l == Layout::expanded && row.no_expanded != nullptr) continue;
            const std::string fault = forward_fault(row, sample, dtype, l);
            expect(fault.empty(), "{} in {}, {}: {}", row.name, name_of(dtype), name_of(l), fault);
          }
    });
  }

  TEST_CASE("tensors without elements") {
    for_rows([](const OpRow& row) {
      if (row.no_empty != nullptr) return;
      for (const DType dtype : dtypes_of(row)) {
        const std::string fault = forward_fault(row, row.empty, dtype, Layout::contiguous);
        expect(fault.empty(), "{} in {}: {}", row.name, name_of(dtype), fault);
      }
    });
  }

  TEST_CASE("elementwise rows at the sizes around a SIMD batch") {
    for_rows([](const OpRow& row) {
      if (!row.point) return;
      for (const int64_t n : {1, 15, 16, 17, 33, 1000}) {
        if (small_samples() && n > 17) continue;
        Sample sample = row.samples[0];
        for (int i = 0; i < row.point.arity; ++i) {
          sample.inputs[i].rank = 1;
          sample.inputs[i].sizes[0] = n;
        }
        for (const DType dtype : dtypes_of(row)) {
          const std::string fault = forward_fault(row, sample, dtype, Layout::contiguous);
          expect(fault.empty(), "{} in {} at {}: {}", row.name, name_of(dtype), n, fault);
        }
      }
    });
  }

  TEST_CASE("two runs and one, two and four threads give the same bits, forward and backward") {
    const int before = num_threads();
    for_rows([](const OpRow& row) {
      const Sample sample = row.large.given() && !small_samples() ? row.large : row.samples[0];
      const auto inputs = make_inputs(row, sample, DType::f32);
      const auto run = [&](int threads) {
        set_num_threads(threads);
        std::vector<Tensor> all;
        for (const Tensor& y : call(row, sample, inputs)) all.push_back(y.detach());
        if (row.differentiable)
          for (const Tensor& g : gradients(function_of(row, sample), inputs)) all.push_back(g);
        return all;
      };
      const auto first = run(1);
      for (const int threads : {1, 2, 4}) {
        const auto again = run(threads);
        for (size_t i = 0; i < first.size(); ++i)
          expect(same_bits(again[i], first[i]), "{} with {} threads, result {}", row.name, threads, i);
      }
    });
    set_num_threads(before);
  }

  TEST_CASE("error texts") {
    for_rows([](const OpRow& row) {
      for (const ErrorCase& error : row.errors) {
        if (error.call == nullptr) continue;
        std::string said = "no error";
        try {
          error.call();
        } catch (const Error& e) {
          said = e.what();
        }
        expect(said.starts_with(error.text), "{}: expected \"{}\", got \"{}\"", row.name, error.text, said);
      }
    });
  }

  TEST_CASE("undefined and boolean operands give results or errors that name the op, never a crash") {
    for_rows([](const OpRow& row) {
      const Sample& sample = row.samples[0];
      for (int i = 0; i < sample.count(); ++i)
        for (const bool defined : {false, true}) {
          auto inputs = make_inputs(row, sample, DType::f32, Layout::contiguous, false);
          if (defined && sample.inputs[i].kind == Kind::mask) continue;
          inputs[static_cast<size_t>(i)] = defined ? zeros(sample.inputs[i].shape(), DType::boolean) : Tensor{};
          try {
            call(row, sample, inputs);
          } catch (const Error& e) {
            expect(std::string(e.what()).find(": ") != std::string::npos, "{}: {}", row.name, e.what());
            if (row.point && row.point.arity == 1 && row.differentiable && defined)
              expect(std::string(e.what()).find("not defined for " + inputs[0].describe()) != std::string::npos,
                     "{}: {}", row.name, e.what());
          }
        }
    });
  }

  TEST_CASE("an op names itself when an operand is undefined") {
    // Rows of these prepare their input by another op, which speaks first.
    const std::set<std::string> prepared = {"all",
                                            "any",
                                            "as_strided",
                                            "cholesky",
                                            "contiguous",
                                            "count_nonzero",
                                            "eigh",
                                            "inverse",
                                            "isfinite",
                                            "isinf",
                                            "isnan",
                                            "logical_and",
                                            "logical_or",
                                            "logical_xor",
                                            "interpolate",
                                            "qr",
                                            "rope",
                                            "searchsorted",
                                            "slogdet",
                                            "solve",
                                            "solve_triangular",
                                            "straight_through",
                                            "svd",
                                            "to",
                                            "batch_norm (evaluation)",
                                            "remainder (negative divisor)",
                                            "rsub_scalar"};
    // Weights, biases, masks and statistics that these do without.
    const std::set<std::string> optional = {"batch_norm",    "bilinear",         "conv1d",
                                            "conv2d",        "conv_transpose1d", "conv_transpose2d",
                                            "cross_entropy", "group_norm",       "gru",
                                            "gru_cell",      "instance_norm",    "linear_cross_entropy",
                                            "layer_norm",    "linear",           "lstm",
                                            "lstm_cell",     "nll_loss",         "rms_norm",
                                            "rnn",           "rnn_cell",         "scaled_dot_product_attention"};
    for_rows([&](const OpRow& row) {
      const std::string name = row.name, op = name.substr(0, name.find(' '));
      if (prepared.contains(op) || prepared.contains(name) || name.ends_with("x twice)")) return;
      const std::string said_as = op.substr(0, op.find("_scalar"));
      for (int i = 0; i < row.samples[0].count(); ++i) {
        auto inputs = make_inputs(row, row.samples[0], DType::f32, Layout::contiguous, false);
        if (!inputs[static_cast<size_t>(i)].defined()) continue;
        inputs[static_cast<size_t>(i)] = Tensor{};
        try {
          call(row, row.samples[0], inputs);
          expect(i > 0 && optional.contains(op), "{}: input {} may be undefined", name, i);
        } catch (const Error& e) {
          const std::string said = e.what();
          expect(said.starts_with(op + ": ") || said.starts_with(said_as + ": "), "{}: input {}: {}", name, i, said);
        }
      }
    });
  }
}
