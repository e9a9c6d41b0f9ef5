// The file format of weights: safetensors, a JSON header of names, dtypes, shapes and offsets before the bare data.
// Not here: which tensor belongs to which module (visitor.h), nor folders of several files
// (../models/transformer/hf/weight_files.h).
// Next: visitor.h.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
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

/// A file opened for reading: its header is checked at once, its data mapped and read one tensor at a time.
class SafetensorsFile {
 public:
  /// Errors as read_safetensors.
  explicit SafetensorsFile(const std::string& path);
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool contains(const std::string& name) const;
  /// As the file calls it: "F16".
  [[nodiscard]] std::string_view dtype(const std::string& name) const;
  [[nodiscard]] const Shape& shape(const std::string& name) const;
  /// The tensor, as read_safetensors has it. FormatError if there is none of this name, here and above.
  [[nodiscard]] Tensor read(const std::string& name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What the format calls a dtype: "BF16".
std::string_view file_dtype(DType dtype);

/// A tensor to be written, made when its turn comes, so that never all of them need to be there at once.
struct TensorToWrite {
  std::string name;
  std::string_view dtype;  ///< "F32", "F64", "BF16", "F16", "I64" or "BOOL"
  Shape shape;
  std::function<Tensor()> make;  ///< of this shape; floating ones are converted, F16 by way of f32
};
/// Writes a file atomically (atomic_file.h): wide elements first, then in the given order, so that each tensor is
/// aligned to its element. ValueError for another dtype or shape, for a finite number beyond the range of F16, for names
/// that are given twice, not UTF-8, or that the format reserves; then no file is touched.
void write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// Writes the tensors atomically (atomic_file.h), each aligned to its element: wide elements first, then by name.
/// ValueError for undefined tensors and for names that are not UTF-8 or that the format reserves; then no file is
/// touched.
void write_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace tapestry
