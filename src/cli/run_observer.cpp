#include "cli/run_observer.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/view.hpp"
#include "lock/poller.hpp"
#include "util/duration.hpp"
#include "util/fd.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// The live line never waits for a terminal: rlock drops what the terminal does not accept
// immediately.
constexpr Millis kDrawTimeout{0};

std::string ordinal(uint64_t n) {
  constexpr std::string_view kEndings[] = {"th", "st", "nd", "rd"};
  bool teens = n % 100 >= 11 && n % 100 <= 13;
  return util::format("{}{}", n, kEndings[teens || n % 10 > 3 ? 0 : n % 10]);
}

std::string event_line(const std::string& name, const run::Event& event) {
  std::string text = util::format("{}: {}", in_quotes(name), to_string(event.kind));
  if (event.kind == run::EventKind::acquired || event.kind == run::EventKind::entered) {
    if (event.token.value == 0) return text;
    text += ", token " + std::to_string(event.token.value);
  }
  if (!event.detail.empty()) text += ": " + util::shortened(util::printable(event.detail), 300);
  return text;
}

constexpr size_t kMostUnprinted = size_t{64} * 1024;
// How long rlock waits for the disk of a file on stderr, so that lines stay in order.
constexpr Millis kDiskTimeout{200};

std::string in_a_row(const std::vector<std::string>& processes) {
  return util::printable(util::joined(processes, ", "));
}

}  // namespace

void StderrLines::print(std::string_view line) {
  if (unprinted_.size() < kMostUnprinted) unprinted_ += line;
  unprinted_.erase(0, write_stderr(unprinted_, Millis(0)));
}

void StderrLines::finish() {
  if (!unprinted_.empty()) write_stderr(std::exchange(unprinted_, {}), kFinalPrintTimeout);
}

void WaitingLine::draw(const std::string& text, const std::string& brief) {
  if (!is_foreground_terminal(STDERR_FILENO)) return;
  constexpr std::string_view kPrefix = "rlock: ";
  // One column stays free, because some terminals wrap after writing the last one.
  const size_t width = columns(STDERR_FILENO) - 1;
  const bool fits = util::display_width(text) + kPrefix.size() <= width;
  const std::string line =
      util::shortened(util::format("{}{}", kPrefix, fits || brief.empty() ? text : brief), width);
  const size_t length = util::display_width(line);
  const std::string rest(drawn_ > length ? drawn_ - length : 0, ' ');
  write_stderr(util::format("\r{}{}", line, rest), kDrawTimeout);
  drawn_ = length;
}

void WaitingLine::end(const std::string& text) {
  if (std::exchange(drawn_, 0) > 0) write_stderr(text, Millis(100));
}

void WaitingReports::begin(TimePoint now) {
  if (!next_) next_ = now + first_;
}

