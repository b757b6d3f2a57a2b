#include "cli/run_exit.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/output/console.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/output/view.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// `"nightly" at db1:6379`
std::string lock_at(const MessageContext& context) {
  return in_quotes(context.name) + " at " + util::printable(context.server);
}

// Errors of a server name the lock and the server already; errors of fork and the like do not.
std::string error_text(const Error& error, const MessageContext& context) {
  std::string text = util::printable(error.text);
  bool has_name = error.text.find(in_quotes(context.name)) != error.text.npos;
  bool has_server = error.text.find(context.server) != error.text.npos;
  return has_name && has_server ? text : lock_at(context) + ": " + text;
}

// Processes of the command that rlock could not end.
using Survivors = std::vector<std::string>;

// What becomes of the lease while they run on.
enum class LeaseState { kept, lost, no_lease };

std::string survivors_text(const Survivors& survivors, LeaseState lease) {
  constexpr const char* kConsequences[] = {
      "; the lock was not released and will be free when its lease ends",
      ", which may run beside the next holder", ""};
  return "could not end " + util::printable(util::joined(survivors, ", ")) +
         kConsequences[static_cast<size_t>(lease)];
}

std::string unreleased_text(const Error& error) {
  return "the release was not confirmed (" + util::printable(error.text) +
         "); the lock will be free at the latest when its lease ends";
}

// One row for each end: its exit code, its event, and what is said of it.
class ExitVisitor {
 public:
  explicit ExitVisitor(const MessageContext& context) : context_(context) {}

  RunExit operator()(const run::Ended& ended) const {
    RunExit run_exit;
    if (const auto* exited = std::get_if<run::Exited>(&ended.end)) {
      run_exit.code = exited->code;
    } else {
      run_exit.signal = std::get<run::Signaled>(ended.end).signal;
      run_exit.code = 128 + *run_exit.signal;
    }
    const std::string warning = warning_of(ended);
    if (context_.report && run_exit.code != 0) run_exit.message = failure_report(run_exit);
    if (!warning.empty()) {
      run_exit.message += (run_exit.message.empty() ? "warning: " : "; warning: ") + warning;
    }
    if (!run_exit.message.empty()) run_exit.severity = Severity::error;
    return run_exit;
  }

  RunExit operator()(const lock::Busy& busy) const {
    const bool closed = busy.holder && busy.holder->state == lock::HolderState::closed;
    return {.code = context_.conflict_code,
            .severity = Severity::notice,
            .message = lock_at(context_) + (closed ? " is " : " is busy: ") +
                       holder_phrase(busy.holder) + see_status(),
            .event = "skipped",
            .holder = busy.holder};
  }

  RunExit operator()(const lock::TimedOut& late) const {
    return {.code = context_.conflict_code,
            .severity = Severity::notice,
            .message = lock_at(context_) + " is still busy after " +
                       util::format_duration(context_.waited) + ": " + holder_phrase(late.holder) +
                       see_status(),
            .event = "timed-out",
            .holder = late.holder};
  }

  RunExit operator()(const lock::AlreadyDone& done) const {
    return {.code = context_.done_code,
            .severity = Severity::notice,
            .message = in_quotes(context_.name) + " was done " + done_phrase(done, wall_clock()),
            .event = "done"};
  }

  RunExit operator()(const lock::FailedTooOften& failed) const {
    const std::string name = util::printable(shell_quoted(context_.name));
    return {.code = kBusy,
            .severity = Severity::notice,
            .message =
                lock_at(context_) + " failed " + std::to_string(failed.times) +
                (failed.times == 1 ? " time" : " times") +
                " and is not tried again (--max-failures); see rlock history " + name +
                ", and to try it again: rlock forget " + name +
                (context_.once_key ? " --once " + util::printable(shell_quoted(*context_.once_key))
                                   : ""),
            .event = "failed"};
  }

  RunExit operator()(const lock::Superseded& newer) const {
    return {.code = context_.superseded_code,
            .severity = Severity::notice,
            .message = lock_at(context_) + " was superseded " + newer_phrase(newer),
            .event = "superseded",
            .kind = "superseded"};
  }

  RunExit operator()(const lock::OwnerEnded& gone) const {
    const std::string note = note_text(gone.note);
    return failure(kBusy, "removed",
                   "removed from the queue of " + lock_at(context_) + " " +
                       (note.empty() ? "by an operator" : note));
  }

  RunExit operator()(const lock::Upgrade&) const {
    const bool native = context_.format == redis::Format::native;
    const std::string format(to_string(context_.format));
    return failure(
        kUsage, "failed",
        lock_at(context_) +
            (native ? ": the outer run holds this lock shared or with more slots, so this run "
                      "would wait forever; use the same mode in both runs"
                    : ": the outer run holds this lock, so this run would wait forever; the " +
                          format + " format has no re-entry"));
  }

  RunExit operator()(const run::WaitSignaled& ended) const {
    return {.code = 128 + ended.signal, .signal = ended.signal, .event = "interrupted"};
  }

  RunExit operator()(const run::LeaseLost& lost) const {
    std::string message = "lost " + lock_at(context_) + ": " + lease_end_text(lost.lease);
    if (lost.never_started) message += "; the command was not started";
    if (!lost.survivors.empty()) {
      message += "; " + survivors_text(lost.survivors, LeaseState::lost);
    } else if (!lost.never_started) {
      message += "; the command was ended";
    }
    return failure(kLost, lost.never_started ? "failed" : "", message);
  }

