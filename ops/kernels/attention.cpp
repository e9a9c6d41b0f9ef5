// attention.cpp: attention.h as products of one block of queries with all keys it sees, one thread each.
// Not an online softmax: a block's scores (64 × Tk) stay in cache. Next: rope.cpp.
#include "attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../autograd/parallel.h"
#include "gemm.h"
#include "lanes_memory.h"
#include "scratch.h"

namespace tapestry::kernels {
namespace {

constexpr int64_t block_rows = 64;
constexpr int64_t piece_macs = int64_t{1} << 17;

// Rows of one head as BLAS reads them.
template <class C>
struct Block {
  C* data;
  int64_t ld;
};

template <int>
struct Slot;

// Rows [begin, begin + rows) of head (b, h): in place when BLAS can read them, else copied (and widened).
template <class Tag, class T, class C = compute_t<T>>
Block<const C> read(HeadRows<const T> x, int64_t b, int64_t h, int64_t begin, int64_t rows, int64_t width) {
  const T* from = x.at(b, h, begin);
  if constexpr (std::is_same_v<T, C>)
    if (x.row >= width && x.row <= std::numeric_limits<int>::max()) return {from, x.row};
  C* copy = scratch<C, Tag>(rows * width);
  for (int64_t i = 0; i < rows; ++i)
    for_lanes<C>(width, [&](int64_t j, int64_t count) {
      store<C>(load(from + i * x.row + j, count), copy + i * width + j, count);
    });
  return {copy, width};
}

// Where a product for rows of an output goes: the output itself, or wide memory that `finish` rounds into it.
template <class Tag, class T, class C = compute_t<T>>
Block<C> begin_write(HeadRows<T> x, int64_t b, int64_t h, int64_t begin, int64_t rows, int64_t width) {
  if constexpr (std::is_same_v<T, C>)
    return {x.at(b, h, begin), x.row};
  else
    return {scratch<C, Tag>(rows * width), width};
}

template <class T, class C = compute_t<T>>
void finish_write(HeadRows<T> x, int64_t b, int64_t h, int64_t begin, int64_t rows, int64_t width, Block<C> from) {
  if constexpr (!std::is_same_v<T, C>) {
    T* to = x.at(b, h, begin);
    for (int64_t i = 0; i < rows; ++i)
      for_lanes<C>(width, [&](int64_t j, int64_t count) {
        store<T>(load(from.data + i * from.ld + j, count), to + i * x.row + j, count);
      });
  }
}

template <class C>
void clear(Block<C> x, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i) std::fill(x.data + i * x.ld, x.data + i * x.ld + width, C(0));
}

// A block of queries of one head and the keys it may see.
struct Queries {
  int64_t b, h, begin, rows;
  int64_t first, keys;  // any of the rows sees keys first … first + keys − 1 at most
};

Queries queries(const AttentionSize& s, int64_t b, int64_t h, int64_t block) {
  const int64_t begin = block * block_rows, rows = std::min(block_rows, s.q_len - begin), late = s.kv_len - s.q_len;
  if (!s.causal) return {b, h, begin, rows, 0, s.kv_len};
  const int64_t end = std::clamp<int64_t>(begin + rows + late, 0, s.kv_len);
  const int64_t first = s.window > 0 ? std::clamp<int64_t>(begin + 1 + late - s.window, 0, end) : 0;
  return {b, h, begin, rows, first, end - first};
}

// The keys row i of the block sees, counted from the block's first.
struct Span {
  int64_t begin, end;
};

Span visible(const AttentionSize& s, const Queries& block, int64_t i) {
  if (!s.causal) return {0, block.keys};
  const int64_t end = block.begin + i + 1 + s.kv_len - s.q_len - block.first;
  const int64_t begin = s.window > 0 ? std::clamp<int64_t>(end - s.window, 0, block.keys) : 0;
  return {begin, std::clamp<int64_t>(end, 0, block.keys)};
}

// Zero where a row does not see for causality or window.
template <class C>
void clear_unseen(const Queries& block, Span seen, C* row) {
  std::fill(row, row + seen.begin, C(0));
  std::fill(row + seen.end, row + block.keys, C(0));
}

// scores = scale · q kᵀ for k from the block's first key on, capped; what the mask forbids is −inf. Columns a row does
// not see for causality or window are left as they are.
template <class C>
void scores(const AttentionSize& s, const Queries& block, Block<const C> q, Block<const C> k, const AttentionMask& mask,
            C* out) {
  gemm_block(false, true, block.rows, block.keys, s.head_dim, static_cast<C>(s.scale), q.data, q.ld, k.data, k.ld, C(0),
             out, block.keys);
  if (!mask.data && s.soft_cap == 0) return;
  const bool* head = mask.data ? mask.data + block.b * mask.batch + block.h * mask.head : nullptr;
  const Lanes<C> cap(static_cast<C>(s.soft_cap));
  for (int64_t i = 0; i < block.rows; ++i) {
    C* row = out + i * block.keys;
    const Span seen = visible(s, block, i);
    if (s.soft_cap != 0)
      for_lanes<C>(seen.end - seen.begin, [&](int64_t j, int64_t count) {
        C* at = row + seen.begin + j;
        store<C>(cap * tanh(load(at, count) / cap), at, count);
      });
    if (!head) continue;
    const bool* may = head + (block.begin + i) * mask.row + block.first * mask.col;
    if (mask.col == 1)
      for (int64_t j = seen.begin; j < seen.end; ++j) row[j] = may[j] ? row[j] : -std::numeric_limits<C>::infinity();
    else
      for (int64_t j = seen.begin; j < seen.end; ++j)
        row[j] = may[j * mask.col] ? row[j] : -std::numeric_limits<C>::infinity();
  }
}

// Turns a row of n scores into exp(score − max) and returns their log-sum-exp; `scale` becomes what makes them sum to
// 1, 0 for nothing visible.
template <class C>
C exponentials(int64_t n, C* row, C& scale) {
  constexpr C low = -std::numeric_limits<C>::infinity();
  const C most = max_lanes<C>(n, [&](int64_t j, int64_t count) { return load(row + j, count, low); });
  if (most == low) {
    std::fill(row, row + n, C(0));
    scale = 0;
    return low;
  }
  const Lanes<C> shift(most);
  const double sum = sum_lanes<C>(n, [&](int64_t j, int64_t count) {
    const Lanes<C> e = exp(load(row + j, count, low) - shift);
    store<C>(e, row + j, count);
    return e;
  });
  scale = static_cast<C>(1 / sum);
  return static_cast<C>(static_cast<double>(most) + std::log(sum));
}

template <class T, class C = compute_t<T>>
void forward_block(const AttentionSize& s, const Queries& block, HeadRows<const T> q, HeadRows<const T> k,
                   HeadRows<const T> v, const AttentionMask& mask, HeadRows<T> o, C* lse) {
  const int64_t kv_head = block.h / (s.heads / s.kv_heads);
  const auto q_rows = read<Slot<0>>(q, block.b, block.h, block.begin, block.rows, s.head_dim);
  const auto k_rows = read<Slot<1>>(k, block.b, kv_head, block.first, block.keys, s.head_dim);
  const auto v_rows = read<Slot<2>>(v, block.b, kv_head, block.first, block.keys, s.value_dim);
  C* const p = scratch<C, Slot<3>>(block.rows * block.keys);
  scores(s, block, q_rows, k_rows, mask, p);
  C scale[block_rows];
  for (int64_t i = 0; i < block.rows; ++i) {
    C* row = p + i * block.keys;
    const Span seen = visible(s, block, i);
    lse[i] = exponentials(seen.end - seen.begin, row + seen.begin, scale[i]);
    clear_unseen(block, seen, row);
  }
  const auto out = begin_write<Slot<4>>(o, block.b, block.h, block.begin, block.rows, s.value_dim);
  gemm_block(false, false, block.rows, s.value_dim, block.keys, C(1), p, block.keys, v_rows.data, v_rows.ld, C(0),
             out.data, out.ld);
  for (int64_t i = 0; i < block.rows; ++i) {
    C* row = out.data + i * out.ld;
    if (scale[i] == C(0))
      std::fill(row, row + s.value_dim, C(0));
    else
      for_lanes<C>(s.value_dim, [&](int64_t j, int64_t count) {
        store<C>(load(row + j, count) * Lanes<C>(scale[i]), row + j, count);
      });
  }
  finish_write(o, block.b, block.h, block.begin, block.rows, s.value_dim, out);
}

// p from scores and lse, and dp from ∂L/∂p to ∂L/∂(q kᵀ), row by row; both 0 where a row does not see. `slope`, used
// with a cap only, takes the probabilities times the cap's derivative.
template <class C>
void probabilities_backward(const AttentionSize& s, const Queries& block, const C* lse, C* p, C* dp, C* slope) {
  constexpr C low = -std::numeric_limits<C>::infinity();
  const Lanes<C> one(C(1)), per_cap(static_cast<C>(1 / s.soft_cap)), scale(static_cast<C>(s.scale));
  for (int64_t i = 0; i < block.rows; ++i) {
    const Span seen = lse[i] == low ? Span{0, 0} : visible(s, block, i);
    const int64_t n = seen.end - seen.begin, at = i * block.keys + seen.begin;
    C *p_row = p + at, *d_row = dp ? dp + at : nullptr;
    const Lanes<C> shift(lse[i]);
    const double dot = sum_lanes<C>(n, [&](int64_t j, int64_t count) {
      const Lanes<C> score = load(p_row + j, count, low), e = exp(score - shift);
      store<C>(e, p_row + j, count);
      if (!d_row) return e;
      if (slope) {  // a score of −inf is forbidden: its probability is 0
        const Lanes<C> t = where(score == Lanes<C>(low), one, score * per_cap);
        store<C>(e * (one - t * t), slope + at + j, count);
      }
      return e * load(d_row + j, count);
    });
    clear_unseen(block, seen, p + i * block.keys);
    if (!d_row) continue;
    const Lanes<C> mean(static_cast<C>(dot));
    const C* const factor = slope ? slope + at : p_row;
    for_lanes<C>(n, [&](int64_t j, int64_t count) {
      store<C>(load(factor + j, count) * (load(d_row + j, count) - mean) * scale, d_row + j, count);
    });
    clear_unseen(block, seen, dp + i * block.keys);
  }
}

// All keys' rows from the block's first on.
template <class C>
Block<C> from(Block<C> rows, const Queries& block) {
  return {rows.data + block.first * rows.ld, rows.ld};
}

template <class T, class C = compute_t<T>>
void backward_head(const AttentionSize& s, int64_t b, int64_t kv_head, HeadRows<const T> q, HeadRows<const T> k,
                   HeadRows<const T> v, const AttentionMask& mask, const C* lse, HeadRows<const T> g, HeadRows<T> dq,
                   HeadRows<T> dk, HeadRows<T> dv) {
  const auto k_rows = read<Slot<1>>(k, b, kv_head, 0, s.kv_len, s.head_dim);
  const auto v_rows = read<Slot<2>>(v, b, kv_head, 0, s.kv_len, s.value_dim);
  Block<C> dk_rows{nullptr, 0}, dv_rows{nullptr, 0};
  if (dk.data) clear(dk_rows = begin_write<Slot<5>>(dk, b, kv_head, 0, s.kv_len, s.head_dim), s.kv_len, s.head_dim);
  if (dv.data) clear(dv_rows = begin_write<Slot<6>>(dv, b, kv_head, 0, s.kv_len, s.value_dim), s.kv_len, s.value_dim);
  const bool needs_ds = dq.data || dk.data;
  const int64_t group = s.heads / s.kv_heads, blocks = (s.q_len + block_rows - 1) / block_rows;
  for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h)
    for (int64_t i = 0; i < blocks; ++i) {
      const Queries block = queries(s, b, h, i);
      const int64_t rows = block.rows, keys = block.keys;
      const auto q_rows = read<Slot<0>>(q, b, h, block.begin, rows, s.head_dim);
      const auto g_rows = read<Slot<7>>(g, b, h, block.begin, rows, s.value_dim);
      C* const p = scratch<C, Slot<3>>(rows * keys);
      C* const ds = needs_ds ? scratch<C, Slot<8>>(rows * keys) : nullptr;
      C* const slope = needs_ds && s.soft_cap != 0 ? scratch<C, Slot<9>>(rows * keys) : nullptr;
      const auto k_seen = from(k_rows, block), v_seen = from(v_rows, block);
      scores(s, block, q_rows, k_seen, mask, p);
      if (needs_ds)
        gemm_block(false, true, rows, keys, s.value_dim, C(1), g_rows.data, g_rows.ld, v_seen.data, v_seen.ld, C(0), ds,
                   keys);
      probabilities_backward(s, block, lse + (b * s.heads + h) * s.q_len + block.begin, p, ds, slope);
      if (dv.data)
        gemm_block(true, false, keys, s.value_dim, rows, C(1), p, keys, g_rows.data, g_rows.ld, C(1),
                   from(dv_rows, block).data, dv_rows.ld);
      if (dk.data)
        gemm_block(true, false, keys, s.head_dim, rows, C(1), ds, keys, q_rows.data, q_rows.ld, C(1),
                   from(dk_rows, block).data, dk_rows.ld);
      if (dq.data) {
        const auto dq_rows = begin_write<Slot<4>>(dq, b, h, block.begin, rows, s.head_dim);
        gemm_block(false, false, rows, s.head_dim, keys, C(1), ds, keys, k_seen.data, k_seen.ld, C(0), dq_rows.data,
                   dq_rows.ld);
        finish_write(dq, b, h, block.begin, rows, s.head_dim, dq_rows);
      }
    }
  if (dk.data) finish_write(dk, b, kv_head, 0, s.kv_len, s.head_dim, dk_rows);
  if (dv.data) finish_write(dv, b, kv_head, 0, s.kv_len, s.value_dim, dv_rows);
}

