#pragma once

namespace rlock::run {

// Closes what the caller passed us and the command now has, except fd 2: else rlock would hold the
// caller's pipe or lock file open for the whole run. fds 0 and 1 become /dev/null. Ours differ
// by being close-on-exec: nothing inherited through an exec is.
void close_inherited_descriptors();

// Closes every descriptor from `first` on. Async-signal-safe.
void close_all_from(unsigned first) noexcept;

}  // namespace rlock::run
