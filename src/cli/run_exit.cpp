#include "cli/run_exit.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

#include "cli/output/console.hpp"
#include "cli/output/dead_holders.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/output/view.hpp"
#include "cli/ticket_file.hpp"
#include "run/signals.hpp"
#include "util/duration.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// `"nightly" at db1:6379`
std::string lock_at(const MessageContext& context) {
  return util::format("{} at {}", in_quotes(context.name()),
                      util::printable(context.session.server()));
}

// Adds the lock and the server to an error that does not name them: errors of a server do, errors
// of system calls do not.
std::string error_text(const Error& error, const MessageContext& context) {
  std::string text = util::printable(error.text);
  bool has_name = error.text.find(in_quotes(context.name())) != error.text.npos;
  bool has_server = error.text.find(context.session.server()) != error.text.npos;
  return has_name && has_server ? text : util::format("{}: {}", lock_at(context), text);
}

// Processes of the command that rlock could not stop.
using Survivors = std::vector<std::string>;

// The state of the lease while these processes keep running.
enum class LeaseState { kept, lost, no_lease };

std::string survivors_text(const Survivors& survivors, LeaseState lease) {
  constexpr const char* kConsequences[] = {
      "; the lock was not released and is free when its lease expires",
      ", which may still be running when the next holder starts", ""};
  return util::format("rlock could not stop {}{}; stop these processes as the user who owns them",
                      util::printable(util::joined(survivors, ", ")),
                      kConsequences[static_cast<size_t>(lease)]);
}

std::string unreleased_text(const Error& error) {
  return util::format(
      "the server did not confirm the release ({}); the lock is free when its lease expires, at "
      "the latest",
      util::printable(error.text));
}

// What to check if a server, and not an operator, ended the lease.
std::string_view cause_to_check(const lock::Lost& lost) {
  const bool lost_keys = lost.data_lost || lost.how == lock::LostHow::deleted ||
                         lost.how == lock::LostHow::gone || lost.how == lock::LostHow::unissued;
  return lost_keys ? "; rlock doctor checks whether the server keeps its keys" : "";
}

// Why a command that exists cannot be executed: its interpreter or its loader is missing.
std::string missing_interpreter(const std::string& command) {
  std::string line;
  for (const std::string& path : util::candidates_on_path(command)) {
    std::ifstream file(path);
    if (file && std::getline(file, line)) break;
  }
  if (!line.starts_with("#!")) return "the loader that the program names does not exist";
  const size_t from = std::min(line.find_first_not_of(" \t", 2), line.size());
  const bool windows = line.ends_with('\r');
  if (windows) line.pop_back();
  const std::string name =
      line.substr(from, std::min(line.find_first_of(" \t", from), line.size()) - from);
  constexpr size_t kLongest = 200;
  return util::format("its first line names the interpreter \"{}\"{}, which does not exist",
                      util::shortened(util::printable(name), kLongest),
                      windows ? " and a CR behind it (the file has Windows line endings)" : "");
}

// Whether only a shell can run this: `VAR=1 backup`, `cd /srv`, or a line in quotes.
bool is_shell_text(const std::vector<std::string>& argv) {
  constexpr std::string_view kBuiltIn[] = {"cd",  "source", ".",     "export", "eval", "exec",
                                           "set", "ulimit", "umask", "if",     "for",  "while"};
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  const std::string& word = argv.front();
  const size_t name = word.find_first_not_of(kLetters);
  return (argv.size() == 1 && word.find(' ') != word.npos) ||
         (name != word.npos && name > 0 && word[name] == '=') ||
         std::find(std::begin(kBuiltIn), std::end(kBuiltIn), word) != std::end(kBuiltIn);
}

std::string shell_hint(const std::vector<std::string>& argv) {
  if (!is_shell_text(argv)) return {};
  return util::format(
      "; rlock starts no shell: write -c {} instead of -- COMMAND",
      util::printable(util::shell_quoted(util::shortened(util::joined(argv, " "), 200))));
}

// The exit code of the command, as a shell reports it.
int own_code(const run::RunEnd& end) {
  if (end.exec_error != 0) return run::exec_exit_code(end.exec_error);
  const auto* exited = std::get_if<run::Exited>(&end.end);
  return exited != nullptr ? exited->code : 128 + std::get<run::Signaled>(end.end).signal;
}

