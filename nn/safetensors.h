// The file format of weights: safetensors, a JSON header of names, dtypes, shapes and offsets before the bare data.
// Not here: which tensor belongs to which module (visitor.h), nor folders of several files.
// Next: visitor.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../autograd/tensor.h"

namespace tapestry {

/// What a safetensors file holds.
struct TensorFile {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;  ///< its `__metadata__`
  std::vector<std::string> report;  ///< "name: F16 loaded as f32", one line for each tensor whose dtype changed
};

/// Reads a file through a mapping; the tensors own their memory. F32, F64, BF16, I64 and BOOL keep their dtype; F16
/// becomes f32; U8 and I32 become i64. IoError for a file that cannot be read; FormatError, naming the file and the
/// reason, for one that breaks the format in any way (sizes, offsets, holes, overlaps, names) or holds another dtype.
/// Nothing is allocated for a tensor before the whole header has been checked.
TensorFile read_safetensors(const std::string& path);

/// Writes the tensors atomically (atomic_file.h), each aligned to its element: wide elements first, then by name.
/// ValueError for undefined tensors and for names that are not UTF-8 or that the format reserves; then no file is
/// touched.
void write_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace tapestry
