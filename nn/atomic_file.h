// A file that appears whole or not at all: written under a temporary name in the same folder, synced, then renamed.
// Not for appending, and not for reading (mapped_file.h).
// Next: safetensors.h.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tapestry {

/// Until commit() returns, the file of this name is as it was; a writer that is killed leaves at most `path.tmp.<pid>`.
class AtomicFile {
 public:
  /// Throws IoError, with the path and the reason, where the folder is missing or cannot be written.
  explicit AtomicFile(const std::string& path);
  /// Removes the temporary file unless it was committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends bytes. IoError when the disk is full.
  void write(const void* data, size_t bytes);
  /// Syncs the data, gives the file its name, and syncs the folder, so that a power cut keeps the old file or the new
  /// one.
  void commit();

 private:
  [[noreturn]] void give_up(const char* what) const;

  std::string path_, temporary_;
  int fd_ = -1;
};

/// `text` as the whole content of the file.
void write_file_atomically(const std::string& path, std::string_view text);

}  // namespace tapestry