int exit_code_of(const run::EndRow& row, const run::RunOutcome& outcome, const ExitCodes& chosen) {
  if (const int* code = std::get_if<int>(&row.exit_code)) return *code;
  switch (std::get<run::CodeOf>(row.exit_code)) {
    case run::CodeOf::command:
      return own_code(std::get<run::RunEnd>(outcome));
    case run::CodeOf::error:
      return chosen.of(std::get<Error>(outcome).kind);
    case run::CodeOf::signal:
      return 128 + std::get<run::WaitSignaled>(outcome).signal;
    case run::CodeOf::busy:
      return chosen.busy;
    case run::CodeOf::done:
      return chosen.done;
    case run::CodeOf::superseded:
      return chosen.superseded;
    case run::CodeOf::failures:
      return chosen.failures;
  }
  return kInternal;
}

// The signal that rlock dies of; nullopt: it exits.
std::optional<int> signal_of(run::RunCause cause, const run::RunOutcome& outcome) {
  if (const auto* wait = std::get_if<run::WaitSignaled>(&outcome)) return wait->signal;
  if (cause != run::RunCause::command) return std::nullopt;
  const auto* signaled = std::get_if<run::Signaled>(&std::get<run::RunEnd>(outcome).end);
  return signaled != nullptr ? std::optional(signaled->signal) : std::nullopt;
}

// `backup` of a command's text `/usr/bin/backup --full`.
std::string_view program_in(std::string_view command) {
  command = command.substr(0, command.find(' '));
  return command.substr(command.rfind('/') + 1);
}

// Two jobs that share a NAME and a KEY by mistake: the work of one of them is never done. Arguments
// may differ: they often contain a date.
std::string other_work_warning(const lock::AlreadyDone& done,
                               const std::vector<std::string>& command) {
  const Record theirs = decode_record(done.record);
  const std::string own = command_text(command);
  if (!theirs.command || program_in(*theirs.command) == program_in(own)) return {};
  return util::format(
      "; warning: this run was to execute another program, {}, which did not run: give each kind "
      "of work a NAME or a KEY of its own",
      util::printable(program_in(own)));
}

// The first warning that applies.
std::string done_warning(const lock::AlreadyDone& done, const MessageContext& context) {
  const std::string warning = other_work_warning(done, context.settings.plan.argv);
  return warning.empty() ? zone_warning(done, context.claim().once) : warning;
}

// The message for each end; empty if all went well.
class EndText {
 public:
  explicit EndText(const MessageContext& context) : context_(context) {}

  std::string operator()(const run::RunEnd& end) const {
    if (!end.ended_for) return end.exec_error != 0 ? cannot_exec_text(end) : command_text(end);
    switch (*end.ended_for) {
      case run::EndCause::lease:
        return lost_text(end);
      case run::EndCause::run_limit:
        return run_limit_text(end);
      case run::EndCause::no_renewal:
      case run::EndCause::no_guard:
        return unprotected_text(end);
      case run::EndCause::cancel:
      case run::EndCause::died:
        break;
    }
    return command_text(end);
  }

  std::string operator()(const lock::Refused& refused) const {
    return std::visit([this](const auto& why) { return refusal_text(why); }, refused);
  }

  std::string operator()(const lock::TimedOut& late) const {
    const std::string needs = late.needs
                                  ? util::format("only {} grants it: upgrade rlock on this host",
                                                 needs_phrase(*late.needs))
                                  : std::string();
    if (late.needs && !late.obstacle) {
      return util::format("{} was not granted within {} (--wait): {}; {}", lock_at(context_),
                          util::format_duration(context_.waited), needs,
                          next_call() + what_to_do(late.obstacle));
    }
    return util::format(
        "{} {} {} (--wait): {}; {}{}", lock_at(context_),
        lock::is_closure(late.obstacle) ? "did not open within" : "is still busy after",
        util::format_duration(context_.waited), held_text(late.obstacle),
        needs.empty() ? needs : needs + "; ", next_call() + what_to_do(late.obstacle));
  }

