#pragma once

namespace rlock::util {

// The server of `local:` keeps this file of its folder open and locked as this descriptor: by that
// it is told apart from what a command started, though a nested rlock may have started it. Its
// environment would not do: redis-server overwrites that with its title.
inline constexpr int kLocalLockFd = 3;
inline constexpr char kLocalLockFile[] = "rlock.lock";

}  // namespace rlock::util
