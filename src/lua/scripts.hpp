#pragma once

#include <string_view>

// The scripts of the native protocol and of other clients' formats, embedded at build time from the
// .lua files next to this header.
namespace rlock::lua {

struct Script {
  std::string_view sha1;  // for EVALSHA: what SCRIPT LOAD would return
  std::string_view text;
};

extern const Script acquire, heartbeat, renew, release, force_unlock, inspect, wake, forget,
    closure, first;
// Tries the commands of the native scripts; returns those that failed.
extern const Script probe;
// The number of the form in which the native scripts store locks.
extern const int form;
// Shows whether scripts run one after the other.
extern const Script atomicity;

extern const Script plain_acquire, plain_renew, plain_release, plain_inspect;
extern const Script redisson_acquire, redisson_renew, redisson_release, redisson_inspect;

}  // namespace rlock::lua