  std::string operator()(const lock::Upgrade&) const {
    if (context_.session.format() == redis::Format::native) {
      return util::format(
          "{}: the outer run holds this lock shared or with more slots, so this run would wait "
          "forever; use the same mode in both runs",
          lock_at(context_));
    }
    return util::format(
        "{}: the outer run holds this lock, so this run would wait forever; the {} format has no "
        "re-entry",
        lock_at(context_), to_string(context_.session.format()));
  }

  // Empty if the user typed ^C and sees the line of the wait.
  std::string operator()(const run::WaitSignaled& wait) const {
    if (wait.signal == SIGINT && is_terminal(STDERR_FILENO)) return {};
    return util::format(
        "{}: stopped by {} after {} of waiting; the {}", lock_at(context_),
        util::signal_name(wait.signal), util::format_duration(context_.waited),
        context_.settings.plan.argv.empty() ? "lock was not acquired" : "command was not started");
  }

  std::string operator()(const Error& error) const {
    return error_text(error, context_) + next_step(error, context_.longer()) +
           context_.blocking_key;
  }

 private:
  std::string refusal_text(const lock::Busy& busy) const {
    const bool closed = lock::is_closure(busy.obstacle);
    return util::format("{} is {}{}; {}", lock_at(context_),
                        closed ? "" : "busy" + full_queue(busy.waiters) + ": ",
                        held_text(busy.obstacle), what_to_do(busy.obstacle));
  }

  std::string refusal_text(const lock::AlreadyDone& done) const {
    return util::format("{} was done {}{}", in_quotes(context_.name()),
                        done_phrase(done, context_.claim().once, wall_clock()),
                        done_warning(done, context_));
  }

  std::string refusal_text(const lock::FailedTooOften& failed) const {
    const bool has_key =
        context_.claim().once && context_.claim().once->kind == lock::OnceKind::key;
    return util::format(
        "{} failed {} {} and is not tried again (--max-failures); see {}, and to try it again: {}",
        lock_at(context_), failed.times, failed.times == 1 ? "time" : "times",
        command_line("history"), command_line("forget", has_key ? " --once=" + typed_key() : ""));
  }

  std::string refusal_text(const lock::Superseded& newer) const {
    const auto& asked = context_.claim().supersede;
    const std::string own =
        asked && asked->number ? util::format(": number {}", *asked->number) : std::string();
    return util::format("{}{} was superseded by {}{}", lock_at(context_), own,
                        newer_phrase(newer, wall_clock()), own.empty() ? "" : remedy_for(newer));
  }

  std::string refusal_text(const lock::OwnerEnded& gone) const {
    const std::string note = note_text(gone.note);
    return util::format("removed from the queue of {} {}; to wait again, start the run again",
                        lock_at(context_), note.empty() ? "by an operator" : note);
  }

  // The message if the command exited by itself.
  std::string command_text(const run::RunEnd& end) const {
    std::string text;
    const auto* signaled = std::get_if<run::Signaled>(&end.end);
    if (context_.settings.report && own_code(end) != 0) {
      text = failure_report(end);
    } else if (signaled != nullptr && signaled->signal == SIGKILL) {
      text = util::format("{}: the command was {}", lock_at(context_), util::killed_by(SIGKILL));
    }
    const std::string warning = warning_of(end);
    if (warning.empty()) return text;
    return text + (text.empty() ? "warning: " : "; warning: ") + warning;
  }

  std::string lost_text(const run::RunEnd& end) const {
    std::string message = util::format("lost {}: {}", lock_at(context_), lease_end_text(*end.lost));
    if (!end.started) message += "; the command was not started";
    if (!end.survivors.empty()) {
      message += "; " + survivors_text(end.survivors, LeaseState::lost);
    } else if (end.started) {
      message += "; rlock stopped the command";
    }
    if (end.lost->reported) message += cause_to_check(*end.lost->reported);
    if (end.kept_for > Millis(0)) message += "; " + kept_text(end.kept_for);
    return message + util::format("; rlock help {} says what to do", int{kLost});
  }

