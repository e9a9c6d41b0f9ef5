// Reading bytes through zlib, where there is one, and checking them against their header.
// Next: labelled_images.cpp.
#include "idx.h"

#if TAPESTRY_ZLIB
#include <zlib.h>
#endif

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "../../autograd/error.h"

namespace tapestry {
namespace {

constexpr size_t chunk = 1 << 20;

#if TAPESTRY_ZLIB
/// All bytes of the file, decompressed if it is compressed.
std::vector<uint8_t> contents(const std::string& path) {
  errno = 0;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) fail<IoError>("read_idx: cannot open '{}': {}", path, std::strerror(errno));
  std::vector<uint8_t> bytes;
  for (int n = 1; n > 0;) {
    const size_t before = bytes.size();
    bytes.resize(before + chunk);
    n = gzread(file.get(), bytes.data() + before, chunk);
    if (n < 0) {
      int code = 0;
      const char* reason = gzerror(file.get(), &code);
      if (code == Z_ERRNO) fail<IoError>("read_idx: cannot read '{}': {}", path, std::strerror(errno));
      fail<FormatError>("read_idx: '{}' is damaged: {}", path, reason);
    }
    bytes.resize(before + static_cast<size_t>(n));
  }
  int code = 0;
  gzerror(file.get(), &code);
  if (code == Z_BUF_ERROR) fail<FormatError>("read_idx: '{}' ends in the middle of its compressed data", path);
  return bytes;
}
#else
std::vector<uint8_t> contents(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) fail<IoError>("read_idx: cannot open '{}': {}", path, std::strerror(errno));
  std::vector<uint8_t> bytes;
  for (size_t n = 1; n > 0;) {
    const size_t before = bytes.size();
    bytes.resize(before + chunk);
    n = std::fread(bytes.data() + before, 1, chunk, file.get());
    bytes.resize(before + n);
  }
  if (std::ferror(file.get()) != 0) fail<IoError>("read_idx: cannot read '{}': {}", path, std::strerror(errno));
  if (bytes.size() >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B)
    fail<IoError>(
        "read_idx: '{}' is compressed, and this build has no zlib; gunzip the file, or install zlib1g-dev and build "
        "again",
        path);
  return bytes;
}
#endif

}  // namespace

IdxFile read_idx(const std::string& path) {
  std::vector<uint8_t> bytes = contents(path);
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0)
    fail<FormatError>("read_idx: '{}' is not an IDX file: it does not begin with two zero bytes and a type", path);
  if (bytes[2] != 8)
    fail<FormatError>("read_idx: '{}' holds elements of type {:#04x}; only unsigned bytes (0x08) are read", path,
                      bytes[2]);
  const size_t rank = bytes[3], header = 4 + 4 * rank;
  if (rank == 0 || rank > static_cast<size_t>(max_rank) || bytes.size() < header)
    fail<FormatError>("read_idx: '{}' has {} dims and {} bytes; a header of that rank has {}", path, rank, bytes.size(),
                      header);
  Dims sizes;
  size_t count = 1;
  bool fits = true;  // the product stays at or below the file's size, so it cannot overflow
  for (size_t d = 0; d < rank; ++d) {
    size_t size = 0;
    for (size_t b = 0; b < 4; ++b) size = size << 8 | bytes[4 + 4 * d + b];
    sizes.push_back(static_cast<int64_t>(size));
    fits = fits && (size == 0 || count <= bytes.size() / size);
    if (fits) count *= size;
  }
  if (!fits || count != bytes.size() - header)
    fail<FormatError>("read_idx: '{}' has {} bytes of data, its header says {}", path, bytes.size() - header,
                      to_string(sizes));
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header));
  return {Shape(sizes), std::move(bytes)};
}

}  // namespace tapestry
