#pragma once

#include <sys/types.h>

#include "run/page.hpp"
#include "run/tree.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::run {

// A small process beside rlock that knows the deadline too. It ends the command's whole tree when
// the page's kill time passes or when rlock is gone: whatever stops or kills rlock stops its
// watchdog with it. It knows no server and never allocates. [SUPERVISION, The guard]
class Guard {
 public:
  // `page` outlives the guard. ErrorKind::system when it cannot be forked.
  static util::Result<Guard> start(Page& page, const Quarry& quarry);

  Guard(Guard&& other) noexcept;
  Guard& operator=(Guard&&) = delete;
  // Ends and reaps it, after the command was reaped: as init of a pid namespace it could not end
  // before. The page is to be `done` or `killed` by then.
  ~Guard();

  pid_t pid() const { return pid_; }
  // Its work is done: it ends while others are waited for. The command is reaped by then.
  void dismiss() const;
  // To be called at each SIGCHLD: resumes a stopped guard, replaces a dead one while the page is
  // armed. An error: there is no guard and none can be had.
  util::Status tend();
  // Where the guard is killing: until it has finished, at most until `until`. Then the command may
  // be reaped: nobody signals its pid any more.
  void await_killed(util::TimePoint until);

 private:
  Guard(Page& page, const Quarry& quarry) : page_(&page), quarry_(quarry) {}
  util::Status spawn();

  Page* page_;
  Quarry quarry_;
  util::Fd pipe_;  // the end that only rlock has: its closing tells that rlock is gone
  pid_t pid_ = -1;
};

}  // namespace rlock::run
