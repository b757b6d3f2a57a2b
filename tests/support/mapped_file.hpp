#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

// What a preloaded clock reads at each call: the number in the file that the environment variable
// names, which a test writes. Mapped for the life of the process; nullptr without variable or file.
template <class Number>
const volatile Number* mapped_number(const char* variable) {
  const char* path = std::getenv(variable);
  int fd = path != nullptr ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return nullptr;
  void* memory = mmap(nullptr, sizeof(Number), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? nullptr : static_cast<const volatile Number*>(memory);
}
