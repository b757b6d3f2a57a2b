// Runs in rlock, on the main thread.

#include "run/run_end.hpp"

#include <algorithm>
#include <iterator>

namespace rlock::run {
namespace {

constexpr int kOwn = EndRow::kOwn, kChosen = EndRow::kChosen, kOfError = EndRow::kOfError,
              kOfSignal = EndRow::kOfSignal;

constexpr EndRow kEnds[] = {
    // cause, exit code, severity, event, history, kind
    {RunCause::command, kOwn, Severity::silent, "", "", ""},
    {RunCause::lease_lost, 76, Severity::error, "", "lost", "lost"},
    {RunCause::never_started, 76, Severity::error, "failed", "lost", "lost"},
    {RunCause::run_limit, 124, Severity::error, "", "max-run", ""},
    {RunCause::cannot_exec, kOwn, Severity::error, "failed", "", ""},
    {RunCause::no_renewal, 71, Severity::error, "failed", "no-renewal", "internal"},
    {RunCause::no_guard, 71, Severity::error, "failed", "no-guard", "internal"},
    {RunCause::busy, kChosen, Severity::notice, "skipped", "", "busy"},
    {RunCause::timed_out, kChosen, Severity::notice, "timed-out", "", "busy"},
    {RunCause::removed, 75, Severity::error, "removed", "", "busy"},
    {RunCause::done, kChosen, Severity::notice, "done", "", ""},
    {RunCause::failures, kChosen, Severity::notice, "failed", "", ""},
    {RunCause::superseded, kChosen, Severity::notice, "superseded", "", "superseded"},
    {RunCause::upgrade, 64, Severity::error, "failed", "", "usage"},
    {RunCause::signal, kOfSignal, Severity::silent, "interrupted", "", ""},
    {RunCause::unreachable, kOfError, Severity::error, "unreachable", "", ""},
    {RunCause::error, kOfError, Severity::error, "failed", "", ""},
};

// The causes for the alternatives of RunOutcome after RunEnd, in their order.
constexpr RunCause kNotHeld[] = {RunCause::busy,       RunCause::timed_out, RunCause::removed,
                                 RunCause::upgrade,    RunCause::done,      RunCause::failures,
                                 RunCause::superseded, RunCause::signal,    RunCause::error};
static_assert(std::size(kNotHeld) + 1 == std::variant_size_v<RunOutcome>);

}  // namespace

RunCause cause_of(const RunEnd& end) {
  if (!end.ended_for) return end.exec_error != 0 ? RunCause::cannot_exec : RunCause::command;
  switch (*end.ended_for) {
    case EndCause::lease:
      return end.started ? RunCause::lease_lost : RunCause::never_started;
    case EndCause::run_limit:
      return RunCause::run_limit;
    case EndCause::no_renewal:
      return RunCause::no_renewal;
    case EndCause::no_guard:
      return RunCause::no_guard;
    case EndCause::cancel:
    case EndCause::died:
      break;
  }
  return RunCause::command;
}

RunCause cause_of(const RunOutcome& outcome) {
  if (const auto* end = std::get_if<RunEnd>(&outcome)) return cause_of(*end);
  const auto* error = std::get_if<Error>(&outcome);
  if (error != nullptr && error->kind == ErrorKind::unavailable) return RunCause::unreachable;
  return kNotHeld[outcome.index() - 1];
}

const EndRow& row_of(RunCause cause) {
  return *std::ranges::find(kEnds, cause, &EndRow::cause);
}

}  // namespace rlock::run
