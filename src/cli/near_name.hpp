#pragma once

#include "cli/session.hpp"

namespace rlock::cli {

// Prints that no run held the lock within 30 days, and which known name has a similar spelling,
// because names are global to a server and a typing error names another lock. Prints nothing with
// --quiet or --json, nor about the lock of another client; names none if the server refuses to list
// names.
void report_unknown_name(Session& session, const lock::LockName& name, const Choices& choices);

// The same for a command that makes a new name known, such as `rlock close` before the first run.
// `seen` is the lock before that.
void report_unused_name(Session& session, const lock::LockName& name, const lock::Snapshot& seen,
                        const Choices& choices);

// `; did you mean "nightly"?`, for an error about a name that no run held; empty otherwise.
std::string near_name_hint(Session& session, const lock::LockName& name);

// Prints only the name with a similar spelling, if there is one.
void report_near_name(Session& session, const lock::LockName& name, const Choices& choices);

}  // namespace rlock::cli