  std::string run_limit_text(const run::RunEnd& end) const {
    const auto& limit = context_.settings.plan.max_run;
    std::string message = util::format(
        "{}: {} longer than --max-run{}", lock_at(context_),
        end.survivors.empty() ? "rlock stopped the command, because it ran" : "the command ran",
        limit ? " " + util::format_duration(*limit) : "");
    if (context_.unlocked) message += " (it ran without the lock: --fail-open)";
    if (end.lost) message += "; the lock was lost: " + lease_end_text(*end.lost);
    return message + left_behind(end, end.lost.has_value());
  }

  std::string cannot_exec_text(const run::RunEnd& end) const {
    const std::string lock = end.unreleased      ? ": " + unreleased_text(*end.unreleased)
                             : context_.unlocked ? " was not locked (--fail-open)"
                                                 : " was released";
    const std::vector<std::string>& argv = context_.settings.plan.argv;
    const bool exists = end.exec_error == run::kNoInterpreter;
    return util::format("cannot run \"{}\": {}; {}{}{}", util::printable(argv.front()),
                        exists ? missing_interpreter(argv.front()) : std::strerror(end.exec_error),
                        lock_at(context_), lock, exists ? "" : shell_hint(argv));
  }

  std::string unprotected_text(const run::RunEnd& end) const {
    std::string message = error_text(*end.error, context_);
    if (context_.unlocked) message += " (the command ran without the lock: --fail-open)";
    if (!end.started) {
      message += "; the command was not started";
    } else if (end.survivors.empty()) {
      message += "; rlock stopped the command";
    }
    return message + left_behind(end, false);
  }

  // The text about a nested run that was killed with the command.
  std::string kept_text(Millis left) const {
    return util::format(
        "the lock stays held for up to {}, until the lease of a nested run ends; {} frees it now",
        util::format_rough_duration(left), command_line("force-unlock", " --now"));
  }

  // The text about processes that keep running, and about a release that no server confirmed.
  std::string left_behind(const run::RunEnd& end, bool lost) const {
    std::string text;
    if (!end.survivors.empty()) text = "; " + survivors_text(end.survivors, lease_state(lost));
    if (end.kept_for > Millis(0)) text += "; " + kept_text(end.kept_for);
    return end.unreleased ? text + "; " + unreleased_text(*end.unreleased) : text;
  }

  LeaseState lease_state(bool lost) const {
    if (context_.unlocked) return LeaseState::no_lease;
    return lost ? LeaseState::lost : LeaseState::kept;
  }

  // `"nightly" failed on web4: exit 3 after 12m`
  std::string failure_report(const run::RunEnd& end) const {
    const auto* exited = std::get_if<run::Exited>(&end.end);
    return util::format("{} failed on {}: {} after {}", in_quotes(context_.name()),
                        util::printable(own_record().host.value_or("this host")),
                        exited != nullptr
                            ? util::format("exit {}", exited->code)
                            : util::signal_name(std::get<run::Signaled>(end.end).signal),
                        util::format_duration(context_.ran));
  }

  // The text about lease and release; empty if all went well.
  std::string ending_text(const run::RunEnd& ended) const {
    std::string text;
    if (ended.lost) {
      text = lease_end_text(*ended.lost) + "; the command exited by itself";
      if (ended.lost->reported) text += cause_to_check(*ended.lost->reported);
    }
    if (ended.unreleased && !ended.lost) text = unreleased_text(*ended.unreleased);
    if (ended.kept_for > Millis(0)) util::append(text, "; ", kept_text(ended.kept_for));
    if (!ended.survivors.empty()) {
      util::append(text, "; ",
                   survivors_text(ended.survivors, lease_state(ended.lost.has_value())));
    }
    const std::string success = success_text(ended);
    if (!success.empty()) util::append(text, "; ", success);
    return text;
  }

  // The warning after the end of a command; empty if all went well.
  std::string warning_of(const run::RunEnd& ended) const {
    const std::string text = ending_text(ended);
    if (context_.unlocked) {
      return util::format("the command ran without {} (--fail-open){}{}", lock_at(context_),
                          text.empty() ? "" : "; ", text);
    }
    if (text.empty()) return {};
    return util::format("{}{}: {}", ended.lost ? "lost " : "", lock_at(context_), text);
  }

