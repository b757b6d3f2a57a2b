#pragma once

#include "cli/options/parse.hpp"
#include "cli/settings/claim_settings.hpp"
#include "cli/settings/connect.hpp"
#include "run/run.hpp"

namespace rlock::cli {

// What happens where an outer run holds the lock: this one enters it, or waits as others do.
enum class Reentry { enter, wait };

// Whether the command may run without the lock where no server answers.
enum class OnNoServer { fail, fail_open };

// What `rlock run` was asked to do, parsed and checked.
struct RunSettings {
  run::Plan plan;
  WaitSettings waiting{};
  int done_code = 0;  // of a run whose work was done before
  std::optional<std::string> event_log{};
  bool report = false;  // a failure of the command
  Reentry reentry = Reentry::enter;
  OnNoServer on_no_server = OnNoServer::fail;
};

// ErrorKind::usage says what is wrong. Left empty are the deadline of the wait, which counts from
// the start of the acquisition, and those parts of the plan that depend on the server.
Result<RunSettings> run_settings(const Invocation& invocation, Getenv getenv);

}  // namespace rlock::cli
