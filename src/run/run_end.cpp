// Runs in rlock, on the main thread.

#include "run/run_end.hpp"

#include "util/table.hpp"

namespace rlock::run {
namespace {

constexpr EndRow kEnds[] = {
    // cause, exit code, severity, event, history, kind
    {RunCause::command, CodeOf::command, Severity::silent, "", "", ""},
    {RunCause::lease_lost, 76, Severity::error, "", "lost", "lost"},
    {RunCause::never_started, 76, Severity::error, "failed", "lost", "lost"},
    {RunCause::run_limit, 124, Severity::error, "", "max-run", ""},
    {RunCause::cannot_exec, CodeOf::command, Severity::error, "failed", "", ""},
    {RunCause::no_renewal, 71, Severity::error, "failed", "no-renewal", "internal"},
    {RunCause::no_guard, 71, Severity::error, "failed", "no-guard", "internal"},
    {RunCause::busy, CodeOf::busy, Severity::notice, "skipped", "", "busy"},
    {RunCause::timed_out, CodeOf::busy, Severity::notice, "timed-out", "", "busy"},
    {RunCause::removed, 75, Severity::error, "removed", "", "busy"},
    {RunCause::done, CodeOf::done, Severity::notice, "done", "", ""},
    {RunCause::failures, CodeOf::failures, Severity::notice, "failed", "", ""},
    {RunCause::superseded, CodeOf::superseded, Severity::notice, "superseded", "", "superseded"},
    {RunCause::upgrade, 64, Severity::error, "failed", "", "usage"},
    {RunCause::signal, CodeOf::signal, Severity::notice, "interrupted", "", ""},
    {RunCause::unreachable, CodeOf::error, Severity::error, "unreachable", "", ""},
    {RunCause::error, CodeOf::error, Severity::error, "failed", "", ""},
};

static_assert(util::rows_in_order<RunCause::error>(kEnds, &EndRow::cause));

constexpr EndCauseRow kEndCauses[] = {
    // cause, text, run, keeps_end, keeps_lock
    {EndCause::lease, "lease lost", RunCause::lease_lost, false, false},
    {EndCause::run_limit, "run limit reached", RunCause::run_limit, false, true},
    {EndCause::no_renewal, "no renewal thread", RunCause::no_renewal, false, false},
    {EndCause::no_guard, "no guard", RunCause::no_guard, false, true},
    {EndCause::cancel, "cancelled", RunCause::command, true, true},
    {EndCause::died, "the command died of a signal", RunCause::command, true, true},
};

static_assert(util::rows_in_order<EndCause::died>(kEndCauses, &EndCauseRow::cause));

// The compiler rejects an alternative of lock::Refused or of RunOutcome without a cause.
struct CauseOfRefusal {
  RunCause operator()(const lock::Busy&) const { return RunCause::busy; }
  RunCause operator()(const lock::OwnerEnded&) const { return RunCause::removed; }
  RunCause operator()(const lock::AlreadyDone&) const { return RunCause::done; }
  RunCause operator()(const lock::FailedTooOften&) const { return RunCause::failures; }
  RunCause operator()(const lock::Superseded&) const { return RunCause::superseded; }
};

struct CauseOf {
  RunCause operator()(const RunEnd& end) const { return cause_of(end); }
  RunCause operator()(const lock::Refused& why) const { return std::visit(CauseOfRefusal{}, why); }
  RunCause operator()(const lock::TimedOut&) const { return RunCause::timed_out; }
  RunCause operator()(const lock::Upgrade&) const { return RunCause::upgrade; }
  RunCause operator()(const WaitSignaled&) const { return RunCause::signal; }
  RunCause operator()(const Error& error) const {
    return error.kind == ErrorKind::unavailable ? RunCause::unreachable : RunCause::error;
  }
};

}  // namespace

RunCause cause_of(const RunEnd& end) {
  if (!end.ended_for) return end.exec_error != 0 ? RunCause::cannot_exec : RunCause::command;
  const RunCause cause = row_of(*end.ended_for).run;
  return cause == RunCause::lease_lost && !end.started ? RunCause::never_started : cause;
}

RunCause cause_of(const RunOutcome& outcome) {
  return std::visit(CauseOf{}, outcome);
}

const EndCauseRow& row_of(EndCause cause) {
  return kEndCauses[static_cast<size_t>(cause)];
}

const EndRow& row_of(RunCause cause) {
  return kEnds[static_cast<size_t>(cause)];
}

}  // namespace rlock::run
