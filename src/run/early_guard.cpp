#include "run/early_guard.hpp"

#include <sys/stat.h>

#include <utility>

#include "run/child.hpp"

namespace rlock::run {
namespace {

// After `unshare -p` the first child is PID 1 of the new namespace, where no process can be started
// any more once that has ended: it must be the one that stays.
bool may_be_discarded() {
  struct stat own {};
  struct stat for_children {};
  return stat("/proc/self/ns/pid", &own) == 0 &&
         stat("/proc/self/ns/pid_for_children", &for_children) == 0 &&
         own.st_dev == for_children.st_dev && own.st_ino == for_children.st_ino;
}

}  // namespace

void EarlyGuard::prepare() {
  if (!guard_ && !plan_.contain && may_be_discarded()) (void)fork();
}

Status EarlyGuard::contain() {
  return fork();
}

Status EarlyGuard::fork() {
  // Its environment is that of the grant: see Guard::start().
  Child child(plan_.argv, plan_.environment({plan_.claim.owner, {}, plan_.claim.limit}));
  TRY(guard_, Guard::fork({child, signals_, state_, plan_.until, plan_.contain}));
  return Done{};
}

}  // namespace rlock::run
