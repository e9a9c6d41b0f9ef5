// The loop that all formulas share: tiles, gathering of operands that cannot be read where they lie, and pieces for threads.
// Next: reduce.h.
#include "pointwise.h"

#include <algorithm>
#include <cstdlib>

#include "../../autograd/error.h"
#include "../../autograd/parallel.h"
#include "../../autograd/strided.h"
#include "gather.h"

namespace tapestry::kernels {
namespace {

constexpr int max_inputs = 4, max_outputs = 3;
constexpr int64_t piece = 16384;         // elements a thread takes at a time
constexpr int64_t inline_below = 32768;  // waking a thread costs more than this many additions
constexpr int64_t buffer = 4096;         // elements of one gathered tile: a few of them fit into L1

// Note [Tiles]: the last two dims are walked in tiles of rows x columns. An operand that cannot be used where it lies is gathered into a dense
// buffer of the tile's shape (or scattered from it), along whichever of its two strides is the smaller: a transposed operand is read by whole
// cache lines. The tile is then one call of the chunk, or one call per row when rows are long and other operands are used in place.

struct Operand {
  char* base;
  int64_t row_step, column_step;  // bytes
  Copy copy;                      // gather of an input, scatter of an output; null when used in place
};

struct Loop {
  const StridedLoop& dims;
  int inputs, outputs;
  Operand operand[max_operands];  // outputs, then inputs
  Chunk chunk;
  const void* formula;
  int64_t item;  // bytes of the compute type
  int64_t rows, columns, tile_rows, tile_columns;
  bool by_row;

  [[nodiscard]] int64_t row_tiles() const { return (rows + tile_rows - 1) / tile_rows; }
  [[nodiscard]] int64_t column_tiles() const { return (columns + tile_columns - 1) / tile_columns; }

  void tile(int64_t index, char (*buffers)[buffer * 8]) const {
    const int64_t column = index % column_tiles() * tile_columns, down = index / column_tiles();
    const int64_t row = down % row_tiles() * tile_rows;
    const int64_t r = std::min(tile_rows, rows - row), c = std::min(tile_columns, columns - column);
    int64_t outer = down / row_tiles(), offset[max_operands] = {};
    const int n = inputs + outputs;
    for (int d = dims.rank - 3; d >= 0; --d) {
      const int64_t at = outer % dims.shape[d];
      outer /= dims.shape[d];
      for (int k = 0; k < n; ++k) offset[k] += at * dims.strides[k][d];
    }
    char *memory[max_operands], *at[max_operands];
    int64_t step[max_operands];
    for (int k = 0; k < n; ++k) {
      const Operand& o = operand[k];
      memory[k] = o.base + offset[k] + row * o.row_step + column * o.column_step;
      at[k] = o.copy ? buffers[k] : memory[k];
      step[k] = o.copy ? c * item : o.row_step;
      if (o.copy && k >= outputs) o.copy(buffers[k], memory[k], r, c, o.row_step, o.column_step);
    }
    call(at, step, by_row ? r : 1, by_row ? c : r * c);
    for (int k = 0; k < outputs; ++k)
      if (operand[k].copy) operand[k].copy(buffers[k], memory[k], r, c, operand[k].row_step, operand[k].column_step);
  }

