#pragma once

#include <string_view>

// The scripts of the native protocol, embedded at build time from the .lua files beside this
// header.
namespace rlock::lua {

struct Script {
  std::string_view sha1;  // what EVALSHA wants, equal to the server's SCRIPT LOAD
  std::string_view text;
};

extern const Script acquire;
extern const Script renew;
extern const Script release;
extern const Script force_unlock;
extern const Script inspect;
extern const Script wake;

}  // namespace rlock::lua