// The most keys a block of queries sees.
int64_t most_keys(const AttentionSize& s) {
  return s.window > 0 ? std::min(s.kv_len, s.window + block_rows) : s.kv_len;
}

int64_t grain(int64_t macs) { return std::max<int64_t>(1, piece_macs / std::max<int64_t>(macs, 1)); }

}  // namespace

template <class T>
void attention_forward(const AttentionSize& s, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
                       const AttentionMask& mask, HeadRows<T> o, compute_t<T>* lse) {
  const int64_t blocks = (s.q_len + block_rows - 1) / block_rows;
  const int64_t macs = std::min(block_rows, s.q_len) * most_keys(s) * (s.head_dim + s.value_dim);
  parallel_for(s.batch * s.heads * blocks, grain(macs), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t head = i / blocks;
      const Queries block = queries(s, head / s.heads, head % s.heads, i % blocks);
      forward_block<T>(s, block, q, k, v, mask, o, lse + head * s.q_len + block.begin);
    }
  });
}

template <class T>
void attention_backward(const AttentionSize& s, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
                        const AttentionMask& mask, const compute_t<T>* lse, HeadRows<const T> g, HeadRows<T> dq,
                        HeadRows<T> dk, HeadRows<T> dv) {
  const int64_t macs = s.q_len * most_keys(s) * (s.head_dim + s.value_dim) * 2;
  parallel_for(s.batch * s.kv_heads, grain(macs), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      backward_head<T>(s, i / s.kv_heads, i % s.kv_heads, q, k, v, mask, lse, g, dq, dk, dv);
  });
}

#define TAPESTRY_ATTENTION(T)                                                                                        \
  template void attention_forward<T>(const AttentionSize&, HeadRows<const T>, HeadRows<const T>, HeadRows<const T>,  \
                                     const AttentionMask&, HeadRows<T>, compute_t<T>*);                              \
  template void attention_backward<T>(const AttentionSize&, HeadRows<const T>, HeadRows<const T>, HeadRows<const T>, \
                                      const AttentionMask&, const compute_t<T>*, HeadRows<const T>, HeadRows<T>,     \
                                      HeadRows<T>, HeadRows<T>);
TAPESTRY_ATTENTION(float)
TAPESTRY_ATTENTION(double)
TAPESTRY_ATTENTION(bf16)
#undef TAPESTRY_ATTENTION

}  // namespace tapestry::kernels
