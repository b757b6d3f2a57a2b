#include "run/shared_state.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace rlock::run {

void UnmapState::operator()(SharedState* state) const noexcept {
  munmap(state, sizeof(SharedState));
}

util::Result<SharedStatePtr> map_shared_state() {
  void* memory =
      mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return util::Error{util::ErrorKind::system,
                       std::string("cannot share memory with the guard: ") + std::strerror(errno)};
  }
  return SharedStatePtr(new (memory) SharedState());
}

}  // namespace rlock::run