  // The text about work that may be done again although it succeeded.
  std::string success_text(const run::RunEnd& ended) const {
    const auto* exited = std::get_if<run::Exited>(&ended.end);
    const bool unlocked = context_.unlocked && exited != nullptr && exited->code == 0;
    if (!context_.claim().once) return {};
    switch (unlocked ? run::Recording::unconfirmed : ended.recording) {
      case run::Recording::unconfirmed:
        return "its success is not recorded; it may run again";
      case run::Recording::stopped:
        return "rlock was asked to stop it, so its success is not recorded; it may run again";
      case run::Recording::pushed_out_another:
        return "its success is recorded, but the server keeps only some 1000 for each lock and "
               "forgot the least recently used KEYs; the work of those may run again";
      case run::Recording::none:
      case run::Recording::recorded:
        break;
    }
    return {};
  }

  // The numbers of a CI system may begin again at 1.
  std::string remedy_for(const lock::Superseded& newer) const {
    if (newer.granted.ms == 0) return "; see " + command_line("queue");
    return util::format(
        "; if the numbers have started again: {}, which also forgets the work done "
        "with --once",
        command_line("forget"));
  }

  std::string typed_key() const {
    return util::printable(util::shell_quoted(context_.claim().once->key));
  }
  std::string command_line(std::string_view command, const std::string& option = {}) const {
    return util::format("rlock {}{}{} {}", command, context_.session.lock_options(), option,
                        typed_name(context_.name()));
  }
  std::string next_call() const {
    if (!context_.keeps_position) return {};
    return util::format("the position in the queue is kept for {}: repeat the call (--ticket); ",
                        util::format_duration(kTicketLife));
  }
  // The next steps for a run that finds the lock busy, or closed.
  std::string what_to_do(const std::optional<lock::Obstacle>& obstacle) const {
    return "see " + command_line("status") +
           (lock::is_closure(obstacle) ? ", and to open it: " + command_line("open") : "") +
           context_.blocking_key;
  }

  std::string held_text(const std::optional<lock::Obstacle>& obstacle) const {
    return context_.slots.empty() ? obstacle_phrase(obstacle) : context_.slots;
  }

  // The text for a run that --max-queue kept out of the queue.
  std::string full_queue(uint64_t waiters) const {
    if (!context_.claim().max_queue || waiters < *context_.claim().max_queue) return {};
    return util::format(" and has {} {} waiting (--max-queue {})", waiters,
                        waiters == 1 ? "run" : "runs", *context_.claim().max_queue);
  }

  const MessageContext& context_;
};

}  // namespace

std::string_view MessageContext::longer() const {
  if (claim().queueing != lock::Queueing::wait) return kLongerConnect;
  return settings.waiting.wait ? kLongerWait : kSomeWait;
}

std::string slots_text(const lock::Snapshot& lock, lock::Limit own) {
  const auto theirs = limit_of(lock);
  if (own.mode() != lock::Mode::slots || !theirs || theirs->mode() != lock::Mode::slots) return {};
  const uint64_t all = std::min(own.value(), theirs->value());
  if (lock.live_holders < all) return {};
  uint64_t cooling = 0;
  Millis first = Millis::max();
  for (const lock::Holder& holder : lock.holders) {
    if (holder.state != lock::HolderState::cooldown) continue;
    ++cooling;
    first = std::min(first, holder.left.value_or(first));
  }
  const std::string limits = own == *theirs ? ""
                                            : util::format(" (this run allows {}, a holder {})",
                                                           own.value(), theirs->value());
  if (cooling == 0)
    return util::format("{} of {} slots are held{}", lock.live_holders, all, limits);
  const std::string cools = cooling == lock.live_holders ? "in their"
                            : cooling == 1               ? "held, one of them in its"
                                           : util::format("held, {} of them in their", cooling);
  return util::format("{} of {} slots are {} cool-down (--min-hold){}; the first is free in {}",
                      lock.live_holders, all, cools, limits, util::format_duration(first));
}

std::optional<lock::Obstacle> obstacle_of(const run::RunOutcome& outcome) {
  if (const auto* busy = lock::refusal_in<lock::Busy>(outcome)) return busy->obstacle;
  if (const auto* late = std::get_if<lock::TimedOut>(&outcome)) return late->obstacle;
  return std::nullopt;
}

