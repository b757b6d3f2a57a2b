// Keys that keep everybody from a lock and that no rlock wrote; rlock itself never deletes them.
#pragma once

#include <string>

#include "cli/session.hpp"
#include "redis/net/url.hpp"
#include "run/run.hpp"

namespace rlock::cli {

bool is_default_user(const redis::Login& login);

// The command line that runs `words`, which are quoted already, on the server as the default user:
// another user rarely has the rights. redis-cli asks for the password, which is never shown.
std::string redis_cli(const redis::Server& server, const std::string& words);

// `the key job is a hash without an expiry, which rlock did not write; if no program needs it:
// redis-cli -h db1 -p 6379 DEL job`; empty if there is none, or the server does not say.
std::string blocking_key_text(const Session& session, const lock::LockName& name);

// What such a key adds to an error that names it, `; it is a list without an expiry: redis-cli …`,
// or to an end that it can have caused, `; the key …`.
std::string blocking_key_hint(const Error& error, const Session& session,
                              const lock::LockName& name);
std::string blocking_key_hint(const run::RunOutcome& outcome, const Session& session,
                              const lock::LockName& name);

}  // namespace rlock::cli
