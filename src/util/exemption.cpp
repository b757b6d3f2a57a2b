#include "util/exemption.hpp"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string_view>

#include "util/fd.hpp"

namespace rlock::util {
namespace {

constexpr int kDeepest = 256;
constexpr int kRestarts = 8;

// What /proc/PID/status says of an ancestor.
struct Ancestor {
  pid_t parent = 0;  // 0: /proc does not show it
  bool guard = false;
};

std::string_view field(std::string_view text, std::string_view name) noexcept {
  size_t at = text.find(name);
  if (at == text.npos) return {};
  text.remove_prefix(at + name.size());
  return text.substr(0, text.find('\n'));
}

uint64_t number(std::string_view digits, unsigned base) noexcept {
  uint64_t value = 0;
  for (char c : digits)
    value = value * base + static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  return value;
}

Ancestor look_at(pid_t pid) noexcept {
  char path[32] = "/proc/";
  std::memcpy(write_number(path + 6, static_cast<unsigned>(pid)), "/status", 8);
  Fd file(open(path, O_RDONLY | O_CLOEXEC));
  char lines[4096];
  ssize_t length = file ? read(file.get(), lines, sizeof lines) : 0;
  if (length <= 0) return {};
  const std::string_view text(lines, static_cast<size_t>(length));
  // A process that only calls itself a guard is not ended by the signal: it must block that, too.
  const uint64_t blocked = number(field(text, "\nSigBlk:\t"), 16);
  const bool blocks = (blocked >> (exemption_signal() - 1) & 1) != 0;
  return {static_cast<pid_t>(number(field(text, "\nPPid:\t"), 10)),
          blocks && field(text, "Name:\t") == kGuardName};
}

}  // namespace

char* write_number(char* at, unsigned number) noexcept {
  char digits[12];
  int count = 0;
  for (unsigned rest = number; count == 0 || rest > 0; rest /= 10) {
    digits[count++] = static_cast<char>('0' + rest % 10);
  }
  while (count > 0) *at++ = digits[--count];
  return at;
}

bool ask_guards_for_exemption() noexcept {
  pid_t pid = getppid();
  int restarts = 0;
  for (int level = 0; level < kDeepest && pid > 1; ++level) {
    const Ancestor ancestor = look_at(pid);
    if (ancestor.guard) kill(pid, exemption_signal());
    pid = ancestor.parent;
    // One in between has just ended: its children have another parent now. Or /proc does not show
    // it.
    if (pid == 0 && restarts++ < kRestarts) pid = getppid();
  }
  return !look_at(1).guard;
}

}  // namespace rlock::util
