// What is remembered of what was done once: for how long, how many, and what is forgotten.
#include "contract/once.hpp"

namespace rlock::contract {
namespace {

void forgotten(Lab& lab) {
  runs(lab, 'A', key("one"));
  runs(lab, 'B', key("two"));
  need(lab.forget("one").marks == 1 && lab.forget("one").marks == 0 &&
           lab.forget("three").marks == 0,
       "another number");
  const Token token = lab.granted('C', asks(key("one")));
  need(as<lock::Queued>(lab.acquire('D', asks(key("one"))), "not queued").forgotten > Token{},
       "no reply says so");
  done(lab, 'E', asks(key("two")));
  need(lab.forget().marks == 1, "another number");
  lab.cancel('D');
  need(succeeds(lab, 'C', key("one"), token) == Marked::yes, "what runs meanwhile counts");
  need(lab.forget().marks == 1, "another number");
  const lock::Granted again = as<lock::Granted>(lab.acquire('F', asks(key("one"))), "not granted");
  need(again.forgotten >= token && again.forgotten < again.token, "not up to which token");
}

void failures(Lab& lab) {
  const Once twice = day("2026-11-22", 2);
  fails(lab, 'A', twice, lab.granted('A', asks(twice)));
  lab.granted('B', asks(twice));
  lab.queued('C', asks(twice));
  lab.queued('D', asks(day("2026-11-22")));
  lab.pass(10s);
  lab.queued('C', asks(twice));
  lab.queued('D', asks(day("2026-11-22")));
  lab.pass(14s);
  lab.queued('C', asks(twice));
  lab.queued('D', asks(day("2026-11-22")));
  lab.pass(7s);
  need(as<FailedTooOften>(lab.acquire('C', asks(twice)), "C is to run").times == 2,
       "one that died did not fail");
  need(lab.holders() == "D", "one without a limit is not to run");
  const Token token = lab.granted('D', asks(day("2026-11-22")));
  as<FailedTooOften>(lab.acquire('E', asks(twice)), "E is to run");
  fails(lab, 'D', day("2026-11-22"), token);
  lab.granted('F', asks(day("2026-11-23", 2)));
}

void failures_end(Lab& lab) {
  const Once once = within(1h, 1);
  fails(lab, 'A', once, lab.granted('A', asks(once)));
  as<FailedTooOften>(lab.acquire('B', asks(once)), "B is to run");
  lab.pass(1h);
  const Token token = lab.granted('C', asks(once));
  succeeds(lab, 'C', once, token);
  lab.pass(10min);
  lab.granted('D', asks(within(1min)));
  fails(lab, 'D', once, Token{});
  succeeds(lab, 'E', once, lab.granted('E', asks(within(1min), 5min)), 5min);
  lab.pass(55min);
  lab.granted('F', asks(once));
}

void kept_and_evicted(Lab& lab) {
  const Once once = key("k");
  runs(lab, 'A', once);
  lab.pass(kMonth - 1s);
  done(lab, 'B', asks(once));
  lab.pass(kMonth - 1s);
  done(lab, 'C', asks(once));
  lab.pass(kMonth + 1s);
  lab.granted('D', asks(once));
  lab.release('D');
  runs(lab, 'E', within(366 * kDay));
  lab.pass(365 * kDay);
  done(lab, 'F', asks(within(366 * kDay)));
  runs(lab, 'G', day("2026-11-22"));
  need(std::stoll(lab.cli({"PTTL", lab.key("once")})) > 0, "the marks have no end");
  lab.pass(49h);
  done(lab, 'H', asks(day("2026-11-22")));
  lab.pass(2h);
  lab.granted('I', asks(day("2026-11-22")));
}

void a_thousand_keys(Lab& lab) {
  runs(lab, 'A', key("first"));
  lab.pass(1s);
  runs(lab, 'B', key("second"));
  runs(lab, 'C', day("2026-11-22"));
  constexpr const char* kScript = R"(
    local mark = redis.call('HGET', KEYS[1], 'key:second')
    for i = 1, 998 do redis.call('HSET', KEYS[1], 'key:' .. i, mark) end)";
  lab.pass(1s);
  lab.cli({"EVAL", kScript, "1", lab.key("once")});
  done(lab, 'D', asks(key("first")));
  done(lab, 'E', asks(key("1")));
  const Token token = lab.granted('F', asks(key("new")));
  for (int copy = 0; copy < 2; ++copy) {
    need(succeeds(lab, 'F', key("new"), token) == Marked::no_room, "it is not said that one went");
  }
  need(lab.cli({"HLEN", lab.key("once")}) == "1001", "not a thousand keys");
  for (const char* kept : {"first", "1", "new"}) done(lab, 'G', asks(key(kept)));
  done(lab, 'G', asks(day("2026-11-22")));
  runs(lab, 'H', within(366 * kDay));
  lab.pass(26h);
  lab.pass(kMonth);
  runs(lab, 'I', key("later"));
  need(lab.cli({"HLEN", lab.key("once")}) == "2", "what is over is kept");
}

// Neither a failure nor what is forgotten pushes out what was done.
void failures_have_their_room(Lab& lab) {
  runs(lab, 'A', key("first"));
  constexpr const char* kFill = R"(
    local mark = redis.call('HGET', KEYS[1], 'key:first')
    for i = 1, 999 do redis.call('HSET', KEYS[1], 'key:' .. i, mark) end)";
  lab.cli({"EVAL", kFill, "1", lab.key("once")});
  const Once failing = key("failing", 1), also = key("also", 2);
  fails(lab, 'B', failing, lab.granted('B', asks(failing)));
  as<FailedTooOften>(lab.acquire('C', asks(failing)), "the failure is not kept");
  lab.forget("unknown");
  need(lab.cli({"HLEN", lab.key("once")}) == "1002", "one was pushed out");
  fails(lab, 'D', also, lab.granted('D', asks(also)));
  const Token token = lab.granted('E', asks(also));
  for (int copy = 0; copy < 2; ++copy) {
    need(succeeds(lab, 'E', also, token) == Marked::no_room, "it is not said that one went");
    need(lab.cli({"HLEN", lab.key("once")}) == "1002", "not a thousand successes");
  }
  constexpr const char* kFail = R"(
    local mark = redis.call('HGET', KEYS[1], 'key:failing')
    for i = 1, 998 do redis.call('HSET', KEYS[1], 'key:failed' .. i, mark) end)";
  lab.pass(1s);
  lab.cli({"EVAL", kFail, "1", lab.key("once")});
  lab.forget("another");
  need(lab.cli({"HLEN", lab.key("once")}) == "2000", "no bound");
  done(lab, 'F', asks(also));
}

