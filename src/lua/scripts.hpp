#pragma once

#include <string_view>

// The scripts of the native protocol and of other clients' formats, embedded at build time from the
// .lua files beside this header.
namespace rlock::lua {

struct Script {
  std::string_view sha1;  // for EVALSHA: what SCRIPT LOAD would return
  std::string_view text;
};

extern const Script acquire;
extern const Script renew;
extern const Script release;
extern const Script force_unlock;
extern const Script inspect;
extern const Script wake;
extern const Script forget;
extern const Script closure;
extern const Script first;

// Tries the commands of the native scripts; returns those that failed.
extern const Script probe;
// Shows whether scripts run one after the other.
extern const Script atomicity;

extern const Script plain_acquire;
extern const Script plain_renew;
extern const Script plain_release;
extern const Script plain_inspect;

extern const Script redisson_acquire;
extern const Script redisson_renew;
extern const Script redisson_release;
extern const Script redisson_inspect;

}  // namespace rlock::lua
