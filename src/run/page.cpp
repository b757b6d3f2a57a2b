#include "run/page.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace rlock::run {

void UnmapPage::operator()(Page* page) const noexcept {
  munmap(page, sizeof(Page));
}

util::Result<PagePtr> map_page() {
  void* memory =
      mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return util::Error{util::ErrorKind::system,
                       std::string("cannot share memory with the guard: ") + std::strerror(errno)};
  }
  return PagePtr(new (memory) Page());
}

}  // namespace rlock::run