  RunExit operator()(const run::RunLimit& limit) const {
    std::string message = lock_at(context_) + ": the command ran longer than --max-run";
    if (context_.max_run) message += " " + util::format_duration(*context_.max_run);
    if (limit.survivors.empty()) message += " and was ended";
    if (context_.unlocked) message += " (it ran without the lock: --fail-open)";
    if (limit.lost) message += "; the lock was lost: " + lease_end_text(*limit.lost);
    return failure(kRunLimit, "",
                   message + left_behind(limit.survivors, limit.lost, limit.unreleased));
  }

  RunExit operator()(const run::CannotExec& failed) const {
    std::string message = "cannot run \"" + util::printable(context_.command) +
                          "\": " + std::strerror(failed.error) + "; " + lock_at(context_);
    message += failed.unreleased   ? ": " + unreleased_text(*failed.unreleased)
               : context_.unlocked ? " was not locked (--fail-open)"
                                   : " was released";
    return failure(failed.error == ENOENT ? kNotFound : kCannotExecute, "failed", message);
  }

  RunExit operator()(const run::Unprotected& end) const {
    std::string message = error_text(end.why, context_);
    if (context_.unlocked) message += " (the command ran without the lock: --fail-open)";
    return failure(exit_code(end.why.kind), "failed",
                   message + left_behind(end.survivors, {}, end.unreleased));
  }

  RunExit operator()(const Error& error) const {
    return failure(exit_code(error.kind),
                   error.kind == ErrorKind::unavailable ? "unreachable" : "failed",
                   error_text(error, context_) + std::string(next_step(error.kind)));
  }

 private:
  static RunExit failure(int code, std::string_view event, std::string message) {
    return {
        .code = code, .severity = Severity::error, .message = std::move(message), .event = event};
  }

  // What is said of processes that go on, and of a release that nobody confirmed.
  std::string left_behind(const Survivors& survivors, const std::optional<run::LeaseEnd>& lost,
                          const std::optional<Error>& unreleased) const {
    std::string text;
    if (!survivors.empty()) text = "; " + survivors_text(survivors, lease_state(lost));
    return unreleased ? text + "; " + unreleased_text(*unreleased) : text;
  }

  LeaseState lease_state(const std::optional<run::LeaseEnd>& lost) const {
    if (context_.unlocked) return LeaseState::no_lease;
    return lost ? LeaseState::lost : LeaseState::kept;
  }

  // `"nightly" failed on web4: exit 3 after 12m`
  std::string failure_report(const RunExit& end) const {
    return in_quotes(context_.name) + " failed on " +
           util::printable(own_record().host.value_or("this host")) + ": " +
           (end.signal ? "signal " + std::to_string(*end.signal)
                       : "exit " + std::to_string(end.code)) +
           " after " + util::format_duration(context_.ran);
  }

  // What the end leaves to say of lease and release; empty where all went well.
  std::string ending_text(const run::Ended& ended) const {
    std::string text;
    if (ended.lost) text = lease_end_text(*ended.lost) + "; the command ended by itself";
    if (ended.unreleased && !ended.lost) text = unreleased_text(*ended.unreleased);
    if (!ended.survivors.empty()) {
      text += (text.empty() ? "" : "; ") + survivors_text(ended.survivors, lease_state(ended.lost));
    }
    const std::string success = success_text(ended);
    return text + (text.empty() || success.empty() ? "" : "; ") + success;
  }

  // Empty where all went well.
  std::string warning_of(const run::Ended& ended) const {
    const std::string text = ending_text(ended);
    if (context_.unlocked) {
      return "the command ran without " + lock_at(context_) + " (--fail-open)" +
             (text.empty() ? "" : "; " + text);
    }
    return text.empty() ? text : (ended.lost ? "lost " : "") + lock_at(context_) + ": " + text;
  }

  // Where the work may be done again although it succeeded.
  std::string success_text(const run::Ended& ended) const {
    const auto* exited = std::get_if<run::Exited>(&ended.end);
    const bool unlocked = context_.unlocked && exited != nullptr && exited->code == 0;
    if (!context_.once) return {};
    switch (unlocked ? run::Success::unconfirmed : ended.success) {
      case run::Success::unconfirmed:
        return "its success is not recorded; it may run again";
      case run::Success::stopped:
        return "it was asked to stop, so its success is not recorded; it may run again";
      case run::Success::pushed_out_another:
        return "its success is recorded, and the KEY that was last asked for the longest time ago "
               "is forgotten, because the server keeps 1000 for each lock; that one may run again";
      case run::Success::none:
      case run::Success::recorded:
        break;
    }
    return {};
  }

  std::string see_status() const {
    return "; see rlock status " + util::printable(shell_quoted(context_.name));
  }

  const MessageContext& context_;
};

}  // namespace

std::string unlocked_warning(const Error& error, const MessageContext& context) {
  return "warning: " + error_text(error, context) + "; running without the lock (--fail-open)" +
         (context.once ? ", and not only once: nothing is recorded as done" : "");
}

std::string lease_end_text(const run::LeaseEnd& lease) {
  if (lease.reported) return lost_phrase(*lease.reported);
  std::string text = "the lease ended";
  if (lease.by_guard) text += " while rlock was stopped or got no processor time";
  if (lease.last_error) text += ": " + util::printable(lease.last_error->text);
  return text + since_phrase(lease.later_holder);
}

RunExit to_exit(const run::RunOutcome& outcome, const MessageContext& context) {
  return std::visit(ExitVisitor(context), outcome);
}

int report_exit(const RunExit& run_exit, Verbosity verbosity) {
  const bool should_print =
      run_exit.severity == Severity::error ||
      (run_exit.severity == Severity::notice && verbosity != Verbosity::quiet);
  if (should_print) print_message(run_exit.message);
  if (run_exit.signal) run::die_by(*run_exit.signal);
  return run_exit.code;
}

}  // namespace rlock::cli
