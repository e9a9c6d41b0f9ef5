// One check of the op table's tests, with a message that names the row. Next: test_op_table.cpp.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "../autograd/error.h"

namespace tapestry::op_table {

/// A check whose message is formatted only where it fails.
template <class... Args>
void expect(bool ok, fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = ok ? std::string() : fmt::format(format, std::forward<Args>(args)...);
  CHECK_MESSAGE(ok, text);
}

}  // namespace tapestry::op_table
