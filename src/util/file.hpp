#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::util {

// Everything up to the end of the file. ErrorKind::system says why not, without the file's name; so
// does more than `most` bytes.
Result<std::string> read_to_end(const Fd& file, size_t most);

// Writes a file beside `path` and renames it, so that no reader ever sees half of it.
// Its name does not end as that of `path` does. ErrorKind::system says what failed.
Status replace_file(const std::string& path, std::string_view text);

// `path` as a process in another folder finds it. ErrorKind::system where this folder has no name.
Result<std::string> absolute(const std::string& path);

}  // namespace rlock::util
