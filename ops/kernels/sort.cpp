// Elements as integers of the same order, sorted by digits or by comparisons. Next: indexed.h.
#include "sort.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

#include "../../autograd/parallel.h"
#include "scratch.h"

namespace tapestry::kernels {
namespace {

// Note [Keys]: elements become unsigned numbers of the same order, so that one integer sort serves every dtype. The sign bit of a float is turned
// over, and all bits of negative ones.

template <class T>
struct Key {
  using Number = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  static Number of(T x) {
    using C = compute_t<T>;
    const C v = convert<C>(x);
    if constexpr (std::is_same_v<C, bool>) {
      return v ? 1 : 0;
    } else {
      constexpr Number sign = Number{1} << (8 * sizeof(Number) - 1);
      if constexpr (std::is_integral_v<C>) {
        return static_cast<Number>(v) ^ sign;
      } else {
        const auto bits = std::bit_cast<Number>(v + C(0));  // −0 becomes 0
        const Number ordered = bits ^ ((bits & sign) != 0 ? ~Number{0} : sign);
        return v != v ? ~Number{0} : ordered;
      }
    }
  }
};

template <class Number>
struct Item {
  Number key, index;
  bool operator<(const Item& other) const { return key != other.key ? key < other.key : index < other.index; }
};

struct Items;  // uses of scratch memory
struct OtherItems;
struct Digits;

/// Sorts by key, stable, with least-significant digits first; the result lies in `a` or in `b`.
template <class Number>
Item<Number>* radix_sort(Item<Number>* a, Item<Number>* b, int64_t n) {
  constexpr int digit_bits = 11, digits = (8 * sizeof(Number) + digit_bits - 1) / digit_bits, size = 1 << digit_bits;
  const auto digit = [](Number key, int d) { return static_cast<size_t>(key >> (d * digit_bits)) & (size - 1); };
  auto* counts = scratch<int64_t, Digits>(int64_t{digits} * size);
  std::fill_n(counts, digits * size, 0);
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < digits; ++d) ++counts[static_cast<size_t>(d * size) + digit(a[i].key, d)];
  for (int d = 0; d < digits; ++d) {
    int64_t* place = counts + d * size;
    if (place[digit(a[0].key, d)] == n) continue;  // all alike
    int64_t total = 0;
    for (int k = 0; k < size; ++k) total += std::exchange(place[k], total);
    for (int64_t i = 0; i < n; ++i) b[place[digit(a[i].key, d)]++] = a[i];
    std::swap(a, b);
  }
  return a;
}

/// Calls f<T, Number>() with the element type and that of keys and indices.
template <class F>
void with_key(const DenseRows& x, F f) {
  dispatch(x.dtype, [&]<class T> {
    using Number = typename Key<T>::Number;
    if (static_cast<uint64_t>(x.n) <= std::numeric_limits<Number>::max()) return f.template operator()<T, Number>();
    f.template operator()<T, uint64_t>();
  });
}

/// f(row) for all rows, which cost `each` elements.
template <class F>
void for_rows(int64_t rows, int64_t each, F f) {
  parallel_for(rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(each, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) f(r);
  });
}

/// Writes what the first `count` items say of row x, from place `to` on.
template <class T, class Number>
void write(const T* x, const Item<Number>* items, int64_t count, void* values, int64_t* indices, int64_t to) {
  for (int64_t i = 0; i < count; ++i) {
    indices[to + i] = static_cast<int64_t>(items[i].index);
    static_cast<T*>(values)[to + i] = x[items[i].index];
  }
}

