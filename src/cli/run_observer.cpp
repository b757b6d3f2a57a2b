#include "cli/run_observer.hpp"

#include <unistd.h>

#include <utility>

#include "cli/describe.hpp"
#include "cli/terminal.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using util::BootClock;
using util::Millis;

std::string event_line(const std::string& name, const run::Event& event) {
  std::string text = in_quotes(name) + ": " + std::string(word_of(event.kind));
  if (event.kind == run::EventKind::acquired || event.kind == run::EventKind::entered) {
    if (event.token.value == 0) return text;
    text += ", token " + std::to_string(event.token.value);
  }
  if (!event.detail.empty()) text += ": " + util::shortened(util::printable(event.detail), 300);
  return text;
}

}  // namespace

Talk talk_of(const Choices& choices) {
  if (choices.has(Opt::quiet)) return Talk::errors;
  return choices.has(Opt::verbose) ? Talk::verbose : Talk::usual;
}

RunObserver::RunObserver(lock::LockName name, Talk talk, std::optional<EventLog> log)
    : name_(std::move(name)),
      talk_(talk),
      live_(talk != Talk::errors && is_terminal(STDERR_FILENO)),
      log_(std::move(log)) {
  constexpr Millis kAtOnce{0}, kLater{1000};
  if (talk == Talk::errors || live_) return;
  reports_.emplace(talk == Talk::verbose ? kAtOnce : kLater);
}

void RunObserver::queued(const lock::Queued& queued) {
  std::lock_guard guard(mutex_);
  queued_ = queued;
  trouble_.reset();
  seen_ = BootClock::now();
  if (reports_) reports_->begin(seen_);
  if (live_) redraw();
  report_if_due();
}

void RunObserver::trouble(const util::Error& error) {
  std::lock_guard guard(mutex_);
  std::string text = util::printable(error.text);
  bool news = text != trouble_;
  trouble_ = std::move(text);
  if (live_) {
    redraw();
  } else if (news && talk_ == Talk::verbose) {
    mention(in_quotes(name_.text()) + ": trying again: " + *trouble_);
  }
}

void RunObserver::must_poll(const util::Error& error) {
  std::lock_guard guard(mutex_);
  if (talk_ == Talk::errors) return;
  line_.erase();
  mention("warning: " + util::printable(error.text) +
          "; the place in the queue is kept, and asked for about once a second");
}

Millis RunObserver::tick_every() const {
  std::lock_guard guard(mutex_);
  if (live_) return Millis(1000);
  return reports_ ? reports_->left(BootClock::now()) : Millis(0);
}

void RunObserver::tick() {
  std::lock_guard guard(mutex_);
  if (live_) redraw();
  report_if_due();
}

void RunObserver::redraw() {
  if (std::string text = state_text(); !text.empty()) line_.draw(text);
}

// A CI job that said nothing would look hung.
void RunObserver::report_if_due() {
  if (reports_ && reports_->due(BootClock::now())) mention(state_text());
}

std::string RunObserver::state_text() const {
  if (trouble_) return "waiting for " + in_quotes(name_.text()) + ": trying again: " + *trouble_;
  if (!queued_) return {};
  auto age = std::chrono::duration_cast<Millis>(BootClock::now() - seen_);
  return waiting_text(name_, *queued_, age);
}

void RunObserver::event(const run::Event& event) {
  std::lock_guard guard(mutex_);
  if (log_) log_->append(event);
  if (event.as) {
    holds_as_ = event.as;
    token_ = event.token;
  }
  if (event.kind != run::EventKind::enqueued) line_.erase();
  // A renewal every few seconds is no news.
  bool news = event.kind != run::EventKind::renewed && event.kind != run::EventKind::enqueued;
  if (talk_ == Talk::verbose && news) mention(event_line(name_.text(), event));
}

// Without waiting: a lease, a kill or a release may be due, and the renewals share the mutex.
// [SUPERVISION, The terminal]
void RunObserver::mention(std::string_view message) {
  constexpr size_t kMostUnsaid = size_t{64} * 1024;
  if (unsaid_.size() < kMostUnsaid) unsaid_ += said(message);
  unsaid_.erase(0, write_stderr(unsaid_, Millis(0)));
}

std::optional<lock::Owner> RunObserver::holds_as() const {
  std::lock_guard guard(mutex_);
  return holds_as_;
}

lock::Token RunObserver::token() const {
  std::lock_guard guard(mutex_);
  return token_;
}

// For whoever typed ^Z: nobody else stops a run and looks at a terminal.
void RunObserver::stopping(Millis left) {
  if (!live_) return;
  constexpr Millis kSecond{1000};
  if (left > kSecond) left -= left % kSecond;
  std::lock_guard guard(mutex_);
  say(in_quotes(name_.text()) + ": stopped, its lease is not: the command is ended in " +
      util::format_duration(left) + " unless it is resumed before");
}

// Also with -q: the lock is held until somebody acts.
void RunObserver::cannot_end(const std::vector<std::string>& survivors) {
  std::string text = in_quotes(name_.text()) + " stays locked: cannot end ";
  for (const std::string& survivor : survivors) {
    text += (&survivor == &survivors.front() ? "" : ", ") + util::printable(survivor);
  }
  text +=
      ". End it as its owner, or break the lock with \"rlock force-unlock\"; a second TERM or INT "
      "to pid " +
      std::to_string(getpid()) + " makes rlock exit without releasing the lock";
  std::lock_guard guard(mutex_);
  mention(text);
}

void RunObserver::finished(std::string_view event, const std::string& detail) {
  std::lock_guard guard(mutex_);
  if (log_) log_->append_end(event, detail);
}

void RunObserver::end() {
  std::lock_guard guard(mutex_);
  line_.erase();
  if (!unsaid_.empty()) write_stderr(std::exchange(unsaid_, {}), kLastWords);
}

}  // namespace rlock::cli
