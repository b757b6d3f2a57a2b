#pragma once

#include <string_view>

// The descriptors that rlock has from its caller.
namespace rlock::cli {

// Whether the descriptor was open when rlock started: it is not close-on-exec, unlike those of
// rlock, and those with which rlock replaced closed ones.
bool is_inherited(int fd);

// The inherited descriptor that a path names, such as /dev/stderr or /dev/fd/2; otherwise -1.
int inherited_descriptor(std::string_view path);

// Whether the path names a standard descriptor that was closed when rlock started.
bool names_closed_output(std::string_view path);

}  // namespace rlock::cli
