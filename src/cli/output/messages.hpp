#pragma once

#include <optional>
#include <string>

#include "lock/store.hpp"

// Phrases and times for messages, printable whatever a server sent.
namespace rlock::cli {

// `"nightly"`
std::string in_quotes(std::string_view text);

// Puts `"nightly": ` in front of a text that does not name the lock yet.
std::string naming(std::string_view name, const std::string& text);

// The NAME at the end of a command line in a message: `nightly`, `'a b'`, `-- --all`.
std::string typed_name(std::string_view name);

struct Record;
// `alice@web1 (pid 4711)`; the owner id if the record has neither user nor host.
std::string process_phrase(const Record& record, const std::string& owner);

// duration: `for 2m3s`, for a line that is kept up to date. start: followed by `, since` and a
// time.
enum class TimeStyle { duration, start };

// `held by alice@web1 (pid 4711) for 2m3s: make deploy (reason: release 7)`, or `for 2m3s, since
// 2026-…Z`. With `usual`, how long runs usually take: `… for 2m3s, usually 4m, about 2m left: make
// deploy`. With life_phrase(), unless the holder is alive. `age`: of the server's reply.
std::string holder_phrase(const lock::Holder& seen, TimeStyle style = TimeStyle::start,
                          std::optional<Millis> usual = {}, Millis age = Millis(0));

// `rlock (pid 4711) has died; processes of its command may still run`, of a holder with
// Holder::died.
std::string death_phrase(const lock::Holder& holder);

// What shows whether the holder lives: `alive, renewed 4s ago`, `renewal overdue by 8s: may be
// dead`, or death_phrase() and `; the lock is free in 43s`. Empty if nothing renews the lease.
std::string life_phrase(const lock::Holder& holder);

// `closed until 2026-11-23T16:00:00Z by ann@ops1: database upgrade`
std::string closure_phrase(const lock::Closure& closure);

// `rlock 1.4 or later (!weights)`
std::string needs_phrase(const lock::NewerRules& needs);

// A holder_phrase() or a closure_phrase(); `held by another client` if the obstacle is unknown.
std::string obstacle_phrase(const std::optional<lock::Obstacle>& obstacle,
                            TimeStyle style = TimeStyle::start, std::optional<Millis> usual = {},
                            Millis age = Millis(0));

// `, by alice@web1`, from a record; empty if it names no one.
std::string by_phrase(std::string_view record);

// `alice@web1, usually 4m, about 2m left`, or the life_phrase() of a holder that has died; empty if
// the expected end is unknown.
std::string brief_holder_phrase(const lock::Holder& holder, std::optional<Millis> usual);

// `by bob@web2 (owner 6f1c…, since 2026-11-21T02:53:00Z)`
std::string taker_phrase(const lock::Holder& holder);

// ` (no other client has held it since)`; empty if the server does not know.
std::string since_phrase(lock::LaterHolder since);

// `by web3 40m ago, at 2026-11-21T02:53:00Z (took 4m10s), with the KEY "v17": ./migrate`; with
// --once-per `for day 2026-11-21` instead of the KEY.
std::string done_phrase(const lock::AlreadyDone& done, const std::optional<lock::Once>& once,
                        lock::ServerTime now);

// `; warning: …` if the host that did the work of a day, a week or a month has another time zone
// than this host, which may then do the work again. Compares their offsets at the instant at which
// that host asked, so that summer time makes no difference. Empty otherwise.
std::string zone_warning(const lock::AlreadyDone& done, const std::optional<lock::Once>& once);

// The run that superseded this one, with its number, if any: `number 57 of ci@runner7 (pid 812),
// which was granted the lock 3d ago, at 2026-11-21T02:53:00Z`.
std::string newer_phrase(const lock::Superseded& newer, lock::ServerTime now);

// How a lease was lost: `it was taken by …`, `it was broken by bob@ops: host is gone`.
std::string lost_phrase(const lock::Lost& lost);

// The zone of the times that people see: UTC, unless they read on a terminal.
enum class Zone { utc, local };
void show_times_in(Zone zone);

// Both functions return an empty text for 0 (unknown) and for years outside 1970-9999, which only a
// broken or hostile server sends.

// For programs, in RFC 3339 with milliseconds: `2026-11-21T02:53:00.123Z`.
std::string rfc3339(lock::ServerTime time);

// For people, rounded down to the second: `2026-11-21T02:53:00Z`, or on a terminal
// `2026-11-21T03:53:00+01:00`.
std::string time_text(lock::ServerTime time);

// `1.500`, for a time that is not negative.
std::string in_seconds(Millis time);

// `40m ago, at 2026-11-21T02:53:00Z`; without the age if `now` is unknown.
std::string age_and_time(lock::ServerTime time, lock::ServerTime now);

// This host's clock, for output to people, never for deadlines.
lock::ServerTime wall_clock();

}  // namespace rlock::cli
