#include <doctest/doctest.h>

#include <initializer_list>

#include "run/stage.hpp"

namespace rlock::run {
namespace {

struct Row {
  const char* what;
  Stage from;
  Look look;
  Stage to;
};

using enum Stage;
constexpr auto kRunning = CommandPhase::running, kRefused = CommandPhase::refused,
               kStuck = CommandPhase::stuck, kOutlived = CommandPhase::outlived,
               kOver = CommandPhase::over;

const Row kRows[] = {
    {"nothing has happened", running, {}, running},
    {"the exec hangs", running, {.phase = CommandPhase::starting}, running},
    {"all are gone", running, {.phase = kOver}, ended},
    {"all are gone after TERM", terminating, {.phase = kOver, .cause = EndCause::lease}, ended},
    {"all are gone after KILL", killing, {.phase = kOver, .cause = EndCause::lease}, ended},

    {"--max-run is over", running, {.cause = EndCause::run_limit}, terminating},
    {"--kill-after is not yet over", terminating, {.cause = EndCause::run_limit}, terminating},
    {"--kill-after is over",
     terminating,
     {.cause = EndCause::run_limit, .kill_due = true},
     killing},
    {"--kill-after is 0", running, {.cause = EndCause::run_limit, .kill_due = true}, killing},
    {"the killed are dying", killing, {.cause = EndCause::lease, .kill_due = true}, killing},
    {"another holder has the lock",
     running,
     {.cause = EndCause::lease, .kill_due = true, .renewable = false},
     killing},

    {"daemons are left", running, {.phase = kOutlived, .command_ended = true}, left_alone},
    {"daemons are left in a namespace, which ends",
     running,
     {.phase = kOutlived, .command_ended = true, .contained = true},
     killing},
    {"the guard was killed, and its namespace with it",
     running,
     {.phase = kOver, .cause = EndCause::no_guard, .kill_due = true},
     killing},
    {"workers are left after a cancel",
     running,
     {.phase = kOutlived, .command_ended = true, .cause = EndCause::cancel},
     terminating},
    {"the command dies of TERM, its workers may clean up",
     terminating,
     {.phase = kOutlived, .command_ended = true, .cause = EndCause::lease},
     terminating},

    {"a process of another user refuses TERM, and the lock is kept",
     running,
     {.phase = kRefused, .all_refused = true},
     running},
    {"the command goes on without the lock, although one has refused TERM",
     running,
     {.phase = kRefused, .renewable = false, .all_refused = true},
     running},
    {"one that has refused is left without the lock",
     running,
     {.phase = kRefused, .command_ended = true, .renewable = false, .all_refused = true},
     gave_up},
    {"one that has refused TERM gets KILL",
     terminating,
     {.phase = kRefused, .cause = EndCause::run_limit, .kill_due = true, .all_refused = true},
     killing},
    {"the lock is kept for what --max-run could not end",
     killing,
     {.phase = kStuck, .cause = EndCause::run_limit, .all_refused = true, .dying_time_over = true},
     killing},
    {"the lock is kept for what a killed guard left",
     killing,
     {.phase = kStuck, .cause = EndCause::no_guard, .all_refused = true, .dying_time_over = true},
     killing},
    {"without a lease those of other users are not waited for",
     killing,
     {.phase = kStuck, .cause = EndCause::run_limit, .renewable = false, .all_refused = true},
     gave_up},
    {"without a lease those that hang in the kernel have until its end",
     killing,
     {.phase = kStuck, .cause = EndCause::lease, .renewable = false},
     killing},
    {"that time is over",
     killing,
     {.phase = kStuck, .cause = EndCause::lease, .renewable = false, .dying_time_over = true},
     gave_up},
    {"without a renewal thread the lock cannot be kept",
     killing,
     {.phase = kStuck, .cause = EndCause::no_renewal, .all_refused = true},
     gave_up},
    {"a second TERM or INT ends the wait for what cannot be ended",
     killing,
     {.phase = kStuck, .cause = EndCause::run_limit, .dismissed = true},
     gave_up},

    {"an end is final", left_alone, {.phase = kOver}, left_alone},
    {"an end is final", gave_up, {.phase = kRunning, .cause = EndCause::lease}, gave_up},
};

TEST_CASE("each check leads from a stage of the command to the next") {
  for (const Row& row : kRows) {
    CAPTURE(row.what);
    CHECK(next(row.from, row.look) == row.to);
  }
}

TEST_CASE("a stage never returns to an earlier one") {
  for (const Row& row : kRows) {
    for (Stage from : {running, terminating, killing}) {
      CAPTURE(row.what);
      CHECK(next(from, row.look) >= from);
    }
  }
}

TEST_CASE("rlock keeps the lock for remaining processes unless the lease was lost") {
  const auto kept = [](EndCause cause) { return keeps_lock({.cause = cause}); };
  CHECK(keeps_lock({}));
  CHECK((kept(EndCause::run_limit) && kept(EndCause::no_guard)));
  CHECK((kept(EndCause::cancel) && kept(EndCause::died)));
  CHECK_FALSE((kept(EndCause::lease) || kept(EndCause::no_renewal)));
  CHECK_FALSE(keeps_lock({.renewable = false}));
}

}  // namespace
}  // namespace rlock::run
