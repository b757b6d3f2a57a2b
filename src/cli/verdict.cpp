#include "cli/verdict.hpp"

#include <cerrno>
#include <cstring>

#include "cli/describe.hpp"
#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/record.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// `"nightly" at db1:6379`
std::string lock_at(const RunContext& context) {
  return in_quotes(context.name) + " at " + util::printable(context.server);
}

// The server's rooms name lock and server themselves, those that fork do not.
std::string error_text(const util::Error& error, const RunContext& context) {
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

std::string unreleased_text(const std::optional<util::Error>& error) {
  if (!error) return {};
  return "the release could not be confirmed (" + util::printable(error->text) +
         "): the lock frees itself when its lease ends";
}

class Judge {
 public:
  explicit Judge(const RunContext& context) : context_(context) {}

  Verdict operator()(const run::Ended& ended) const {
    Verdict verdict;
    if (const auto* exited = std::get_if<run::Exited>(&ended.end)) {
      verdict.code = exited->code;
    } else {
      verdict.signal = std::get<run::Signaled>(ended.end).signal;
      verdict.code = 128 + *verdict.signal;
    }
    if (context_.unlocked) {
      verdict.weight = Weight::error;
      verdict.message = "warning: the command ran without " + lock_at(context_) + " (--fail-open)";
      return verdict;
    }
    std::string warning = ended.lost ? lease_text(*ended.lost) + "; the command ended by itself"
                                     : unreleased_text(ended.unreleased);
    if (!ended.survivors.empty()) {
      warning += (warning.empty() ? "" : "; ") + survivors_text(ended.survivors).substr(2);
    }
    if (warning.empty()) return verdict;
    verdict.weight = Weight::error;
    verdict.message =
        "warning: " + std::string(ended.lost ? "lost " : "") + lock_at(context_) + ": " + warning;
    return verdict;
  }

  Verdict operator()(const run::NotAcquired& skipped) const {
    return std::visit(*this, skipped.why);
  }

  Verdict operator()(const lock::Busy& busy) const {
    return {context_.conflict_code,
            {},
            Weight::notice,
            lock_at(context_) + " is busy: " + holder_phrase(busy.holder) + see_status()};
  }

  Verdict operator()(const lock::TimedOut& late) const {
    return {context_.conflict_code,
            {},
            Weight::notice,
            lock_at(context_) + " is busy, waited " + util::format_duration(context_.waited) +
                ": " + holder_phrase(late.holder) + see_status()};
  }

  Verdict operator()(const lock::Gone& gone) const {
    std::string operators = note_text(gone.note);
    if (operators.empty()) operators = "by an operator";
    return {kBusy,
            {},
            Weight::error,
            "removed from the queue of " + lock_at(context_) + " " + operators};
  }

  Verdict operator()(const lock::Upgrade&) const {
    if (context_.format != redis::Format::native) {
      return {kUsage,
              {},
              Weight::error,
              "cannot enter " + lock_at(context_) +
                  ": a run around this one holds it, and would be waited for without end; the " +
                  std::string(word_of(context_.format)) + " format knows no re-entry"};
    }
    return {kUsage,
            {},
            Weight::error,
            "cannot narrow " + lock_at(context_) +
                ": a run around this one shares it with others, and would be waited for without "
                "end; take it there in this mode, or here in that one"};
  }

  Verdict operator()(const run::WaitSignaled& ended) const {
    return {128 + ended.signal, ended.signal, Weight::silent, {}};
  }

  Verdict operator()(const run::LeaseLost& lost) const {
    std::string end =
        lost.never_started ? "; the command was not started" : "; the command was ended";
    if (!lost.survivors.empty()) {
      end += "; " + survivors_list(lost.survivors) + ", which may run beside the next holder";
    }
    return {kLost,
            {},
            Weight::error,
            "lost " + lock_at(context_) + ": " + lease_text(lost.lease) + end};
  }

  Verdict operator()(const run::RunLimit& limit) const {
    std::string message = lock_at(context_) + ": the command ran longer than --max-run";
    if (context_.max_run) message.append(" ").append(util::format_duration(*context_.max_run));
    if (context_.unlocked) message += " (without the lock: --fail-open)";
    message += limit.survivors.empty() ? " and was ended" : " and was to end";
    if (limit.lost) message += "; the lock was lost: " + lease_text(*limit.lost);
    if (context_.unlocked || limit.lost) {
      if (!limit.survivors.empty()) message += "; " + survivors_list(limit.survivors);
    } else {
      message += survivors_text(limit.survivors);
    }
    if (limit.unreleased) message += "; " + unreleased_text(limit.unreleased);
    return {kRunLimit, {}, Weight::error, message};
  }

  Verdict operator()(const run::CannotExec& failed) const {
    std::string message =
        "cannot run \"" + util::printable(context_.command) + "\": " + std::strerror(failed.error);
    if (failed.unreleased) {
      message += "; " + lock_at(context_) + ": " + unreleased_text(failed.unreleased);
    } else {
      message += (context_.unlocked ? "; held no lock " : "; released ") + lock_at(context_);
    }
    return {failed.error == ENOENT ? kNotFound : kCannotExecute, {}, Weight::error, message};
  }

  Verdict operator()(const run::Unprotected& end) const {
    std::string message = error_text(end.why, context_) + survivors_text(end.survivors);
    if (end.unreleased) message += "; " + unreleased_text(end.unreleased);
    return {exit_code(end.why.kind), {}, Weight::error, message};
  }

  Verdict operator()(const util::Error& error) const {
    return {exit_code(error.kind),
            {},
            Weight::error,
            error_text(error, context_) + std::string(next_step(error.kind))};
  }

 private:
  std::string see_status() const {
    return "; see rlock status " + util::printable(shell_quoted(context_.name));
  }

  const RunContext& context_;
};

}  // namespace

std::string unlocked_warning(const util::Error& error, const RunContext& context) {
  return "warning: " + error_text(error, context) + "; running without the lock (--fail-open)";
}

std::string lease_text(const run::LeaseEnd& lease) {
  if (lease.told) return lost_phrase(*lease.told);
  std::string text = "the lease ended";
  if (lease.by_guard) text += ", rlock was stopped or starved";
  if (lease.last_trouble) text += ": " + util::printable(lease.last_trouble->text);
  return text + since_phrase(lease.since);
}

Verdict judge(const run::Outcome& outcome, const RunContext& context) {
  return std::visit(Judge(context), outcome);
}

}  // namespace rlock::cli
