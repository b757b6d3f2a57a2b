// What is done once: when a run is done for another, what is remembered, and what is forgotten.
#include "contract/once.hpp"

namespace rlock::contract {
namespace {

void done_for_the_same(Lab& lab) {
  const Once today = day("2026-11-22");
  const Token token = lab.granted('A', asks(today));
  lab.pass(20s);
  need(succeeds(lab, 'A', today, token) == Marked::yes, "a success is not marked");
  lab.pass(3s);
  const AlreadyDone already = done(lab, 'B', asks(today));
  need(already.took == 20s && already.record == "record of A" && already.token == token,
       "not who did it, and how long it took");
  need(lab.holders().empty() && lab.waiters().empty(), "what is done holds or waits");
  lab.granted('C', asks(day("2026-11-23")));
  done(lab, 'D', asks(today));
  lab.release('C');
  runs(lab, 'E', key("one two|three=4%"));
  done(lab, 'F', asks(key("one two|three=4%")));
  lab.granted('G', asks(key("one two")));
  lab.release('G');
  lab.granted('H', asks(within(12h)));
  lab.release('H');
  lab.granted('I');
}

// Before room, the cool-down, busy, -n and --max-queue.
void before_anything_else(Lab& lab) {
  runs(lab, 'A', key("k"));
  const Token token = lab.granted('B', {.min_hold = 60s});
  Ask ask = asks(key("k"));
  ask.queueing = lock::Queueing::never;
  done(lab, 'C', ask);
  ask.queueing = lock::Queueing::wait;
  ask.max_queue = 0;
  done(lab, 'D', ask);
  need(std::holds_alternative<lock::Renewal>(lab.renew('B', token)), "the holder is disturbed");
  lab.release('B');
  done(lab, 'E', asks(key("k")));
}

// A distance: what was granted after one asked, or had asked less than that before.
void distance(Lab& lab) {
  const Once half_day = within(12h);
  const Token token = lab.granted('A', asks(half_day, 1h));
  lab.queued('B', asks(half_day));
  lab.pass(20s);
  need(succeeds(lab, 'A', half_day, token, 1h) == Marked::yes, "not marked");
  done(lab, 'B', asks(half_day, 20s));
  lab.pass(10h + 59min);
  done(lab, 'C', asks(half_day));
  lab.granted('D', asks(within(11h)));
  lab.release('D');
  lab.pass(1min);
  lab.granted('E', asks(half_day));
  lab.release('E');
  done(lab, 'F', asks(half_day, 13h));
  lab.pass(kDay);
  lab.granted('G');
  lab.queued('H', asks(half_day, 13h));
  lab.queued('I', asks(half_day));
  lab.pass(1s);
  lab.release('G');
  need(succeeds(lab, 'H', half_day, lab.granted('H', asks(half_day, 13h)), 13h) == Marked::yes,
       "not marked");
  done(lab, 'I', asks(half_day, 1s));
}

// Its own words say when it asked, and requests that are slow do not make that later.
void asked_at_first(Lab& lab) {
  const Once hour = within(1h);
  Ask long_ask = asks(hour);
  long_ask.ttl = 10h;
  const Token token = lab.granted('A', long_ask);
  lab.pass(59min + 55s);
  lab.queued('X');
  lab.queued('Y');
  lab.queued('B', asks(hour));
  lab.pass(10s);
  lab.queued('B', asks(hour, 0s));
  need(succeeds(lab, 'A', hour, token, 60min + 5s) == Marked::yes, "not marked");
  need(done(lab, 'B', asks(hour, 0s)).record == "record of A", "not by whom");
}

void waiters_learn_of_it(Lab& lab) {
  const Token token = lab.granted('A', asks(key("k")));
  for (char owner : {'B', 'C', 'D'}) lab.queued(owner, asks(key("k")));
  lab.queued('E');
  lab.queued('F', asks(key("k")));
  lab.pass(1s);
  need(succeeds(lab, 'A', key("k"), token) == Marked::yes, "not marked");
  need(lab.holders() == "E", "the next that is to run is not granted the lock");
  for (char owner : {'B', 'C', 'D'}) {
    need(lab.woken(owner), "a waiter whose work is done is not woken");
    need(done(lab, owner, asks(key("k"))).record == "record of A", "not by whom");
  }
  done(lab, 'F', asks(key("k")));
  lab.granted('E');
  lab.release('E');
  need(lab.holders().empty(), "a waiter runs although it is done");
  const auto history = lab.history();
  const auto skips = as<lock::Skips>(history.at(1), "no skips");
  need(skips.count == 4 && skips.done == 4 && skips.record == "record of F", "not counted");
  as<lock::Run>(history.at(0), "no run");
}

// At most 64 a script; the next one is woken for the rest.
void many_learn_of_it(Lab& lab) {
  const Token token = lab.granted('A', asks(key("k")));
  lab.queued('B', asks(key("k")));
  constexpr const char* kScript = R"(
    local clock = redis.call('LRANGE', 'clock', 0, 1)
    local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
    for i = 1, 199 do
      local owner = string.format('%032x', 4096 + i)
      redis.call('ZADD', KEYS[1], string.format('%.0f', now * 1000 + i), owner)
      redis.call('ZADD', KEYS[2], now + 15000, owner)
      redis.call('HSET', KEYS[3], owner, 'x', '+' .. owner,
                 '1 waiting 1 0 0 30000 0 1 once=key:k span=0 asked=' .. now)
    end)";
  lab.pass(1s);
  lab.cli({"EVAL", kScript, "3", lab.key("queue"), lab.key("alive"), lab.key("who")});
  lab.pass(1s);
  lab.queued('Y');
  succeeds(lab, 'A', key("k"), token);
  need(lab.inspect().live_waiters == 200 + 1 - 64, "another number leaves at once");
  lab.granted('Y');
  need(lab.inspect().live_waiters == 0, "some still wait");
}

// A mark that came between the grant and the claim, such as from the other servers of a quorum.
void checked_at_the_claim(Lab& lab) {
  lab.granted('A', asks(key("k")));
  lab.queued('B', asks(key("k")));
  lab.queued('C');
  lab.release('A');
  need(lab.holders() == "B", "B is not granted the lock");
  const std::string now = std::to_string(lab.inspect().holders.at(0).since.ms);
  lab.cli({"HSET", lab.key("once"), "key:k",
           "1 9000000000000 " + now + "000 " + now + " " + now + " " + now + " 0 0 record"});
  done(lab, 'B', asks(key("k")));
  need(lab.holders() == "C", "a waiter starts although it is done");
  lab.release('C');
  const Token token = lab.granted('D', asks(key("other")));
  lab.cli({"HSET", lab.key("once"), "key:other",
           "1 9000000000000 " + now + "000 " + now + " " + now + " " + now + " 0 0 record"});
  need(lab.granted('D', asks(key("other"))) == token, "what runs is called off");
}

void handed_over_to_the_next(Lab& lab) {
  lab.granted('A');
  lab.queued('B', asks(key("k")));
  lab.queued('C');
  const std::string now = std::to_string(lab.inspect().holders.at(0).since.ms);
  lab.cli({"HSET", lab.key("once"), "key:k",
           "1 9000000000000 " + now + "000 " + now + " " + now + " " + now + " 0 0 record"});
  lab.release('A');
  need(lab.holders() == "C", "another is granted the lock");
  done(lab, 'B', asks(key("k")));
}

void own_resent_requests(Lab& lab) {
  const Token token = lab.granted('A', asks(key("k")));
  need(lab.granted('A', asks(key("k"))) == token, "a resent acquire is another");
  for (int copy = 0; copy < 2; ++copy) {
    need(succeeds(lab, 'A', key("k"), token) == Marked::yes, "a resent release is not marked");
  }
  need(lab.forget().marks == 1, "it is marked twice, or not at all");
  need(succeeds(lab, 'A', key("k"), token) == Marked::no, "brought back after forget");
  lab.granted('B', asks(key("k")));
  lab.release('B');
}

// Runs nested in it go on: it has ended, though the lock is not free yet.
void nested_runs_go_on(Lab& lab) {
  const Once once = key("k", 9);
  struct Fixed final : util::Random {
    uint64_t next() override { return 0x1234; }
  } fixed;
  const lock::Entry inner = lock::Entry::fresh(fixed);
  const Token token = lab.granted('A', asks(once));
  as<lock::Renewal>(lab.renew('A', token, {}, inner), "the nested run does not enter");
  for (int copy = 0; copy < 2; ++copy) {
    need(succeeds(lab, 'A', once, token) == Marked::yes, "not marked");
  }
  done(lab, 'B', asks(once));
  need(lab.holders() == "A", "the nested run has lost the lock");
}

void no_mark(Lab& lab) {
  const Once once = key("k");
  fails(lab, 'A', once, lab.granted('A', asks(once)));
  const Token forced = lab.granted('B', asks(once));
  lab.force();
  need(succeeds(lab, 'B', once, forced) == Marked::no, "one that was forced out is marked");
  const Token broken = lab.granted('C', asks(once));
  lab.force(lock::ForceWhen::now);
  need(succeeds(lab, 'C', once, broken) == Marked::no, "one that was broken is marked");
  const Token released = lab.granted('D', asks(once));
  lab.release('D');
  need(succeeds(lab, 'D', once, released) == Marked::no, "one that was released before is marked");
  lab.granted('E', asks(once));
  lab.pass(31s);
  lab.granted('F', asks(once));
  lab.release('F', lock::Entry::outer(), "-", lock::ReleaseHow::unused);
  lab.granted('G', asks(once));
}

// A lease that was lost counts only where nobody can have had the lock since.
void late_success(Lab& lab) {
  const Once once = key("k");
  Token token = lab.granted('A', asks(once));
  lab.pass(31s);
  need(succeeds(lab, 'A', once, token) == Marked::yes, "a success that nobody came after");
  need(done(lab, 'B', asks(once)).record == "record of A", "not by whom");
  lab.forget();
  token = lab.granted('C', asks(once));
  lab.pass(31s);
  lab.granted('D', asks(once));
  need(succeeds(lab, 'C', once, token) == Marked::no, "marked though another was granted since");
  lab.release('D');
  need(succeeds(lab, 'C', once, token) == Marked::no, "marked though another was granted since");
  token = lab.granted('E', asks(once));
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  need(succeeds(lab, 'E', once, token) == Marked::yes, "not marked after data loss");
  done(lab, 'F', asks(once));
}

// By a client whose clock is older than the server's.
void asked_before_1970(Lab& lab) {
  const Ask ask = asks(key("k"), 24h * 36'500);
  const lock::Token token = lab.granted('A', ask);
  lab.ends('A', {*ask.once, ask.asked, token, true, {}});
  as<lock::AlreadyDone>(lab.acquire('B', asks(*ask.once)), "done once more");
}

}  // namespace

const std::vector<NamedCase>& once_cases() {
  static const std::vector<NamedCase> cases{
      {"once: what succeeded is done for the next with the same key or period", done_for_the_same},
      {"once: done is decided before anything else", before_anything_else},
      {"once: a mark of one that asked before 1970 is read", asked_before_1970},
      {"once: a distance counts from when each one asked", distance},
      {"once: the time of the first request counts", asked_at_first},
      {"once: waiters whose work is done leave, and learn of it", waiters_learn_of_it},
      {"once: however many are done, at most 64 leave in one script", many_learn_of_it},
      {"once: a grant is not claimed when it is done by then", checked_at_the_claim},
      {"once: the lock is not handed over to one that is done", handed_over_to_the_next},
      {"once: repeated requests mark once", own_resent_requests},
      {"once: a run has ended though nested ones go on", nested_runs_go_on},
      {"once: a run that failed, died or was broken leaves no mark", no_mark},
      {"once: a lost lease is marked only where no other was granted since", late_success},
  };
  return cases;
}

}  // namespace rlock::contract