void mark_died(run::RunOutcome& outcome, const lock::LockName& name, const Session& session) {
  constexpr Millis kTimeout{1000};
  auto* busy = lock::refusal_in<lock::Busy>(outcome);
  auto* late = std::get_if<lock::TimedOut>(&outcome);
  auto* obstacle = busy != nullptr ? &busy->obstacle : late != nullptr ? &late->obstacle : nullptr;
  if (obstacle == nullptr || lock::holder_in(*obstacle) == nullptr) return;
  auto& holder = std::get<lock::Holder>(**obstacle);
  DeadHolders dead;
  if (!dead.mark({&holder, 1})) return;
  auto inspector = session.make_server()();
  lock::SystemPoller poller;
  auto seen = lock::finish(poller, inspector->inspect({name}), poller.now() + kTimeout,
                           inspector->server());
  if (!seen) return;
  dead.mark(seen->holders);
  const lock::Holder* now = lock::find_holder(seen->holders, holder.owner);
  if (now != nullptr) holder = *now;
}

std::string slots_held(const run::RunOutcome& outcome, lock::Limit own, const lock::LockName& name,
                       const Session& session) {
  constexpr Millis kTimeout{1000};
  const auto obstacle = obstacle_of(outcome);
  if (own.mode() != lock::Mode::slots || lock::holder_in(obstacle) == nullptr) return {};
  auto inspector = session.make_server()();
  lock::SystemPoller poller;
  const auto seen = lock::finish(poller, inspector->inspect({name}), poller.now() + kTimeout,
                                 inspector->server());
  if (!seen) return {};
  const std::string text = slots_text(*seen, own);
  const bool cools = std::any_of(seen->holders.begin(), seen->holders.end(), [](const auto& one) {
    return one.state == lock::HolderState::cooldown;
  });
  return text.empty() || cools ? text : text + ", one of them " + obstacle_phrase(obstacle);
}

std::string unlocked_warning(const Error& error, const MessageContext& context) {
  return util::format(
      "warning: {}; running without the lock (--fail-open){}", error_text(error, context),
      context.claim().once ? "; its success will not be recorded, so the work may run again" : "");
}

std::string lease_end_text(const run::LeaseEnd& lease) {
  if (lease.reported) return lost_phrase(*lease.reported);
  std::string text = lease.by_guard
                         ? "the lease expired while rlock was stopped or got no processor time"
                     : lease.last_error ? "the lease could not be renewed"
                                        : "the lease was not renewed";
  if (lease.last_error) {
    text += ": " + util::printable(lease.last_error->text);
    if (lease.survives > Millis(0)) {
      text += util::format("; this lease survives every outage of up to {}, a longer --ttl more",
                           util::format_duration(lease.survives));
    }
  }
  return text + since_phrase(lease.later_holder);
}

RunExit to_exit(const run::RunOutcome& outcome, const MessageContext& context) {
  const run::RunCause cause = run::cause_of(outcome);
  const run::EndRow& row = run::row_of(cause);
  RunExit end{.code = exit_code_of(row, outcome, context.settings.waiting.codes),
              .signal = signal_of(cause, outcome),
              .severity = row.severity,
              .message = std::visit(EndText(context), outcome),
              .event = row.event,
              .kind = row.kind,
              .obstacle = obstacle_of(outcome)};
  if (end.message.empty()) end.severity = run::Severity::silent;
  // Warnings are printed even with --quiet.
  const auto* done = lock::refusal_in<lock::AlreadyDone>(outcome);
  const bool warns = done != nullptr && !done_warning(*done, context).empty();
  if (warns || (cause == run::RunCause::command && !end.message.empty())) {
    end.severity = run::Severity::error;
  }
  return end;
}

int report_exit(const RunExit& run_exit, Verbosity verbosity) {
  const bool should_print =
      run_exit.severity == run::Severity::error ||
      (run_exit.severity == run::Severity::notice && verbosity != Verbosity::quiet);
  const Weight weight = run_exit.severity == run::Severity::error ? Weight::error : Weight::notice;
  if (should_print) print_message(run_exit.message, weight);
  if (run_exit.signal) run::die_by(*run_exit.signal);
  return run_exit.code;
}

}  // namespace rlock::cli