void what_was_forgotten(Lab& lab) {
  const Once failing = key("failing", 9);
  fails(lab, 'A', failing, lab.granted('A', asks(failing)));
  runs(lab, 'B', key("one"));
  fails(lab, 'C', key("one", 9), lab.granted('C'));
  lock::Forgotten forgotten = lab.forget("one");
  need(forgotten.marks == 1 && forgotten.failures == 1 && forgotten.numbers == 0, "not of a KEY");
  forgotten = lab.forget();
  need(forgotten.marks == 0 && forgotten.failures == 1, "not of all");
  forgotten = lab.forget();
  need(forgotten.marks == 0 && forgotten.failures == 0, "forgotten twice");
}

// The memory lives as long as the longest lease.
void under_a_long_lease(Lab& lab) {
  Ask ask = asks(key("k"));
  ask.ttl = 60 * kDay;
  lab.granted('A', ask);
  for (bool one : {true, false}) {
    lab.pass(2h);
    lab.forget(one ? std::optional<std::string>("k") : std::nullopt);
    const auto ends = std::stoll(lab.cli({"PEXPIRETIME", lab.key("meta")}));
    need(ends - lab.inspect().now.ms > (59 * kDay).count(), "the memory ends before the lease");
  }
}

// A clock that was set back must not have everything done for months.
void clock_set_back(Lab& lab) {
  runs(lab, 'A', within(1h));
  lab.pass(-2h);
  lab.granted('B', asks(within(1h)));
  lab.release('B');
}

void with_memory_full(Lab& lab) {
  runs(lab, 'A', key("k"));
  const Token token = lab.granted('B', asks(key("other")));
  lab.cli({"CONFIG", "SET", "maxmemory", "1"});
  done(lab, 'C', asks(key("k")));
  need(succeeds(lab, 'B', key("other"), token) == Marked::yes, "not marked");
  lab.cli({"CONFIG", "SET", "maxmemory", "0"});
}

// A run without these options leaves nothing of the kind, and neither does one of another kind.
void only_where_asked(Lab& lab) {
  lab.granted('A');
  lab.release('A', lock::Entry::outer(), "exit:0");
  fails(lab, 'B', key("k"), lab.granted('B', asks(key("k"))));
  need(lab.cli({"EXISTS", lab.key("once")}) == "0", "something is remembered");
}

}  // namespace

const std::vector<NamedCase>& once_memory_cases() {
  static const std::vector<NamedCase> cases{
      {"once: what is forgotten stays forgotten", forgotten},
      {"once: after so many failures nobody tries again", failures},
      {"once: failures count until a success, or for the distance", failures_end},
      {"once: marks are kept for a while after they were last asked for", kept_and_evicted},
      {"once: of a thousand keys the one asked for the longest time ago goes", a_thousand_keys},
      {"once: failures and what is forgotten push out no mark", failures_have_their_room},
      {"once: forget says what it removed", what_was_forgotten},
      {"once: forget leaves the memory its life", under_a_long_lease},
      {"once: a mark of the future is ignored", clock_set_back},
      {"once: with memory full it is marked, and found", with_memory_full},
      {"once: nothing is remembered of other runs", only_where_asked},
  };
  return cases;
}

}  // namespace rlock::contract
