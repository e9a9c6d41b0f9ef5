// test_small_vector.cpp: the inline vector of the core: growth, copies, moves, and that nothing is constructed or destroyed twice.
// Next: ../autograd/small_vector.h.
#include "../autograd/small_vector.h"

#include <doctest/doctest.h>

#include <string>

using namespace tapestry;

namespace {

/// Counts itself, and owns memory so that a sanitizer sees a double free.
struct Counted {
  static inline int live = 0;
  std::string text = "a string too long to be kept in place ";
  Counted() { ++live; }
  explicit Counted(int i) {
    text += std::to_string(i);
    ++live;
  }
  Counted(const Counted& o) : text(o.text) { ++live; }
  Counted(Counted&& o) noexcept : text(std::move(o.text)) { ++live; }
  Counted& operator=(const Counted&) = default;
  Counted& operator=(Counted&&) noexcept = default;
  ~Counted() { --live; }
  friend bool operator==(const Counted& a, const Counted& b) { return a.text == b.text; }
};

using Vector = SmallVector<Counted, 3>;

Vector made(int n) {
  Vector v;
  for (int i = 0; i < n; ++i) v.push_back(Counted(i));
  return v;
}

bool holds(const Vector& v, int n) {
  if (v.size() != static_cast<size_t>(n)) return false;
  for (int i = 0; i < n; ++i)
    if (!(v[static_cast<size_t>(i)] == Counted(i))) return false;
  return true;
}

}  // namespace

TEST_SUITE("small_vector") {
  TEST_CASE("copies, moves and assignments of every pair of sizes") {
    for (const int from : {0, 1, 3, 4, 9})
      for (const int to : {0, 2, 3, 5, 8}) {
        CAPTURE(from);
        CAPTURE(to);
        Vector a = made(from);
        Vector copy = a;
        Vector target = made(to), moved_to = made(to);
        CHECK(holds(copy, from));
        target = a;
        CHECK(holds(target, from));
        CHECK(holds(a, from));
        moved_to = std::move(a);
        CHECK(holds(moved_to, from));
        Vector constructed = std::move(copy);
        CHECK(holds(constructed, from));
        Vector& self = constructed;
        constructed = self;
        CHECK(holds(constructed, from));
      }
    CHECK(Counted::live == 0);
  }

  TEST_CASE("growing, shrinking, clearing") {
    Vector v = made(2);
    v.push_back(v[0]);  // an element of itself
    v.push_back(v[0]);
    CHECK(v.back() == v[0]);
    v.resize(7);
    CHECK(Counted::live == 7);
    v.resize(1);
    CHECK(holds(v, 1));
    v.clear();
    CHECK(v.empty());
    CHECK(Counted::live == 0);
    v.reserve(20);
    v.push_back(Counted(0));
    CHECK(holds(v, 1));
    CHECK(v.end() - v.begin() == 1);
  }
}
