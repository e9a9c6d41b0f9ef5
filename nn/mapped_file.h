// A file's bytes in memory, mapped and not copied, for as long as the object lives.
// Not for writing, and not for pipes or devices.
// Next: safetensors.h, ../models/text/corpus.h.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tapestry {

/// Read-only mapping of a regular file. The file must not be cut while it is mapped.
class MappedFile {
 public:
  /// Throws IoError, with the path and the reason: missing, unreadable, a directory, not a regular file, or empty.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// All bytes; at least one.
  [[nodiscard]] std::string_view bytes() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tapestry
