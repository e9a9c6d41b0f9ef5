// Which loop serves a layout, and how long rows are cut into pieces whose order never changes. Next: reduce_ops.h.
#include "reduce.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "../../autograd/error.h"
#include "../../autograd/parallel.h"
#include "gather.h"
#include "reduce_ops.h"

namespace tapestry::kernels {
namespace {

using namespace reduction;

constexpr int64_t row_piece = 65536;     // elements of one result that are reduced in one go
constexpr int64_t column_width = 512;    // results of one block of columns: their states stay in L1
constexpr int64_t inline_below = 32768;  // elements for which no thread is woken
constexpr int64_t grain_elements = 16384;

/// The kept or the reduced dims: sizes and byte steps, neighbours merged, rank at least 1.
struct Side {
  int rank = 0;
  int64_t shape[max_rank], step[max_rank], count = 1;

  Side(const Shape& sizes, const Strides& strides, int64_t item, bool reorder) {
    int order[max_rank], n = 0;
    for (int d = 0; d < sizes.rank(); ++d) {
      count *= sizes[d];
      if (sizes[d] != 1) order[n++] = d;
    }
    if (reorder)
      std::stable_sort(order, order + n, [&](int a, int b) { return std::abs(strides[a]) > std::abs(strides[b]); });
    for (int i = 0; i < n; ++i) {
      const int64_t s = strides[order[i]] * item, size = sizes[order[i]];
      if (rank > 0 && step[rank - 1] == s * size) {
        shape[rank - 1] *= size;
        step[rank - 1] = s;
      } else {
        shape[rank] = size;
        step[rank++] = s;
      }
    }
    if (rank == 0) {
      shape[0] = 1;
      step[rank++] = 0;
    }
  }
  [[nodiscard]] int64_t inner() const { return shape[rank - 1]; }
  [[nodiscard]] int64_t inner_step() const { return step[rank - 1]; }
  /// Byte offset of the element with the given index over the dims before `last`.
  [[nodiscard]] int64_t offset(int64_t index, int last) const {
    int64_t at = 0;
    for (int d = last - 1; d >= 0; --d) {
      at += index % shape[d] * step[d];
      index /= shape[d];
    }
    return at;
  }
};

int64_t pieces_of(int64_t n, int64_t piece) { return std::max<int64_t>(1, (n + piece - 1) / piece); }

/// states[0] = states[0] + … + states[n-1], each `width` states wide, as a binary tree in order.
template <class Op>
void merge_tree(typename Op::State* states, int64_t n, int64_t width) {
  for (int64_t step = 1; step < n; step *= 2)
    for (int64_t i = 0; i + step < n; i += 2 * step)
      for (int64_t j = 0; j < width; ++j) Op::merge(states[i * width + j], states[(i + step) * width + j]);
}

/// Where results go: `out` and, for max and min, `indices`; either may be null.
struct Target {
  void* out;
  DType dtype;
  int64_t* indices;
};

/// One reduction; Op says what is carried.
template <class Op>
class Walk {
  using T = typename Op::Element;
  using State = typename Op::State;

 public:
  Walk(const Reducible& x, const Target& target)
      : data_(static_cast<char*>(const_cast<void*>(x.data))),
        kept_(x.kept, x.kept_strides, size_of(x.dtype), false),
        reduced_(x.reduced, x.reduced_strides, size_of(x.dtype), target.indices == nullptr),
        direct_(x.dtype == dtype_of<T>()),
        copy_(dispatch(x.dtype, []<class S>() -> Copy { return gather<T, S>; })),
        target_(target) {}

  void run() {
    if (kept_.count == 0) return;
    const int64_t width = kept_.inner();
    const bool along = std::abs(kept_.inner_step()) < std::abs(reduced_.inner_step());
    if (width >= 16 && reduced_.count > 1 && (along || reduced_.count < 16)) {
      columns();
    } else {
      rows();
    }
  }

 private:
  void write(int64_t i, const State& s) const {
    if (target_.out)
      dispatch(target_.dtype,
               [&]<class R> { static_cast<R*>(target_.out)[i] = convert<R>(Op::result(s, reduced_.count)); });
    if constexpr (requires { s.index; })
      if (target_.indices) target_.indices[i] = s.index;
  }

