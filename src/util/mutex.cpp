#include "util/mutex.hpp"

#include <pthread.h>

namespace rlock::util {

Mutex::Mutex() noexcept {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  // A kernel without such futexes refuses this and leaves the mutex as it is.
  if (pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT) == 0)
    pthread_mutex_init(native_handle(), &attributes);
  pthread_mutexattr_destroy(&attributes);
}

Mutex::~Mutex() {
  pthread_mutex_destroy(native_handle());
}

}  // namespace rlock::util
