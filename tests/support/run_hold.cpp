// A small rlock: hold_and_run() over a scripted store, so that a test can stop and kill it.
//
//   run_hold [KEY=VALUE]... -- COMMAND [ARG]...
//
// ttl, kill_after, max_run (ms) · watchdog=none · on_lost=ignore · until=descendants
// · outer=held|unseen, patience (ms) · grant_after (ms), queue=1 (never granted) ·
// renew=ok|silent|error|taken|forced|deleted|full, good_renewals (so many are ok first) ·
// once=1 (the run is done once; traces `success` or `failure` for a release that reports one) ·
// release=ok|error-once|error-silent|silent|forced|no-room · woken_after (ms) · wake=broken (the
// first wait for a wake fails) · trace=FILE (`BOOTTIME_NS CALL` a line) · locked=FILE (the
// command's processes lock it; traces `early` for a release while one of them is left) ·
// pressed=1 (the command starts when ^C is pending; says "press" before) · large=1 (its environment
// is too large for a guard that was forked before the grant) · result=FILE (one line: what the
// outcome was). The exit code is as the command line's.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "run/run.hpp"
#include "run/signals.hpp"
#include "support/fake_store.hpp"

namespace {

using namespace rlock;
using test::answer;
using test::silence;

class Settings {
 public:
  // The rest of argv is the command.
  int read(int argc, char** argv) {
    int at = 1;
    for (; at < argc && std::strcmp(argv[at], "--") != 0; ++at) {
      std::string word = argv[at];
      size_t equal = word.find('=');
      values_[word.substr(0, equal)] = word.substr(equal + 1);
    }
    return at + 1;
  }
  std::string text(const std::string& key, const char* otherwise = "") const {
    auto found = values_.find(key);
    return found == values_.end() ? otherwise : found->second;
  }
  long number(const std::string& key, long otherwise = 0) const {
    auto found = values_.find(key);
    return found == values_.end() ? otherwise : std::atol(found->second.c_str());
  }
  Millis ms(const std::string& key, long otherwise = 0) const {
    return Millis(number(key, otherwise));
  }

