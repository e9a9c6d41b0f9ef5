// The typed errors of the library and the one function that throws them.
// Not here: the shape words inside messages (shape.h).
// Next: dtype.h.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

#if defined(__FAST_MATH__)
#error "Tapestry refuses -ffast-math: NaN, infinities and the order of additions are part of its results"
#endif

namespace tapestry {

/// Base of every error the library throws for a user's mistake. `what()` is one line:
/// `op: what is wrong: the values with their names; what to do`.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct ShapeError : Error {  ///< shapes, dims or sizes that do not fit
  using Error::Error;
};
struct DTypeError : Error {  ///< element types that do not fit
  using Error::Error;
};
struct IndexError : Error {  ///< an index, id or dim out of range
  using Error::Error;
};
struct ValueError : Error {  ///< an option or number outside its domain
  using Error::Error;
};
struct MemoryError : Error {  ///< memory for a tensor that cannot be had
  using Error::Error;
};
struct AutogradError : Error {  ///< misuse of the tape: freed graph, write after save, no gradient
  using Error::Error;
};
struct FormatError : Error {  ///< a file or text that breaks its format
  using Error::Error;
};
struct IoError : Error {  ///< a file that cannot be opened, read or written
  using Error::Error;
};

/// Module path of the calling thread, "; in layers.3.attention.q_proj" or "" outside modules (scope.h).
std::string scope_suffix();

/// Throws E with the formatted one-line message, followed by the module path when there is one.
template <class E, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::format(format, std::forward<Args>(args)...) + scope_suffix());
}

}  // namespace tapestry
