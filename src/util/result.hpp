#pragma once

#include <string>
#include <utility>
#include <variant>

#include "util/clock.hpp"

namespace rlock {

// What went wrong, in the classes that callers distinguish by the exit code: rlock(1), EXIT STATUS.
enum class ErrorKind {
  usage = 64,        // option, name, duration, URL
  wrong_type = 65,   // a key of the lock has a value that rlock did not write
  unavailable = 69,  // no server answered in time, or the server cannot hold locks
  internal = 70,
  system = 71,  // the system refused: fork, pipe, memory
  busy = 75,    // not acquired
  lost = 76,    // the lease was lost
  denied = 77,  // the server denied access: AUTH, ACL, TLS verification
  config = 78,  // no server given, bad file, unknown key
};

// Whether the same request may succeed a moment later (after a restart, a failover, a network
// fault).
enum class Retry { never, later };

// Whether a server of the lock replied. A server that refuses, or is not ready, has answered. See
// --fail-open.
enum class Answered { no, yes };

// The exact cause, if `rlock doctor` has a remedy for it. The code that makes an Error sets the
// cause, because the text may be reworded.
enum class Cause {
  other,
  tls,                    // the two sides cannot agree on TLS
  certificate_name,       // the server's certificate is for other names
  certificate_authority,  // no trusted authority signed it
  select_denied,          // the ACL denies this user SELECT, which a connection begins with
  command_denied,         // the ACL denies this user a command
  keys_denied,            // the ACL denies this user the keys
  missing_command,        // the server does not have it
  other_node,             // the keys belong to another node of the cluster
  not_counted,            // a quorum does not count the server
  too_many_clients,       // maxclients
  out_of_memory,          // maxmemory
  cannot_save,            // MISCONF
  loading,                // the server reads its data
  busy_script,            // a script of another client blocks the server
  failover,               // the server that sentinels name as the master is a replica
  unknown_host,           // the name servers know no such host
  read_only,              // the server is a replica
  unknown_master,         // the sentinels know no master of this name
  missing_sentinels,      // most of those that exist do not answer, and the others agree
  other_kind,             // the URL is that of another kind of server
  other_version,          // another version of rlock stores the lock
  blocking_key,           // a key that rlock did not write; the text says how to delete it
};

inline bool is_about_tls(Cause cause) {
  return cause == Cause::tls || cause == Cause::certificate_name ||
         cause == Cause::certificate_authority;
}

struct Error {
  ErrorKind kind = ErrorKind::internal;
  // What, where, why; one line, no password, may hold hostile bytes from a server.
  std::string text;
  Retry retry = Retry::never;
  Answered answered = Answered::no;
  Cause cause = Cause::other;
  Millis tried{0};  // for how long rlock retried, until a limit ended the attempts
};

// A value or an Error. Reading the value of a failed Result is a bug, which throws.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

struct Done {};
using Status = Result<Done>;

}  // namespace rlock

// TRY(declaration, expression): declares the value of a Result, or returns its Error from the
// calling function. Not in a condition or behind an `if` without braces: it is two statements.
#define RLOCK_JOIN_TOKENS(a, b) a##b
#define RLOCK_UNIQUE(name, line) RLOCK_JOIN_TOKENS(name, line)
#define TRY(declaration, ...) RLOCK_TRY(RLOCK_UNIQUE(result_, __LINE__), declaration, (__VA_ARGS__))
#define RLOCK_TRY(result, declaration, expression) \
  auto result = expression;                        \
  if (!result) return std::move(result).error();   \
  declaration = *std::move(result)

// TRY_STATUS(expression): returns the Error of a Result whose value is not needed.
#define TRY_STATUS(...) \
  if (auto status = (__VA_ARGS__); !status) return std::move(status).error()
