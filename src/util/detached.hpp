#pragma once

namespace rlock::util {

// Starts a thread that nobody joins, with every signal blocked: signals are the main thread's.
// Returns an errno, 0 for none.
int start_detached(void* (*body)(void*), void* argument);

}  // namespace rlock::util
