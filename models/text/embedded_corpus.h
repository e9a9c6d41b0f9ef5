// The text the program trains on without --data: this library's own sources and documentation, compiled in.
// Not a tokenized corpus (corpus.h). models/CMakeLists.txt collects it.
// Next: corpus.h.
#pragma once

#include <string_view>

namespace tapestry {

/// UTF-8; the files one after the other, in a fixed order, as they were when the library was built.
std::string_view embedded_corpus();

}  // namespace tapestry
