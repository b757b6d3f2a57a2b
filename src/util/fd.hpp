#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "util/result.hpp"

namespace rlock::util {

// Owns one descriptor, and closes it once.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

// Opens /dev/null, or / if there is none: a descriptor that takes up a number. -1 with errno.
int open_null() noexcept;

// Whether the descriptor is that of a regular file, whose disk may hang.
bool is_regular_file(int fd) noexcept;

// Reads up to the end of the file. ErrorKind::system if that fails or the file has more than `most`
// bytes; the text says why, without the name of the file.
Result<std::string> read_to_end(const Fd& file, size_t most);

// Writes a file next to `path` and renames it, so that no reader ever sees half of it. The name of
// that file has another ending than `path`. ErrorKind::system says what failed.
Status replace_file(const std::string& path, std::string_view text);

// The absolute form of `path`, for a process that runs in another folder. As it is if it is empty,
// or if the current folder has no name.
std::string absolute(const std::string& path);

}  // namespace rlock::util