 private:
  std::map<std::string, std::string> values_;
};

void append_line(const std::string& file, const std::string& line) {
  if (file.empty()) return;
  util::Fd fd(open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  std::string text = line + "\n";
  [[maybe_unused]] ssize_t written = write(fd.get(), text.data(), text.size());
}

void trace_line(const Settings& set, const char* call) {
  auto now = BootClock::now().time_since_epoch().count();
  append_line(set.text("trace"), std::to_string(now) + " " + call);
}

bool is_locked(const std::string& file) {
  util::Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  return fd && flock(fd.get(), LOCK_SH | LOCK_NB) != 0;
}

Error unavailable_error() {
  return {ErrorKind::unavailable, "fake:6379: connection refused", Retry::later};
}

lock::LostHow how_lost(const std::string& word) {
  if (word == "taken") return lock::LostHow::taken;
  if (word == "forced") return lock::LostHow::forced;
  if (word == "full") return lock::LostHow::full;
  return lock::LostHow::deleted;
}

lock::InFlight<lock::RenewReply> renew(const std::string& word) {
  if (word == "ok") return answer<lock::RenewReply>(lock::RenewReply(lock::Renewal::extended));
  if (word == "silent") return silence<lock::RenewReply>();
  if (word == "error") return answer<lock::RenewReply>(unavailable_error());
  return answer<lock::RenewReply>(lock::RenewReply(lock::Lost{how_lost(word), std::nullopt, "x"}));
}

lock::InFlight<lock::ReleaseReply> release(const std::string& word, int call, bool success) {
  if (word == "silent" || (word == "error-silent" && call > 0))
    return silence<lock::ReleaseReply>();
  if (word.starts_with("error-") && call == 0)
    return answer<lock::ReleaseReply>(unavailable_error());
  auto ending = word == "forced" ? lock::OwnerEnd::forced : lock::OwnerEnd::released;
  lock::ReleaseReply reply{ending, "x"};
  if (success && word != "forced")
    reply.marked = word == "no-room" ? lock::Marked::no_room : lock::Marked::yes;
  return answer<lock::ReleaseReply>(std::move(reply));
}

test::FakeStore::Script script(const Settings& set) {
  static std::atomic<long> good_renewals{set.number("good_renewals")};
  static std::atomic<int> releases{0};
  static std::atomic<bool> broken{set.text("wake") == "broken"};
  test::FakeStore::Script script;
  script.acquire = [&set] {
    if (set.number("queue") != 0)
      return answer<lock::AcquireReply>(lock::AcquireReply(lock::Queued{}));
    return answer<lock::AcquireReply>(lock::AcquireReply(lock::Granted{{42}}),
                                      set.ms("grant_after"));
  };
  script.renew = [&set] { return renew(good_renewals-- > 0 ? "ok" : set.text("renew", "ok")); };
  script.release = [&set](const lock::ReleaseCall& call) {
    if (is_locked(set.text("locked"))) trace_line(set, "early");
    const bool success = call.once && call.once->succeeded;
    if (call.once) trace_line(set, success ? "success" : "failure");
    return release(set.text("release", "ok"), releases++, success);
  };
  script.wake = [&set](Millis) {
    if (broken.exchange(false)) return answer<lock::Wake>(unavailable_error());
    if (set.number("woken_after") == 0) return silence<lock::Wake>();
    return answer<lock::Wake>(lock::Wake::woken, set.ms("woken_after"));
  };
  // partial=1: some servers have not confirmed the grant.
  if (set.number("partial") != 0) script.reach = lock::GrantReach::majority;
  script.trace = [&set](const char* call) { trace_line(set, call); };
  return script;
}

// held: the outer run has its lease; unseen: it has `patience` (ms) to restore it.
run::OuterRun outer(const Settings& set, const lock::Owner& owner) {
  const bool seen = set.text("outer") == "held";
  return {run::HeldLock{owner, {42}}, seen, set.ms("patience")};
}

void await_key() {
  if (write(STDOUT_FILENO, "press\n", 6) != 6) return;
  while (run::pending_terminal_signals() == 0) usleep(1'000);
}

std::vector<std::string> environment(const Settings& set, const run::HeldLock& held_lock) {
  const bool granted = held_lock.token.value != 0;
  if (granted && set.number("pressed") != 0) await_key();
  std::vector<std::string> entries{"RLOCK_NAME=test", "RLOCK_OWNER=" + held_lock.owner.text(),
                                   "RLOCK_TOKEN=" + std::to_string(held_lock.token.value),
                                   "ENTRY=" + held_lock.entry.text()};
  if (set.number("large") != 0) entries.push_back("LARGE=" + std::string(5'000, 'x'));
  return entries;
}

run::Plan plan(const Settings& set, std::vector<std::string> command) {
  util::SystemRandom random;
  lock::AcquireCall claim{*lock::LockName::parse("test"), lock::Owner::fresh(random)};
  claim.ttl = set.ms("ttl", 30'000);
  run::Plan plan{std::move(claim), {}, std::move(command), {}};
  plan.environment = [&set](const run::HeldLock& held_lock) { return environment(set, held_lock); };
  plan.kill_after = set.ms("kill_after", 100);
  if (set.number("max_run") != 0) plan.max_run = set.ms("max_run");
  if (set.text("until") == "descendants") plan.until = run::ReleaseAfter::descendants;
  if (!set.text("outer").empty()) plan.outer_runs.push_back(outer(set, plan.claim.owner));
  if (set.text("on_lost") == "ignore") plan.on_lost = run::OnLost::ignore;
  if (set.number("once") != 0) plan.claim.once = lock::Once{lock::OnceKind::key, "k", {}, {}};
  if (set.text("watchdog") == "none") plan.watchdog = lock::Watchdog::none;
  return plan;
}

struct ResultLine {
  int code;
  int signal;
  std::string text;
};

std::string describe(const run::LeaseEnd& end) {
  std::string text =
      end.reported ? " reported=" + std::to_string(static_cast<int>(end.reported->how)) : "";
  return text + (end.by_guard ? " by_guard" : "") + (end.last_error ? " last_error" : "");
}

ResultLine result_line(const run::Ended& ended) {
  std::string text = "ended";
  if (ended.lost) text += " lost" + describe(*ended.lost);
  if (ended.unreleased) text += " unreleased (" + ended.unreleased->text + ")";
  constexpr const char* kSuccess[] = {"", " recorded", " pushed out", " stopped", " unconfirmed"};
  text += kSuccess[static_cast<size_t>(ended.success)];
  if (auto* how = std::get_if<run::Signaled>(&ended.end)) return {0, how->signal, text};
  return {std::get<run::Exited>(ended.end).code, 0, text};
}
ResultLine result_line(const run::NotAcquired&) {
  return {75, 0, "not acquired"};
}
ResultLine result_line(const run::WaitSignaled& waited) {
  return {0, waited.signal, "wait signaled"};
}
ResultLine result_line(const run::LeaseLost& lost) {
  std::string text = "lost" + describe(lost.lease) + (lost.never_started ? " never_started" : "");
  for (const std::string& line : lost.survivors) text += " [" + line + "]";
  return {76, 0, text};
}
ResultLine result_line(const run::RunLimit& limit) {
  std::string text = "run limit";
  for (const std::string& line : limit.survivors) text += " [" + line + "]";
  return {124, 0, text};
}
ResultLine result_line(const run::CannotExec& failed) {
  std::string text = failed.unreleased ? "cannot exec unreleased" : "cannot exec";
  return {failed.error == ENOENT ? 127 : 126, 0, text};
}
ResultLine result_line(const run::Unprotected& end) {
  return {71, 0, "unprotected " + end.why.text};
}
ResultLine result_line(const Error& error) {
  return {71, 0, "error " + error.text};
}

constexpr const char* kEvents[] = {"enqueued", "acquired",     "entered", "unlocked",
                                   "renewed",  "renew-failed", "lost",    "terminating",
                                   "killed",   "exited",       "released"};

class Tracer final : public run::Observer {
 public:
  explicit Tracer(const Settings& set) : set_(set) {}
  void event(const run::Event& event) override {
    append_line(set_.text("trace"), std::to_string(event.at.time_since_epoch().count()) +
                                        " event-" + kEvents[static_cast<size_t>(event.kind)]);
  }

 private:
  const Settings& set_;
};

}  // namespace

int main(int argc, char** argv) {
  run::open_standard_descriptors();
  Settings set;
  int command = set.read(argc, argv);
  auto signals = run::Signals::take();
  if (!signals) return 71;
  auto calls = script(set);
  lock::MakeStore make = [&] { return std::make_unique<test::FakeStore>(calls); };
  lock::MakeInspector look = [] { return std::make_unique<test::FakeInspector>(); };
  auto store = make();
  Tracer tracer(set);
  auto outcome = run::hold_and_run(plan(set, {argv + command, argv + argc}), {*store, make, look},
                                   tracer, *signals);
  ResultLine reported = std::visit([](const auto& what) { return result_line(what); }, outcome);
  append_line(set.text("result"), reported.text);
  if (reported.signal != 0) run::die_by(reported.signal);
  return reported.code;
}
