#include "simulation/fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace rlock::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kStack = 512UL * 1024;
#else
constexpr size_t kStack = 128UL * 1024;
#endif

// Those of ended fibers: most runs are short.
std::vector<char*>& free_stacks() {
  static std::vector<char*> stacks;
  return stacks;
}

char* take_stack() {
  auto& stacks = free_stacks();
  if (!stacks.empty()) {
    char* stack = stacks.back();
    stacks.pop_back();
    return stack;
  }
  void* memory = mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<char*>(memory);
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack()) {
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_;
  inside_.uc_stack.ss_size = kStack;
  inside_.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&inside_, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
#if defined(__SANITIZE_THREAD__)
  inside_track_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, kStack);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(inside_track_);
#endif
  free_stacks().push_back(stack_);
}

void Fiber::enter(unsigned high, unsigned low) {
  reinterpret_cast<Fiber*>((static_cast<uintptr_t>(high) << 32) | low)->run();
}

void Fiber::run() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &outside_stack_, &outside_size_);
#endif
  body_();
  finished_ = true;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, outside_stack_, outside_size_);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(outside_track_, 0);
#endif
  setcontext(&outside_);
}

void Fiber::resume() {
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_, kStack);
#endif
#if defined(__SANITIZE_THREAD__)
  outside_track_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(inside_track_, 0);
#endif
  swapcontext(&outside_, &inside_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void Fiber::yield() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_stack_, outside_stack_, outside_size_);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(outside_track_, 0);
#endif
  swapcontext(&inside_, &outside_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, &outside_stack_, &outside_size_);
#endif
}

}  // namespace rlock::sim
