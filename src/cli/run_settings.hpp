#pragma once

#include "cli/connect.hpp"
#include "cli/parse.hpp"
#include "run/run.hpp"

namespace rlock::cli {

// A lock that a run around this one holds: entered, or waited for like anyone else.
enum class Reentry { enter, wait };

// Whether the command may run without the lock where no server answers.
enum class Contact { needed, fail_open };

// What `rlock run` was asked for, understood and checked.
struct RunSettings {
  run::Plan plan;
  int conflict_code = 75;
  std::optional<util::Millis> wait{};  // none: for ever; 0: not at all
  std::optional<std::string> event_log{};
  Reentry reentry = Reentry::enter;
  Contact contact = Contact::needed;
};

// ErrorKind::usage says what is wrong. The wait's deadline is not set yet: it counts from the start
// of the acquisition. Nor are those parts of the plan that depend on the server.
util::Result<RunSettings> run_settings(const Invocation& invocation, Getenv getenv);

}  // namespace rlock::cli
