#pragma once

#include <sys/types.h>
#include <time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/clock.hpp"

// The opaque bytes that a lock carries for people: its holders, its waiters, and the operator who
// broke it. One rlock writes them and another reads them, so nothing in them can be trusted.
namespace rlock::cli {

// A lock that somebody holds.
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
  // Of a holder whose command has ended but whose processes have not: `cannot end pid 4711 of
  // root`.
  std::optional<std::string> ending{};
  std::optional<std::string> traceparent{};  // of the caller, in the W3C's form
  // In which processes the pid is known: a pid namespace of one boot of a host. Of holders.
  std::optional<std::string> processes{};
  bool renews = true;         // false with --no-renew
  std::vector<Hold> holds{};  // of a waiter: the exclusive locks of the runs around it
  // When a run with --once-per day, week or month asked, in its time zone.
  std::optional<std::string> asked{};   // `2026-11-27T03:00:00+01:00`
  std::optional<uint64_t> supersede{};  // its number
  Millis urgent{0};                     // by how much earlier it is taken to have come
  std::optional<std::string> moved{};   // `by ann@ops1: customers wait`: to the head of the queue
};

// JSON, valid UTF-8.
std::string encode_record(const Record& record);

// What can be read: fields are left empty where the bytes are not JSON, too long, or of another
// type. Strings are valid UTF-8 but may contain control characters: print them through
// util::printable.
Record decode_record(std::string_view bytes);

// The encoded record with Record::moved; what another version wrote into it is kept.
std::string moved_record(std::string_view bytes, std::string_view moved);

// The trace that a request is part of, as TRACEPARENT has it (W3C Trace Context): version, trace,
// parent and flags, without what a later version may add. None where the text has another form.
std::optional<std::string> parse_traceparent(std::string_view text);

// An instant and the offset from UTC that a host had then, both in seconds.
struct LocalTime {
  time_t seconds = 0;
  long offset = 0;
};
// `2026-11-27T03:00:00+01:00`, of this host. Empty for a time that has no such form.
std::string local_time(time_t seconds);
std::optional<LocalTime> parse_local_time(std::string_view text);
// `+01:00`
std::string offset_text(long offset);

// Host, user and pid of this process.
Record own_record();

// The pid of a record that has one: `4711`; or `7 of its pid namespace` if that is neither the
// first one of its host nor ours.
std::string pid_and_place(const Record& record);

// Of this process, as in Record::processes; nothing where /proc does not show it.
std::optional<std::string> own_processes();

// Whether the process of this record is certainly gone: it ran in this pid namespace, and is not
// there.
bool is_gone(const Record& record);

// The encoded record of an operator who intervenes: who, from where, when and why.
std::string operator_note(const std::optional<std::string>& reason);

// The command line of a process, as much of it as a record has room for; empty where /proc does not
// show it.
std::vector<std::string> command_line_of(pid_t pid);

// The command line as a shell would read it, without the passwords of URLs; at most 200 bytes, cut
// at a character.
std::string command_text(const std::vector<std::string>& argv);

// `alice@web1`, `web1`, or empty when nothing is known. Printable.
std::string who_text(const Record& record);

// `by alice@web1: host is gone`, of an operator's note; empty when nothing is known. Printable.
std::string note_text(std::string_view note);

}  // namespace rlock::cli
