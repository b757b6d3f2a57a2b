// Keys that prevent every run from acquiring a lock and that no rlock wrote; rlock itself never
// deletes them.
#pragma once

#include <string>

#include "cli/session.hpp"
#include "run/run_end.hpp"

namespace rlock::cli {

// `the key job is a hash without an expiry, which rlock did not write; if no program needs it:
// redis-cli -h db1 -p 6379 DEL job`; empty if there is no such key, or the server does not answer.
std::string blocking_key_text(const Session& session, const lock::LockName& name);

// The text about such a key at the end of an error that ends with the line to delete it, `  # job
// is a list without an expiry`, or of an exit that it may have caused, `; the key …`.
std::string blocking_key_hint(const Error& error, const Session& session,
                              const lock::LockName& name);
std::string blocking_key_hint(const run::RunOutcome& outcome, const Session& session,
                              const lock::LockName& name);

}  // namespace rlock::cli