/// The k smallest items of a row, sorted, among those whose keys are turned by `flip`.
template <class T, class Number>
Item<Number>* best(const T* x, int64_t n, int64_t k, Number flip) {
  constexpr int64_t block = 64;
  const auto key = [&](int64_t i) { return static_cast<Number>(Key<T>::of(x[i])) ^ flip; };
  const int64_t capacity = std::min(n, 2 * k + block);
  auto* items = scratch<Item<Number>, Items>(capacity);
  int64_t count = 0;
  Number worst = 0;  // of the best k so far, once `full`
  bool full = false;
  for (int64_t first = 0; first < n; first += block) {
    const int64_t last = std::min(first + block, n);
    if (full) {  // most blocks hold nothing: one look at all of it
      Number least = ~Number{0};
      for (int64_t i = first; i < last; ++i) least = std::min(least, key(i));
      if (least >= worst) continue;
    }
    for (int64_t i = first; i < last; ++i) {
      const Number own = key(i);
      if (full && own >= worst) continue;  // as good as the worst, but later
      if (count == capacity) {
        std::nth_element(items, items + k - 1, items + count);
        count = k;
        worst = items[k - 1].key;
        full = true;
        if (own >= worst) continue;
      }
      items[count++] = {own, static_cast<Number>(i)};
    }
  }
  std::partial_sort(items, items + k, items + count);
  return items;
}

}  // namespace

void sort(const DenseRows& x, bool descending, void* values, int64_t* indices) {
  with_key(x, [&]<class T, class Number> {
    const Number flip = descending ? ~Number{0} : Number{0};
    for_rows(x.rows, x.n, [&](int64_t r) {
      const T* row = static_cast<const T*>(x.data) + r * x.n;
      auto* items = scratch<Item<Number>, Items>(x.n);
      for (int64_t i = 0; i < x.n; ++i)
        items[i] = {static_cast<Number>(static_cast<Number>(Key<T>::of(row[i])) ^ flip), static_cast<Number>(i)};
      if (x.n >= 512)
        items = radix_sort(items, scratch<Item<Number>, OtherItems>(x.n), x.n);
      else
        std::sort(items, items + x.n);
      write(row, items, x.n, values, indices, r * x.n);
    });
  });
}

void top(const DenseRows& x, int64_t k, bool largest, void* values, int64_t* indices) {
  if (k == 0) return;
  with_key(x, [&]<class T, class Number> {
    for_rows(x.rows, x.n, [&](int64_t r) {
      const T* row = static_cast<const T*>(x.data) + r * x.n;
      write(row, best<T, Number>(row, x.n, k, largest ? ~Number{0} : Number{0}), k, values, indices, r * k);
    });
  });
}

void kth(const DenseRows& x, int64_t k, bool nan_wins, void* values, int64_t* indices) {
  with_key(x, [&]<class T, class Number> {
    for_rows(x.rows, x.n, [&](int64_t r) {
      const T* row = static_cast<const T*>(x.data) + r * x.n;
      auto* items = scratch<Item<Number>, Items>(x.n);
      int64_t found = k;
      bool nan = false;
      for (int64_t i = 0; i < x.n && !nan; ++i) {
        const auto v = convert<compute_t<T>>(row[i]);
        items[i] = {Key<T>::of(row[i]), static_cast<Number>(i)};
        nan = nan_wins && v != v;
        if (nan) found = i;
      }
      if (!nan) std::nth_element(items, items + k, items + x.n);
      write(row, items + found, 1, values, indices, r);
    });
  });
}

void searchsorted(const DenseRows& sorted, const DenseRows& values, bool right, int64_t* out) {
  dispatch(sorted.dtype, [&]<class T> {
    const auto less = [](T a, T b) { return Key<T>::of(a) < Key<T>::of(b); };
    for_rows(values.rows * values.n, 16, [&](int64_t i) {
      const T* row = static_cast<const T*>(sorted.data) + (sorted.rows == 1 ? 0 : i / values.n * sorted.n);
      const T v = static_cast<const T*>(values.data)[i];
      out[i] =
          (right ? std::upper_bound(row, row + sorted.n, v, less) : std::lower_bound(row, row + sorted.n, v, less)) -
          row;
    });
  });
}

}  // namespace tapestry::kernels
