#pragma once

#include <cstddef>
#include <string>

#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::util {

// Everything up to the end of the file. ErrorKind::system says why not, without the file's name; so
// does more than `most` bytes.
Result<std::string> read_to_end(const Fd& file, size_t most);

// `path` as a process in another folder finds it. ErrorKind::system where this folder has no name.
Result<std::string> absolute(const std::string& path);

}  // namespace rlock::util
