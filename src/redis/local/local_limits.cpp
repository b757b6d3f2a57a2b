#include "redis/local/local_limits.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace rlock::redis {
namespace {

// Its log of commands is rewritten long before.
constexpr rlim_t kEnoughForFiles = rlim_t{1} << 30;

// What is left of the limit: none where we may, else as far as the hard one goes.
rlim_t lift(__rlimit_resource resource) {
  const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(resource, &none) == 0) return RLIM_INFINITY;
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return RLIM_INFINITY;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(resource, &limit);
  return limit.rlim_max;
}

void reset_oom_score() {
  int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  (void)!write(file, "0", 1);
  close(file);
}

}  // namespace

std::optional<FatalLimit> lift_limits() {
  setpriority(PRIO_PROCESS, 0, 0);
  reset_oom_score();
  for (auto resource : {RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_DATA}) lift(resource);
  if (lift(RLIMIT_CPU) != RLIM_INFINITY) return FatalLimit::cpu_time;
  if (lift(RLIMIT_FSIZE) < kEnoughForFiles) return FatalLimit::file_size;
  return std::nullopt;
}

}  // namespace rlock::redis