bool WaitingReports::due(TimePoint now) {
  constexpr Millis kEvery{60'000};
  if (!next_ || now < *next_) return false;
  while (*next_ <= now) *next_ += kEvery;
  began_ = true;
  return true;
}

Millis WaitingReports::remaining(TimePoint now) const {
  if (!next_) return Millis(0);
  return std::max(Millis(1), std::chrono::ceil<Millis>(*next_ - now));
}

std::string waiting_text(const lock::LockName& name, const lock::Queued& queued, Millis age,
                         TimeStyle style, std::optional<Millis> usual) {
  std::string text = "waiting for " + in_quotes(name.text());
  if (queued.position > 0) text += ", " + ordinal(queued.position) + " in line";
  if (queued.needs) {
    text += util::format("; only {} grants it: upgrade rlock on this host",
                         needs_phrase(*queued.needs));
  }
  if (!queued.obstacle) return text;
  const lock::Holder* holder = lock::holder_in(queued.obstacle);
  const bool alive = holder != nullptr && life_of(*holder) == Life::alive;
  return util::format("{}: {}{}", text, obstacle_phrase(queued.obstacle, style, usual, age),
                      alive ? " (alive)" : "");
}

std::string brief_waiting_text(const lock::LockName& name, const lock::Queued& queued, Millis age,
                               std::optional<Millis> usual) {
  if (!lock::holder_in(queued.obstacle) || queued.needs) return {};
  const auto holder = std::get<lock::Holder>(aged(*queued.obstacle, age));
  const std::string expected = brief_holder_phrase(holder, usual);
  if (expected.empty()) return {};
  const std::string position =
      queued.position > 0 ? util::format(" ({})", ordinal(queued.position)) : "";
  return util::format("waiting for {}{}: {}", in_quotes(name.text()), position, expected);
}

RunObserver::RunObserver(lock::LockName name, Verbosity verbosity, std::optional<EventLog> log,
                         ServiceManager manager)
    : name_(std::move(name)),
      verbosity_(verbosity),
      live_(verbosity != Verbosity::quiet && is_terminal(STDERR_FILENO)),
      log_(std::move(log)),
      prints_events_(verbosity == Verbosity::quiet && log_ && log_->is_stderr()),
      manager_(std::move(manager)) {
  // The disk of a file may hang. rlock opens a pipe or a terminal without blocking.
  if (util::is_regular_file(STDERR_FILENO)) {
    auto print = [lines = lines_](const std::string& line) {
      lines->print(line);
      return 0;
    };
    writer_.emplace(std::move(print), kMostUnprinted);
  }
  constexpr Millis kAtOnce{0}, kLater{1000};
  if (verbosity == Verbosity::quiet || live_) return;
  reports_.emplace(verbosity == Verbosity::verbose ? kAtOnce : kLater);
  outage_reports_.emplace(kLater);
}

void RunObserver::begin_wait(const run::Plan& plan, Session& session, const run::Signals& signals,
                             TimePoint start) {
  give_up_at_ = plan.limits.retry_until(start, plan.claim.queueing, std::nullopt, Answered::no);
  wait_began_ = start;
  server_ = session.server();
  if (outage_reports_) outage_reports_->begin(start);
  lock_options_ = session.lock_options();
  if (plan.limits.deadline != TimePoint::max()) {
    wait_ = std::chrono::duration_cast<Millis>(plan.limits.deadline - start);
  }
  if (session.format() == redis::Format::native) usual_.emplace(plan, session, signals);
  deadlock_.emplace(plan, session, signals);
}

// If nothing is drawn immediately, a wait shorter than this makes no read on the server.
constexpr Millis kShortWait{1000};

// For the first report, which needs the history, for checks of other locks, and for a holder that
// has died or released the lock: rlock can ask the server only between two requests.
Millis RunObserver::ask_again_after() const {
  std::lock_guard guard(mutex_);
  const TimePoint now = BootClock::now();
  if (unsure_) return Millis(0);
  const Millis look = deadlock_ ? deadlock_->remaining(now) : Millis::max();
  const bool needed = usual_ && reports_ && !reports_->began();
  return needed ? std::min(look, reports_->remaining(now)) : look;
}

// Whether the first report waits for the history: the server's next answer brings it, and the next
// error ends the wait.
bool RunObserver::awaits_history() const {
  return usual_ && !last_error_ && reports_ && !reports_->began();
}

void RunObserver::update_usual_time(const lock::Queued& queued) {
  const TimePoint now = BootClock::now();
  if (!queued_ && !outage_reported_) wait_began_ = now;
  const bool shown_soon =
      live_ || verbosity_ == Verbosity::verbose || now - wait_began_ >= kShortWait;
  const lock::Holder* holder = lock::holder_in(queued.obstacle);
  const bool held = holder != nullptr && holder->state == lock::HolderState::held;
  if (usual_ && verbosity_ != Verbosity::quiet && shown_soon && held) usual_->ask(*holder);
}

std::optional<Millis> RunObserver::usual_time() const {
  return usual_ ? usual_->known() : std::nullopt;
}

void RunObserver::look_for_deadlock(const lock::Queued& queued) {
  const lock::Holder* holder = lock::holder_in(queued.obstacle);
  if (!deadlock_ || holder == nullptr || verbosity_ == Verbosity::quiet) return;
  if (const auto found = deadlock_->look(*holder)) warn(*found);
}

// A holder that died is a reason to report the wait again.
bool RunObserver::mark_died(lock::Queued& queued) {
  if (lock::holder_in(queued.obstacle) == nullptr) {
    unsure_ = dead_holders_.mark({});
    return false;
  }
  auto& holder = std::get<lock::Holder>(*queued.obstacle);
  unsure_ = dead_holders_.mark({&holder, 1});
  const lock::Holder* before = queued_ ? lock::holder_in(queued_->obstacle) : nullptr;
  return holder.died && !(before != nullptr && before->died && before->owner == holder.owner);
}

void RunObserver::queued(const lock::Queued& seen) {
  lock::Queued queued = seen;
  update_usual_time(queued);
  look_for_deadlock(queued);
  if (queued.needs && !std::exchange(knows_rules_, true)) {
    warn(util::format("only {} grants {}: upgrade rlock on this host", needs_phrase(*queued.needs),
                      in_quotes(name_.text())));
  }
  std::lock_guard guard(mutex_);
  const bool died = mark_died(queued);
  if (queued_ && last_error_ && (outage_shown_ || verbosity_ == Verbosity::verbose)) {
    print_or_queue(connected_text(server_));
  }
  queued_ = std::move(queued);
  end_outage();
  queued_at_ = BootClock::now();
  if (reports_) reports_->begin(queued_at_);
  if (died && reports_ && reports_->began()) print_or_queue(state_text(TimeStyle::start));
  report_if_due();
  report_short_wait();
  if (live_) redraw();
  manager_.report_waiting(state_text(TimeStyle::start), queued_at_);
}

void RunObserver::transient_error(const Error& error) {
  std::lock_guard guard(mutex_);
  std::string text = util::printable(error.text);
  bool news = text != last_error_;
  last_error_ = std::move(text);
  if (live_) {
    redraw();
  } else if (std::exchange(unexplained_, false)) {
    print_or_queue(outage_text());
  } else if (news && verbosity_ == Verbosity::verbose) {
    print_or_queue(naming(name_.text(), "retrying: " + *last_error_));
  }
  manager_.report_waiting(state_text(TimeStyle::start), BootClock::now());
}

void RunObserver::no_server(const Error& why, TimePoint until) {
  {
    std::lock_guard guard(mutex_);
    give_up_at_ = until;
    if (outage_reports_) outage_reports_->begin(BootClock::now());
  }
  transient_error(why);
  std::lock_guard guard(mutex_);
  report_outage_if_due();
  if (why.kind == ErrorKind::denied && is_about_tls(why.cause)) report_distrust();
}

// Printed even with -q, because certificates that do not fit any more need a person. Without -q the
// reports of the outage say the same.
void RunObserver::report_distrust() {
  const TimePoint now = BootClock::now();
  if (!distrusted_since_) distrusted_since_ = now;
  if (verbosity_ != Verbosity::quiet || distrust_reported_) return;
  if (now - *distrusted_since_ < kShortWait) return;
  distrust_reported_ = true;
  print_or_queue(outage_text(), Weight::warning);
}

void RunObserver::must_poll(const Error& error) {
  warn(util::format("{}; rlock polls about once a second instead and keeps its position",
                    util::printable(error.text)));
}

Millis RunObserver::tick_every() const {
  std::lock_guard guard(mutex_);
  if (live_) return Millis(1000);
  const TimePoint now = BootClock::now();
  Millis report = reports_ && !awaits_history() ? reports_->remaining(now) : Millis(0);
  if (const Millis outage = outage_reports_ ? outage_reports_->remaining(now) : Millis(0);
      outage > Millis(0)) {
    report = report == Millis(0) ? outage : std::min(report, outage);
  }
  if (!manager_.expects_reports()) return report;
  return report == Millis(0) ? ServiceManager::kReportEvery
                             : std::min(report, ServiceManager::kReportEvery);
}

void RunObserver::tick() {
  std::lock_guard guard(mutex_);
  if (live_) redraw();
  report_outage_if_due();
  if (!awaits_history()) report_if_due();
  manager_.report_waiting(state_text(TimeStyle::start), BootClock::now());
}

void RunObserver::redraw() {
  if (last_error_ || (!queued_ && !hold_)) {
    line_.draw(give_up_at_ == TimePoint::max() ? state_text() : outage_text());
  } else if (queued_) {
    line_.draw(state_text(), brief_waiting_text(name_, *queued_, age_of_reply(), usual_time()));
  }
}

Millis RunObserver::age_of_reply() const {
  return std::chrono::duration_cast<Millis>(BootClock::now() - queued_at_);
}

// Reports, because a CI job without any output would look hung.
void RunObserver::report_if_due() {
  if (reports_ && reports_->due(BootClock::now())) print_or_queue(state_text(TimeStyle::start));
}

// Does not report if rlock is about to give up, because the error then says the same.
void RunObserver::report_outage_if_due() {
  const TimePoint now = BootClock::now();
  if (!outage_reports_ || !outage_reports_->due(now) || give_up_at_ - now <= kShortWait) return;
  outage_reported_ = outage_shown_ = true;
  unexplained_ = !last_error_;
  print_or_queue(outage_text());
}

// Call when the server has answered.
void RunObserver::end_outage() {
  last_error_.reset();
  unexplained_ = outage_shown_ = false;
  distrusted_since_.reset();
  give_up_at_ = TimePoint::max();
  if (outage_reports_) outage_reports_.emplace(kShortWait);
}

// Reports only a wait that was shown, so that cron has nothing to mail for a short one.
void RunObserver::report_wait(TimePoint granted_at) {
  const bool waited_long = granted_at - wait_began_ >= kShortWait;
  const auto waited = std::chrono::duration_cast<Millis>(granted_at - wait_began_);
  if (live_ ? waited_long : outage_reported_ || (queued_ && reports_ && reports_->began())) {
    const std::string before = death_before();
    print_or_queue(util::format("acquired {} after {}{}{}", in_quotes(name_.text()),
                                util::format_duration(waited), before.empty() ? "" : "; ", before));
  }
}

// How the holder died whose lease this run waited for.
std::string RunObserver::death_before() const {
  const lock::Holder* holder = queued_ ? lock::holder_in(queued_->obstacle) : nullptr;
  return holder != nullptr && holder->died ? death_phrase(*holder) : "";
}

// Reports once, below the line that names the holder.
void RunObserver::report_short_wait() {
  const lock::Holder* holder = lock::holder_in(queued_->obstacle);
  const auto usual = usual_time();
  if (!wait_ || !usual || holder == nullptr || (reports_ && !reports_->began())) return;
  if (*usual - holder->held <= *wait_) return;
  line_.erase();
  print_or_queue(util::format("-w {} may be too short: {} usually takes {}",
                              util::format_duration(*std::exchange(wait_, std::nullopt)),
                              in_quotes(name_.text()), util::format_rough_duration(*usual)));
}

// `waiting for "nightly", for another 57s at most: cannot connect to db1:6379: Connection refused`
std::string RunObserver::outage_text() const {
  const std::string name = in_quotes(name_.text());
  std::string why = last_error_.value_or(util::printable(server_) + " has not answered so far");
  const std::string action = "cannot acquire " + name + ": ";
  if (why.starts_with(action)) why.erase(0, action.size());
  const auto left = std::max(Millis(0), std::chrono::ceil<Millis>(give_up_at_ - BootClock::now()));
  return util::format("waiting for {}, for another {} at most: {}", name,
                      util::format_rough_duration(left), why);
}

std::string RunObserver::connected_text(const std::string& server) const {
  return naming(name_.text(), "connected to " + util::printable(server) + " again");
}

std::string RunObserver::state_text(TimeStyle style) const {
  const std::string waiting = "waiting for " + in_quotes(name_.text());
  if (last_error_) return waiting + ": retrying: " + *last_error_;
  if (!queued_) return waiting;
  return waiting_text(name_, *queued_, age_of_reply(), style, usual_time());
}

void RunObserver::report_to_manager(const run::Event& event) {
  if (event.kind == run::EventKind::acquired) {
    manager_.report_ready("holding " + in_quotes(name_.text()));
  } else if (event.kind == run::EventKind::unlocked) {
    manager_.report_ready(
        util::format("running without the lock {}: {}", in_quotes(name_.text()), event.detail));
  } else {
    manager_.retry_ready();
  }
}

void RunObserver::on(const run::Notification& notification) {
  std::visit([this](const auto& one) { show(one); }, notification);
}

void RunObserver::show(const run::Event& event) {
  report_event(event);
  // What the command writes comes below the lines so far.
  if (writer_ && begins_hold(event.kind)) writer_->drain(kDiskTimeout);
}

void RunObserver::report_event(run::Event event) {
  std::lock_guard guard(mutex_);
  if (event.kind == run::EventKind::acquired && event.detail.empty()) event.detail = death_before();
  if (log_) log_->append(event);
  if (begins_hold(event.kind)) {
    hold_ = event;
    if (after_wait_) after_wait_();
    outage_reports_.reset();
  }
  if (event.kind != run::EventKind::enqueued) line_.erase();
  report_to_manager(event);
  if (event.kind == run::EventKind::acquired) report_wait(event.at);
  // A renewal every few seconds is not worth a line.
  bool news = event.kind != run::EventKind::renewed && event.kind != run::EventKind::enqueued;
  if (verbosity_ == Verbosity::verbose && news) print_or_queue(event_line(name_.text(), event));
}

// Never waits for stderr, because a renewal, a kill or a release may be due, and renewals share the
// mutex.
void RunObserver::print_or_queue(std::string_view message, Weight weight) {
  if (prints_events_) return log_->append_message(message);
  const bool dated = verbosity_ == Verbosity::verbose;
  std::string line =
      message_line((dated ? time_text(wall_clock()) + " " : "").append(message), weight);
  if (writer_) return writer_->append(std::move(line));
  lines_->print(line);
}

void RunObserver::report(const std::string& message, Weight weight) {
  std::lock_guard guard(mutex_);
  line_.erase();
  print_or_queue(message, weight);
}

// Prints nothing with -q.
void RunObserver::warn(const std::string& message) {
  if (verbosity_ != Verbosity::quiet) report("warning: " + message, Weight::warning);
}

std::optional<run::Event> RunObserver::hold() const {
  std::lock_guard guard(mutex_);
  return hold_;
}

// Prints only on a terminal, for the user who typed ^Z.
void RunObserver::show(const run::Suspending& suspending) {
  if (!live_) return;
  Millis remaining = suspending.left;
  constexpr Millis kSecond{1000};
  if (remaining > kSecond) remaining -= remaining % kSecond;
  report(util::format(
      "{}: suspended; rlock will stop the command in {}, before the lease expires, unless you "
      "resume it first",
      in_quotes(name_.text()), util::format_duration(remaining)));
}

void RunObserver::show(const run::AwaitingReplicas& granted) {
  warn(util::format("{}; rlock keeps the lock and waits until they do",
                    util::printable(granted.why.text)));
}

// A failure of TLS is printed even with -q, because it needs a person.
void RunObserver::show(const run::RenewalsFail& outage) {
  if (verbosity_ == Verbosity::quiet && !is_about_tls(outage.why.cause)) return;
  report(util::format("warning: {}; {} in {} (--ttl) unless the server answers",
                      naming(name_.text(), util::printable(outage.why.text)),
                      outage.ends_command ? "rlock will stop the command" : "the lease expires",
                      util::format_rough_duration(outage.left)),
         Weight::warning);
}

void RunObserver::show(const run::RenewedAgain& renewed) {
  if (verbosity_ == Verbosity::quiet) return;
  report(util::format("renewed {} again after {}", in_quotes(name_.text()),
                      util::format_rough_duration(renewed.after)));
}

void RunObserver::show(const run::ConnectedAgain& connected) {
  if (verbosity_ == Verbosity::verbose) report(connected_text(connected.server));
}

void RunObserver::show(const run::Exempted& exempted) {
  const auto held = hold();
  const bool unlocked = held && held->kind == run::EventKind::unlocked;
  const std::string name = in_quotes(name_.text());
  report(util::format("{}these processes ignored the hang-up and keep running without the lock: {}",
                      unlocked ? name + ": " : "released " + name + "; ",
                      in_a_row(exempted.processes)));
}

void RunObserver::show(const run::Leftovers& left) {
  const auto& processes = left.processes;
  warn(util::format(
      "{}: the command failed with {} and left {} running without the lock: {}",
      in_quotes(name_.text()), left.code,
      processes.size() == 1 ? "a process" : util::format("{} processes", processes.size()),
      in_a_row(processes)));
}

// Printed even with -q, because the lock stays held until a person acts.
void RunObserver::show(const run::CannotStop& stuck) {
  report(
      util::format(
          "{} stays locked because rlock cannot stop {}. Stop these processes as the user who owns "
          "them, or break the lock: rlock force-unlock{} {}. To make rlock exit without releasing "
          "the lock, send pid {} a second TERM or INT",
          in_quotes(name_.text()), in_a_row(stuck.survivors), lock_options_,
          typed_name(name_.text()), getpid()),
      Weight::error);
}

void RunObserver::show(const run::Unheeded& unheeded) {
  if (verbosity_ == Verbosity::quiet) return;
  const pid_t command = unheeded.command;
  std::string next = "rlock waits until it exits";
  if (unheeded.kill_in) {
    next = *unheeded.kill_in == Millis(0) ? "rlock kills it (--stop-after)"
                                          : util::format("rlock kills it in {} (--stop-after)",
                                                         util::format_duration(*unheeded.kill_in));
  }
  const bool hint = command > 0 && unheeded.kill_in != Millis(0);
  if (hint) next += util::format(". To stop it now: kill -KILL {}", command);
  report(
      util::format("{}: {} still running {} after rlock passed on {}; {}", in_quotes(name_.text()),
                   command > 0 ? "the command is" : "processes of the command are",
                   util::format_duration(unheeded.after), util::signal_name(unheeded.signal), next),
      Weight::warning);
}

void RunObserver::show(const run::StillReleasing&) {
  report(
      util::format("{}: the command has exited, and rlock is still trying to release the lock; a "
                   "second TERM or INT makes rlock give up",
                   in_quotes(name_.text())));
}

void RunObserver::report_attempt_end(std::string_view event, const std::string& detail) {
  std::lock_guard guard(mutex_);
  if (event == "done") manager_.report_ready(detail);
  if (log_) log_->append_attempt_end(event, detail);
}

void RunObserver::finish_log() {
  std::lock_guard guard(mutex_);
  if (!log_) return;
  if (auto written = log_->drain(kFinalPrintTimeout); !written && !prints_events_) {
    print_message(util::format("warning: {}: {}", in_quotes(name_.text()), written.error().text));
  }
}

void RunObserver::keep_line() {
  std::lock_guard guard(mutex_);
  line_.keep();
}

void RunObserver::finish_output() {
  std::lock_guard guard(mutex_);
  line_.erase();
  if (!writer_ || writer_->drain(kDiskTimeout) == 0) lines_->finish();
}

}  // namespace rlock::cli
