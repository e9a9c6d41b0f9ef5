// Broadcasting, strides of views and their checks, as arithmetic on short lists. Next: storage.h.
#include "shape.h"

#include "error.h"

namespace tapestry {

Dims::Dims(std::span<const int64_t> list) {
  if (list.size() > max_rank) fail<ShapeError>("shape: {} dims, at most {} are supported", list.size(), max_rank);
  for (const int64_t x : list) d_[rank_++] = x;
}

void Dims::push_back(int64_t x) { insert(rank_, x); }

void Dims::insert(int at, int64_t x) {
  if (rank_ == max_rank) fail<ShapeError>("shape: {} dims, at most {} are supported", rank_ + 1, max_rank);
  for (int i = rank_; i > at; --i) d_[i] = d_[i - 1];
  d_[at] = x;
  ++rank_;
}

void Dims::erase(int at) {
  for (int i = at; i + 1 < rank_; ++i) d_[i] = d_[i + 1];
  --rank_;
}

int64_t numel(std::span<const int64_t> shape) {
  int64_t n = 1;
  bool empty = false;
  for (const int64_t size : shape) {
    if (size < 0) fail<ShapeError>("shape: negative size in {}", to_string(shape));
    if (size == 0)
      empty = true;
    else if (__builtin_mul_overflow(n, size, &n))
      fail<ShapeError>("shape: {} has more than 2^63 elements", to_string(shape));
  }
  return empty ? 0 : n;
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides = shape;
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    if (shape[i] > 1) step *= shape[i];
  }
  return strides;
}

bool is_contiguous(const Shape& shape, const Strides& strides) {
  for (const int64_t size : shape)
    if (size == 0) return true;
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] != 1 && strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

std::string to_string(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

std::string to_string(std::span<const int64_t> shape, DType dtype) {
  return to_string(shape) + " " + std::string(name_of(dtype));
}

int normalize_dim(const char* op, int64_t dim, int rank) {
  if (dim < -rank || dim >= rank)
    fail<IndexError>("{}: dim {} is out of range for rank {}; use -{} to {}", op, dim, rank, rank, rank - 1);
  return static_cast<int>(dim < 0 ? dim + rank : dim);
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape result;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const int64_t sa = ia < 0 ? 1 : a[ia], sb = ib < 0 ? 1 : b[ib];
    if (sa != sb && sa != 1 && sb != 1)
      fail<ShapeError>("{}: cannot broadcast {} with {} (dim {}: {} vs {})", op, to_string(a), to_string(b), i - rank,
                       sa, sb);
    result.push_back(sa == 1 ? sb : sa);
  }
  return result;
}

Strides expanded_strides(const char* op, const Shape& shape, const Strides& strides, const Shape& to) {
  const int lead = to.rank() - shape.rank();
  if (lead < 0) fail<ShapeError>("{}: cannot expand {} to the lower rank {}", op, to_string(shape), to_string(to));
  Strides result = to;
  for (int i = 0; i < to.rank(); ++i) {
    const int64_t from = i < lead ? 1 : shape[i - lead];
    if (from != to[i] && from != 1)
      fail<ShapeError>("{}: cannot expand {} to {} (dim {}: {} vs {})", op, to_string(shape), to_string(to),
                       i - to.rank(), from, to[i]);
    result[i] = from == to[i] && i >= lead ? strides[i - lead] : 0;
  }
  return result;
}

bool view_strides(const Shape& shape, const Strides& strides, const Shape& to, Strides& result) {
  result = contiguous_strides(to);
  if (numel(to) == 0 || is_contiguous(shape, strides)) return true;
  // Groups of input dims that are contiguous among themselves are split or merged into output dims, from the last on.
  int out = to.rank() - 1;
  int64_t step = strides.empty() ? 1 : strides[shape.rank() - 1], group = 1, taken = 1;
  for (int in = shape.rank() - 1; in >= 0; --in) {
    group *= shape[in];
    const bool ends = in == 0 || (shape[in - 1] != 1 && strides[in - 1] != group * step);
    if (!ends) continue;
    while (out >= 0 && (taken < group || to[out] == 1)) {
      result[out] = taken * step;
      taken *= to[out--];
    }
    if (taken != group) return false;
    if (in > 0) {
      step = strides[in - 1];
      group = taken = 1;
    }
  }
  return out == -1;
}

}  // namespace tapestry
