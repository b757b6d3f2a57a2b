#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>

#include "run/stop_requests.hpp"

namespace rlock::run {
namespace {

constexpr Millis kGrace{1000};
constexpr TimePoint kBegin{std::chrono::hours(1)};

TimePoint at(int ms) {
  return kBegin + Millis(ms);
}

// The end of a command at `ms`.
SharedStatePtr exited_with(int ms, int code, int status) {
  SharedStatePtr end = *map_shared_state();
  end->set_ended_at(at(ms));
  end->end_status = status;
  end->end_code = code;
  return end;
}

SharedStatePtr exits(int ms, int status) {
  return exited_with(ms, CLD_EXITED, status);
}

TEST_CASE("a TERM, INT or QUIT of another process ends what the command leaves, however late") {
  for (int number : {SIGTERM, SIGINT, SIGQUIT}) {
    CAPTURE(number);
    StopRequests requests(kGrace);
    CHECK(requests.note(number, at(0)));
    CHECK(requests.cancel(*exits(100'000, 0)) == number);
  }
}

TEST_CASE("a HUP ends what the command leaves only if the command exits within --kill-after") {
  StopRequests requests(kGrace);
  CHECK(requests.note(SIGHUP, at(0)));
  CHECK(requests.cancel(*exits(1000, 0)) == SIGHUP);
  CHECK(requests.cancel(*exits(1001, 0)) == 0);
  CHECK(requests.note(SIGHUP, at(5000)));
  CHECK(requests.cancel(*exits(5500, 0)) == SIGHUP);
}

TEST_CASE("the first request counts, but not a HUP before another one") {
  StopRequests requests(kGrace);
  CHECK_FALSE(requests.note(SIGUSR1, at(0)));
  CHECK(requests.first() == 0);
  CHECK(requests.note(SIGHUP, at(0)));
  CHECK(requests.note(SIGINT, at(0)));
  CHECK_FALSE(requests.note(SIGTERM, at(0)));
  CHECK_FALSE(requests.note(SIGHUP, at(0)));
  CHECK(requests.first() == SIGINT);
}

TEST_CASE("a key ends what the command leaves only if the command dies of it in time") {
  StopRequests requests(kGrace);
  requests.note_key(SIGTSTP, at(0));
  requests.note_key(SIGINT, at(0));
  requests.note_key(SIGQUIT, at(100));
  CHECK(requests.first() == 0);
  CHECK(requests.cancel(*exits(500, 0)) == 0);
  CHECK(requests.cancel(*exits(500, 128 + SIGINT)) == SIGINT);
  CHECK(requests.cancel(*exited_with(500, CLD_KILLED, SIGQUIT)) == SIGQUIT);
  CHECK(requests.cancel(*exits(500, 128 + SIGTSTP)) == 0);
  CHECK(requests.cancel(*exits(1001, 128 + SIGINT)) == 0);
  requests.note_key(SIGINT, at(1000));
  CHECK(requests.cancel(*exits(1001, 128 + SIGINT)) == SIGINT);
}

TEST_CASE("without a request only a deadly signal ends what the command leaves") {
  const StopRequests none(kGrace);
  CHECK(none.why_leftovers_end(*exits(0, 1)) == 0);
  CHECK(none.why_leftovers_end(*exits(0, 128)) == 0);
  CHECK(none.why_leftovers_end(*exited_with(0, CLD_KILLED, SIGHUP)) == SIGHUP);
  CHECK(none.why_leftovers_end(*exits(0, 128 + SIGKILL)) == SIGKILL);
  CHECK(none.cancel(*exits(0, 128 + SIGKILL)) == 0);
}

}  // namespace
}  // namespace rlock::run
