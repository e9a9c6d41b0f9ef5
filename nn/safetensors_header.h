// The header of a safetensors file, read and checked against the size of the file; what read_safetensors trusts
// afterwards. Not here: the data (safetensors.cpp). Next: safetensors.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "../autograd/shape.h"

namespace tapestry::detail {

/// A dtype the reader knows: its name and width in the file, and what it becomes.
struct FileType {
  std::string_view name;
  uint64_t width;
  DType loaded;
};

struct TensorEntry {
  std::string name;
  const FileType* type = nullptr;
  Shape shape;
  std::string_view data;
};

struct SafetensorsHeader {
  std::deque<TensorEntry> entries;  // in the order of their data; a deque: no single block outgrows the file
  std::map<std::string, std::string> metadata;
};

/// Checks everything a file of these bytes promises. FormatError beginning with `file`.
SafetensorsHeader parse_safetensors_header(std::string_view bytes, const std::string& file);

}  // namespace tapestry::detail
