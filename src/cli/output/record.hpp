#pragma once

#include <sys/types.h>
#include <time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/clock.hpp"

// The opaque bytes that a lock carries for people, about its holders, its waiters, and the operator
// who broke it. One rlock writes them and another reads them, so nothing in them can be trusted.
namespace rlock::cli {

// A lock and its holder.
struct Hold {
  std::string name;
  std::string owner;
  bool operator==(const Hold&) const = default;
};

struct Record {
  std::optional<std::string> host;
  std::optional<std::string> user;
  std::optional<int64_t> pid;
  std::optional<std::string> command;
  std::optional<std::string> reason;
  std::optional<std::string> at;  // RFC 3339; only in an operator's note
  // Set if rlock was asked to stop the holder's command but processes are left: `cannot stop pid
  // 4711 of root`.
  std::optional<std::string> ending{};
  std::optional<std::string> traceparent{};  // of the caller, in the W3C's form
  // The processes among which the pid is known: a pid namespace of one boot of a host. Only of
  // holders.
  std::optional<std::string> processes{};
  bool renews = true;         // false with --no-renew
  std::vector<Hold> holds{};  // of a waiter: the exclusive locks of its outer runs
  // When a run with --once-per day, week or month began to ask, in its time zone:
  std::optional<std::string> asked{};   // `2026-11-27T03:00:00+01:00`
  std::optional<uint64_t> supersede{};  // its number
  Millis urgent{0};                     // how much earlier the queue counts it as having arrived
  // `by ann@ops1: customers wait`, who moved it to the head of the queue.
  std::optional<std::string> moved{};
};

// JSON, valid UTF-8.
std::string encode_record(const Record& record);

// Reads as much as possible: a field stays empty if the bytes are not JSON, too long, or of another
// type. Strings are valid UTF-8 but may contain control characters: print them through
// util::printable.
Record decode_record(std::string_view bytes);

// The encoded record with Record::moved; keeps what another version wrote into it.
std::string moved_record(std::string_view bytes, std::string_view moved);

// The trace that a request belongs to, as TRACEPARENT has it (W3C Trace Context): version, trace,
// parent and flags, without what a later version may add. nullopt if the text has another form.
std::optional<std::string> parse_traceparent(std::string_view text);

// An instant and the host's offset from UTC at that instant, both in seconds.
struct LocalTime {
  time_t seconds = 0;
  long offset = 0;
};
// `2026-11-27T03:00:00+01:00`, in this host's time zone. Empty for a time that has no such form.
std::string local_time(time_t seconds);
std::optional<LocalTime> parse_local_time(std::string_view text);
// `+01:00`
std::string offset_text(long offset);

// Host, user and pid of this process.
Record own_record();

// The pid in a record that has one: `4711`; or `7 of its pid namespace` if that namespace is
// neither the first one of its host nor this process's.
std::string pid_and_place(const Record& record);

// Record::processes for this process; nullopt if /proc does not show it.
std::optional<std::string> own_processes();

// Whether the process of this record has certainly exited: it ran in this pid namespace, and is not
// there any more, or only as a zombie.
bool is_gone(const Record& record);

// The encoded record of an operator who intervenes: user, host, time and reason.
std::string operator_note(const std::optional<std::string>& reason);

// The command line of a process, as far as a record has room for it; empty if /proc does not show
// it.
std::vector<std::string> command_line_of(pid_t pid);

// The command line as a shell would read it, without passwords, tokens and keys that are
// recognised; at most 200 bytes, cut at a character.
std::string command_text(const std::vector<std::string>& argv);

// `alice@web1`, `web1`, or empty if nothing is known. Printable.
std::string who_text(const Record& record);

// `by alice@web1: host is gone`, from an operator's note; empty if nothing is known. Printable.
std::string note_text(std::string_view note);

}  // namespace rlock::cli
