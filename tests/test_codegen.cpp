// test_codegen.cpp: code that a compiler we build with gets wrong unless told otherwise: the flags of CMakeLists.txt hold.
// Not tests of ours. Next: ../CMakeLists.txt.
#include <doctest/doctest.h>

namespace {

template <class T, int n>
struct Numbers {
  T values[n] = {};
  bool flag = false;
};

// Arguments by value, unseen by the optimiser: options of layers and optimizers are passed so.
template <class T, int n>
[[gnu::noinline]] int first_difference(Numbers<T, n> given, const char* pattern) {
  asm volatile("" : : "r"(&given) : "memory");
  for (int i = 0; i < n; ++i)
    if (given.values[i] != static_cast<T>(pattern[i] - '0')) return i;
  return given.flag ? -1 : n;
}

}  // namespace

TEST_SUITE("codegen") {
  TEST_CASE("equal constants before zeros stay what they are when passed by value") {
    CHECK(first_difference(Numbers<double, 4>{{1, 1, 0, 0}, true}, "1100") == -1);
    CHECK(first_difference(Numbers<double, 4>{{1, 0, 0, 0}, true}, "1000") == -1);
    CHECK(first_difference(Numbers<double, 4>{{1, 1, 1, 0}, true}, "1110") == -1);
    CHECK(first_difference(Numbers<double, 8>{{1, 1, 1, 1, 0, 0, 0, 0}, true}, "11110000") == -1);
    CHECK(first_difference(Numbers<float, 8>{{1, 1, 1, 1, 0, 0, 0, 0}, true}, "11110000") == -1);
    CHECK(first_difference(Numbers<long, 4>{{3, 3, 0, 0}, true}, "3300") == -1);
    CHECK(first_difference(Numbers<int, 8>{{1, 1, 1, 1, 0, 0, 0, 0}, true}, "11110000") == -1);
    CHECK(first_difference(Numbers<long, 8>{{2, 2, 0, 0, 0, 0, 0, 0}, true}, "22000000") == -1);
  }
}