  // ---- one result at a time: its elements come in dense runs
  void rows() {
    const int64_t n = reduced_.count, pieces = pieces_of(n, row_piece), tasks = kept_.count * pieces;
    std::vector<State> partial(pieces > 1 ? static_cast<size_t>(tasks) : 0);
    const int64_t each = std::max<int64_t>(1, std::min(n, row_piece));
    parallel_for(tasks, tasks * each <= inline_below ? tasks : std::max<int64_t>(1, grain_elements / each),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t t = begin; t < end; ++t) {
                     State s = Op::init();
                     const int64_t first = t % pieces * row_piece;
                     row(data_ + kept_.offset(t / pieces, kept_.rank), first, std::min(first + row_piece, n), s);
                     if (pieces > 1) {
                       partial[static_cast<size_t>(t)] = s;
                     } else {
                       write(t, s);
                     }
                   }
                 });
    if (pieces == 1) return;
    for (int64_t i = 0; i < kept_.count; ++i) {
      merge_tree<Op>(partial.data() + i * pieces, pieces, 1);
      write(i, partial[static_cast<size_t>(i * pieces)]);
    }
  }

  void row(char* base, int64_t begin, int64_t end, State& s) const {
    alignas(64) T buffer[dense_run];
    const int last = reduced_.rank - 1;
    const int64_t inner = reduced_.inner(), step = reduced_.inner_step();
    const bool dense = direct_ && step == static_cast<int64_t>(sizeof(T));
    while (begin < end) {
      const int64_t at = begin % inner, outer = begin / inner;
      char* p = base + reduced_.offset(outer, last) + at * step;
      int64_t n = std::min({inner - at, end - begin, dense_run});
      int64_t lines = 1;
      if (at == 0 && last > 0 && inner < 64) {  // short lines: as many as fit into the buffer
        const int64_t left = reduced_.shape[last - 1] - outer % reduced_.shape[last - 1];
        lines = std::max<int64_t>(1, std::min({left, dense_run / inner, (end - begin) / inner}));
      }
      const T* run = reinterpret_cast<const T*>(p);
      if (!dense || lines > 1) {
        copy_(reinterpret_cast<char*>(buffer), p, lines, n, last > 0 ? reduced_.step[last - 1] : 0, step);
        run = buffer;
      }
      Op::row(s, run, lines * n, begin);
      begin += lines * n;
    }
  }

  // ---- a block of neighbouring results at a time: its elements come as lines of that width
  void columns() {
    const int64_t width = std::min(kept_.inner(), column_width), n = reduced_.count;
    const int64_t piece = std::clamp<int64_t>(32768 / width, 64, 1024), pieces = pieces_of(n, piece);
    const int64_t blocks = (kept_.inner() + width - 1) / width, outer = kept_.count / kept_.inner(),
                  tasks = outer * blocks * pieces;
    std::vector<State> partial(pieces > 1 ? static_cast<size_t>(tasks * width) : 0);
    const int64_t each = std::min(n, piece) * width;
    const auto result = [&](int64_t block, const State* s) {
      const int64_t first = block % blocks * width, count = std::min(width, kept_.inner() - first);
      for (int64_t j = 0; j < count; ++j) write(block / blocks * kept_.inner() + first + j, s[j]);
    };
    parallel_for(tasks, tasks * each <= inline_below ? tasks : std::max<int64_t>(1, grain_elements / each),
                 [&](int64_t begin, int64_t end) {
                   State local[column_width];
                   for (int64_t t = begin; t < end; ++t) {
                     State* s = pieces > 1 ? partial.data() + t * width : local;
                     std::fill_n(s, width, Op::init());
                     const int64_t block = t / pieces, column = block % blocks * width, first = t % pieces * piece;
                     char* base = data_ + kept_.offset(block / blocks, kept_.rank - 1) + column * kept_.inner_step();
                     lines(base, std::min(width, kept_.inner() - column), first, std::min(first + piece, n), s);
                     if (pieces == 1) result(block, s);
                   }
                 });
    if (pieces == 1) return;
    parallel_for(outer * blocks, std::max<int64_t>(1, grain_elements / (pieces * width)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t block = begin; block < end; ++block) {
                     State* s = partial.data() + block * pieces * width;
                     merge_tree<Op>(s, pieces, width);
                     result(block, s);
                   }
                 });
  }

  void lines(char* base, int64_t width, int64_t begin, int64_t end, State* s) const {
    alignas(64) T buffer[dense_run];
    const int last = reduced_.rank - 1;
    const bool dense = direct_ && kept_.inner_step() == static_cast<int64_t>(sizeof(T));
    while (begin < end) {
      const int64_t at = begin % reduced_.inner(), step = reduced_.inner_step();
      char* p = base + reduced_.offset(begin / reduced_.inner(), last) + at * step;
      int64_t count = std::min(reduced_.inner() - at, end - begin);
      if constexpr (!requires { Op::columns; }) {  // turned into rows, 16 at a time: a line of cache each
        count = std::min<int64_t>(count, dense_run / 16);
        for (int64_t j = 0; j < width; j += 16) {
          const int64_t group = std::min<int64_t>(16, width - j);
          copy_(reinterpret_cast<char*>(buffer), p + j * kept_.inner_step(), group, count, kept_.inner_step(), step);
          for (int64_t k = 0; k < group; ++k) Op::row(s[j + k], buffer + k * count, count, begin);
        }
      } else if (dense) {
        Op::columns(s, p, width, count, step, begin);
      } else {
        count = std::min(count, dense_run / width);
        copy_(reinterpret_cast<char*>(buffer), p, count, width, step, kept_.inner_step());
        Op::columns(s, reinterpret_cast<char*>(buffer), width, count, width * static_cast<int64_t>(sizeof(T)), begin);
      }
      begin += count;
    }
  }

  char* data_;
  Side kept_, reduced_;
  bool direct_;
  Copy copy_;
  Target target_;
};

