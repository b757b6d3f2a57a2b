#include "cli/commands/run_exit.hpp"

#include <cerrno>
#include <cstring>

#include "cli/output/exit_code.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/settings/format.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// `"nightly" at db1:6379`
std::string lock_at(const MessageContext& context) {
  return in_quotes(context.name) + " at " + util::printable(context.server);
}

// The server's rooms name lock and server themselves, those that fork do not.
std::string error_text(const Error& error, const MessageContext& context) {
  std::string text = util::printable(error.text);
  bool named = error.text.find(in_quotes(context.name)) != error.text.npos;
  bool placed = error.text.find(context.server) != error.text.npos;
  return named && placed ? text : lock_at(context) + ": " + text;
}

std::string survivors_list(const std::vector<std::string>& survivors) {
  std::string text;
  for (const std::string& survivor : survivors) {
    text += (text.empty() ? "could not end " : ", ") + util::printable(survivor);
  }
  return text;
}

// rlock leaves while they run, and does not release the lock.
std::string survivors_text(const std::vector<std::string>& survivors) {
  if (survivors.empty()) return {};
  return "; " + survivors_list(survivors) +
         "; the lock is not released: it frees itself when its lease ends";
}

std::string unreleased_text(const std::optional<Error>& error) {
  if (!error) return {};
  return "the release could not be confirmed (" + util::printable(error->text) +
         "): the lock frees itself when its lease ends";
}

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
    if (context_.unlocked) {
      run_exit.severity = Severity::error;
      run_exit.message = "warning: the command ran without " + lock_at(context_) + " (--fail-open)";
      return run_exit;
    }
    std::string warning = ended.lost ? lease_end_text(*ended.lost) + "; the command ended by itself"
                                     : unreleased_text(ended.unreleased);
    if (!ended.survivors.empty()) {
      warning += (warning.empty() ? "" : "; ") + survivors_text(ended.survivors).substr(2);
    }
    if (warning.empty()) return run_exit;
    run_exit.severity = Severity::error;
    run_exit.message =
        "warning: " + std::string(ended.lost ? "lost " : "") + lock_at(context_) + ": " + warning;
    return run_exit;
  }

  RunExit operator()(const run::NotAcquired& skipped) const {
    return std::visit(*this, skipped.why);
  }

  RunExit operator()(const lock::Busy& busy) const {
    return {context_.conflict_code,
            {},
            Severity::notice,
            lock_at(context_) + " is busy: " + holder_phrase(busy.holder) + see_status()};
  }

  RunExit operator()(const lock::TimedOut& late) const {
    return {context_.conflict_code,
            {},
            Severity::notice,
            lock_at(context_) + " is busy, waited " + util::format_duration(context_.waited) +
                ": " + holder_phrase(late.holder) + see_status()};
  }

  RunExit operator()(const lock::OwnerEnded& gone) const {
    std::string operators = note_text(gone.note);
    if (operators.empty()) operators = "by an operator";
    return {kBusy,
            {},
            Severity::error,
            "removed from the queue of " + lock_at(context_) + " " + operators};
  }

  RunExit operator()(const lock::Upgrade&) const {
    if (context_.format != redis::Format::native) {
      return {kUsage,
              {},
              Severity::error,
              "cannot enter " + lock_at(context_) +
                  ": a run around this one holds it, and would be waited for without end; the " +
                  std::string(to_string(context_.format)) + " format knows no re-entry"};
    }
    return {kUsage,
            {},
            Severity::error,
            "cannot narrow " + lock_at(context_) +
                ": a run around this one shares it with others, and would be waited for without "
                "end; take it there in this mode, or here in that one"};
  }

  RunExit operator()(const run::WaitSignaled& ended) const {
    return {128 + ended.signal, ended.signal, Severity::silent, {}};
  }

  RunExit operator()(const run::LeaseLost& lost) const {
    std::string end =
        lost.never_started ? "; the command was not started" : "; the command was ended";
    if (!lost.survivors.empty()) {
      end += "; " + survivors_list(lost.survivors) + ", which may run beside the next holder";
    }
    return {kLost,
            {},
            Severity::error,
            "lost " + lock_at(context_) + ": " + lease_end_text(lost.lease) + end};
  }

  RunExit operator()(const run::RunLimit& limit) const {
    std::string message = lock_at(context_) + ": the command ran longer than --max-run";
    if (context_.max_run) message.append(" ").append(util::format_duration(*context_.max_run));
    if (context_.unlocked) message += " (without the lock: --fail-open)";
    message += limit.survivors.empty() ? " and was ended" : " and was to end";
    if (limit.lost) message += "; the lock was lost: " + lease_end_text(*limit.lost);
    if (context_.unlocked || limit.lost) {
      if (!limit.survivors.empty()) message += "; " + survivors_list(limit.survivors);
    } else {
      message += survivors_text(limit.survivors);
    }
    if (limit.unreleased) message += "; " + unreleased_text(limit.unreleased);
    return {kRunLimit, {}, Severity::error, message};
  }

  RunExit operator()(const run::CannotExec& failed) const {
    std::string message =
        "cannot run \"" + util::printable(context_.command) + "\": " + std::strerror(failed.error);
    if (failed.unreleased) {
      message += "; " + lock_at(context_) + ": " + unreleased_text(failed.unreleased);
    } else {
      message += (context_.unlocked ? "; held no lock " : "; released ") + lock_at(context_);
    }
    return {failed.error == ENOENT ? kNotFound : kCannotExecute, {}, Severity::error, message};
  }

  RunExit operator()(const run::Unprotected& end) const {
    std::string message = error_text(end.why, context_) + survivors_text(end.survivors);
    if (end.unreleased) message += "; " + unreleased_text(end.unreleased);
    return {exit_code(end.why.kind), {}, Severity::error, message};
  }

  RunExit operator()(const Error& error) const {
    return {exit_code(error.kind),
            {},
            Severity::error,
            error_text(error, context_) + std::string(next_step(error.kind))};
  }

 private:
  std::string see_status() const {
    return "; see rlock status " + util::printable(shell_quoted(context_.name));
  }

  const MessageContext& context_;
};

}  // namespace

std::string unlocked_warning(const Error& error, const MessageContext& context) {
  return "warning: " + error_text(error, context) + "; running without the lock (--fail-open)";
}

std::string lease_end_text(const run::LeaseEnd& lease) {
  if (lease.reported) return lost_phrase(*lease.reported);
  std::string text = "the lease ended";
  if (lease.by_guard) text += ", rlock was stopped or starved";
  if (lease.last_error) text += ": " + util::printable(lease.last_error->text);
  return text + since_phrase(lease.later_holder);
}

RunExit to_exit(const run::RunOutcome& outcome, const MessageContext& context) {
  return std::visit(ExitVisitor(context), outcome);
}

}  // namespace rlock::cli
