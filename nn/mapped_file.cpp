// POSIX calls behind MappedFile.
// Not here: what the bytes mean.
// Next: safetensors.cpp.
#include "mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "../autograd/error.h"

namespace tapestry {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  // A pipe opened without O_NONBLOCK would wait for a writer before it can be refused.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) fail<IoError>("open: cannot read '{}': {}", path, reason(errno));
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) fail<IoError>("open: cannot read '{}': {}", path, reason(errno));
  if (S_ISDIR(status.st_mode)) fail<IoError>("open: '{}' is a directory; name a file", path);
  if (!S_ISREG(status.st_mode)) fail<IoError>("open: '{}' is not a regular file; copy its contents to one", path);
  if (status.st_size == 0) fail<IoError>("open: '{}' is empty", path);
  const auto size = static_cast<size_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) fail<IoError>("open: cannot map '{}' of {} bytes: {}", path, size, reason(errno));
  data_ = static_cast<const char*>(data);
  size_ = size;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace tapestry