/// Element types of sums (bool counts) and of the rest.
template <class F>
void with_number(DType dtype, F f) {
  if (dtype == DType::f64) return f.template operator()<double>();
  if (dtype == DType::i64 || dtype == DType::boolean) return f.template operator()<int64_t>();
  f.template operator()<float>();
}

}  // namespace

Reducible split(const void* data, DType dtype, const Shape& shape, const Strides& strides,
                std::span<const int64_t> dims) {
  Reducible x{data, dtype, {}, {}, {}, {}};
  for (int d = 0; d < shape.rank(); ++d) {
    const bool in = dims.empty() || std::find(dims.begin(), dims.end(), d) != dims.end();
    (in ? x.reduced : x.kept).push_back(shape[d]);
    (in ? x.reduced_strides : x.kept_strides).push_back(strides[d]);
  }
  return x;
}

void reduce(Reduce what, const Reducible& x, void* out, DType out_dtype) {
  const Target target{out, out_dtype, nullptr};
  with_number(x.dtype, [&]<class T> {
    switch (what) {
      case Reduce::sum:
        return Walk<SumOp<T>>(x, target).run();
      case Reduce::mean:
        return Walk<MeanOp<T>>(x, target).run();
      case Reduce::norm:
        return Walk<NormOp<T>>(x, target).run();
      case Reduce::max:
        return Walk<ExtremeOp<T, 1>>(x, target).run();
      case Reduce::min:
        return Walk<ExtremeOp<T, -1>>(x, target).run();
      case Reduce::prod:
        return Walk<ProdOp<T>>(x, target).run();
      case Reduce::any:
        return Walk<AnyOp<T>>(x, target).run();
      case Reduce::all:
        return Walk<AllOp<T>>(x, target).run();
      case Reduce::count:
        return Walk<CountOp<T>>(x, target).run();
      case Reduce::deviation:
      case Reduce::logsumexp:
        break;
    }
    if constexpr (std::is_floating_point_v<T>) {
      if (what == Reduce::deviation) return Walk<DeviationOp<T>>(x, target).run();
      Walk<LogSumExpOp<T>>(x, target).run();
    } else {
      fail<DTypeError>("{}: x is {}, not f32, f64 or bf16; convert with to(x, DType::f32)",
                       what == Reduce::deviation ? "deviation" : "logsumexp", name_of(x.dtype));
    }
  });
}

void reduce_index(Reduce what, const Reducible& x, void* values, int64_t* indices) {
  if (numel(x.reduced) == 0 && numel(x.kept) > 0)
    fail<IndexError>("{}: no element to choose from: x reduces over {}", what == Reduce::min ? "argmin" : "argmax",
                     to_string(x.reduced, x.dtype));
  const Target target{values, x.dtype, indices};
  with_number(x.dtype, [&]<class T> {
    if (what == Reduce::min) return Walk<ExtremeOp<T, -1>>(x, target).run();
    Walk<ExtremeOp<T, 1>>(x, target).run();
  });
}

}  // namespace tapestry::kernels