  void call(char** at, const int64_t* step, int64_t times, int64_t n) const {
    const void* in[max_inputs];
    void* out[max_outputs];
    for (int64_t i = 0; i < times; ++i) {
      for (int k = 0; k < outputs; ++k) out[k] = at[k] + i * step[k];
      for (int k = 0; k < inputs; ++k) in[k] = at[outputs + k] + i * step[outputs + k];
      chunk(formula, in, out, n);
    }
  }
};

/// Every operand dense and of the compute type: no strides to look at.
bool run_dense(const Shape& shape, int64_t n, DType compute, Chunk chunk, const void* formula,
               std::span<const Output> outs, std::span<const Input> ins) {
  for (const Output& o : outs)
    if (o.dtype != compute || !is_contiguous(shape, o.strides)) return false;
  for (const Input& i : ins)
    if (i.dtype != compute || !is_contiguous(shape, i.strides)) return false;
  const int64_t item = size_of(compute);
  parallel_for(n, n <= inline_below ? n : piece, [&](int64_t begin, int64_t end) {
    const void* in[max_inputs];
    void* out[max_outputs];
    for (size_t k = 0; k < outs.size(); ++k) out[k] = static_cast<char*>(outs[k].data) + begin * item;
    for (size_t k = 0; k < ins.size(); ++k) in[k] = static_cast<const char*>(ins[k].data) + begin * item;
    chunk(formula, in, out, end - begin);
  });
  return true;
}

}  // namespace

void fail_integers() {
  fail<DTypeError>("pointwise: the formula is not defined for i64; convert with to(x, DType::f32)");
}

void run_pointwise(const Shape& shape, DType compute, Chunk chunk, const void* formula, std::span<const Output> outs,
                   std::span<const Input> ins) {
  const int64_t n = numel(shape);
  if (n == 0 || run_dense(shape, n, compute, chunk, formula, outs, ins)) return;

  Strides strides[max_operands];
  int64_t sizes[max_operands];
  DType dtypes[max_operands];
  char* data[max_operands];
  const int outputs = static_cast<int>(outs.size()), inputs = static_cast<int>(ins.size()), operands = outputs + inputs;
  for (int k = 0; k < operands; ++k) {
    const auto i = static_cast<size_t>(k < outputs ? k : k - outputs);
    strides[k] = k < outputs ? outs[i].strides : ins[i].strides;
    dtypes[k] = k < outputs ? outs[i].dtype : ins[i].dtype;
    data[k] = static_cast<char*>(k < outputs ? outs[i].data : const_cast<void*>(ins[i].data));
    sizes[k] = size_of(dtypes[k]);
  }
  const StridedLoop dims(shape, {strides, static_cast<size_t>(operands)}, {sizes, static_cast<size_t>(operands)});

  const int64_t columns = dims.inner(), rows = dims.rank > 1 ? dims.shape[dims.rank - 2] : 1;
  Loop loop{dims, inputs, outputs, {}, chunk, formula, size_of(compute), rows, columns, 1, columns, columns >= 64};
  bool crossed = false, copies = false;
  for (int k = 0; k < operands; ++k) {
    const int64_t column_step = dims.strides[k][dims.rank - 1],
                  row_step = dims.rank > 1 ? dims.strides[k][dims.rank - 2] : 0;
    const bool dense = dtypes[k] == compute && column_step == loop.item &&
                       (loop.by_row || rows == 1 || row_step == columns * loop.item);
    Copy copy = nullptr;
    if (!dense && k < outputs) {
      copy = copy_for(compute, dtypes[k], []<class C, class S>() -> Copy { return scatter<S, C>; });
    } else if (!dense) {
      copy = copy_for(compute, dtypes[k], []<class C, class S>() -> Copy { return gather<C, S>; });
    }
    loop.operand[k] = {data[k], row_step, column_step, copy};
    copies = copies || copy;
    crossed = crossed || (copy && row_step != 0 && std::abs(row_step) < std::abs(column_step));
  }
  if (!loop.by_row) {
    loop.tile_rows = std::min(rows, buffer / 4 / columns);
  } else if (crossed) {
    loop.tile_columns = std::min<int64_t>(columns, 256);
    loop.tile_rows = std::min<int64_t>(rows, 16);
  } else {
    loop.tile_columns = std::min<int64_t>(columns, copies ? buffer / 4 : piece);
    loop.tile_rows = std::min<int64_t>(rows, std::max<int64_t>(1, buffer / 4 / columns));
  }

  const int64_t tiles = n / (rows * columns) * loop.row_tiles() * loop.column_tiles();
  const int64_t grain = n <= inline_below ? tiles : std::max<int64_t>(1, piece / (loop.tile_rows * loop.tile_columns));
  parallel_for(tiles, grain, [&](int64_t begin, int64_t end) {
    alignas(64) char buffers[max_operands - 1][buffer * 8];
    for (int64_t t = begin; t < end; ++t) loop.tile(t, buffers);
  });
}

}  // namespace tapestry::kernels
