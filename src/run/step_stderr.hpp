#pragma once

#include <sys/types.h>

#include <string_view>

namespace rlock::run {

// Writes a line to the stderr of another process of ours, where that is still open: as much as a
// file, a pipe or a terminal takes at once. Opened for this alone: a descriptor that was kept would
// hold up everybody who waits for the end of that pipe. Of another user's process nothing is
// opened, since that user chose the file.
void write_to_stderr_of(pid_t pid, std::string_view line) noexcept;

}  // namespace rlock::run
