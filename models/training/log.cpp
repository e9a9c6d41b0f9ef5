// Lines of the log and the file they go to.
// Next: run_folder.cpp.
#include "log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>

#include "../../autograd/error.h"

namespace tapestry {
namespace {

[[noreturn]] void give_up(const std::string& path) {
  fail<IoError>("log: cannot write '{}': {}", path, std::generic_category().message(errno));
}

}  // namespace

double LogEntry::perplexity() const { return std::exp(val_loss); }

std::string LogEntry::to_json() const {
  nlohmann::ordered_json json{{"step", step}};
  json["train_loss"] = train_loss ? nlohmann::ordered_json(*train_loss) : nlohmann::ordered_json();
  json["val_loss"] = val_loss;
  json["val_tokens"] = val_tokens;
  json["perplexity"] = perplexity();
  json["tokens_per_second"] = tokens_per_second;
  json["lr"] = lr;
  json["skipped"] = skipped;
  json["seconds"] = {{"steps", seconds.steps},
                     {"data", seconds.data},
                     {"evaluation", seconds.evaluation},
                     {"checkpoint", seconds.checkpoint}};
  return json.dump();
}

TrainLog::TrainLog(std::string path, int64_t bytes)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) {
  if (fd_ < 0) give_up(path_);
  const off_t size = ::lseek(fd_, 0, SEEK_END);
  const off_t kept = std::min<off_t>(size, bytes);
  if (size < 0 || ::ftruncate(fd_, kept) != 0 || ::lseek(fd_, kept, SEEK_SET) != kept) {
    const int error = errno;
    ::close(fd_);
    errno = error;
    give_up(path_);
  }
}

TrainLog::~TrainLog() { ::close(fd_); }

int64_t TrainLog::append(const LogEntry& entry) {
  const std::string line = entry.to_json() + "\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(fd_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) give_up(path_);
    done += static_cast<size_t>(n);
  }
  if (::fsync(fd_) != 0) give_up(path_);
  return static_cast<int64_t>(::lseek(fd_, 0, SEEK_CUR));
}

}  // namespace tapestry
