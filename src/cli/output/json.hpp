#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/output/diagnosis.hpp"
#include "cli/output/record.hpp"
#include "cli/output/view.hpp"

// The documents of --json, as the schemas in docs/json describe them: one line each, in ASCII
// (other characters as \u escapes), so that they are valid UTF-8 and harmless on a terminal
// whatever a server sent.
namespace rlock::cli {

// `free`: the number of free locks that the list leaves out, if it contains only locks in use.
std::string status_json(const std::vector<LockView>& locks, std::optional<uint64_t> free = {});

// The result of --remove or --first.
struct QueueChange {
  const char* done;                  // `removed` or `moved`
  std::optional<std::string> owner;  // nullopt if that owner was not waiting
};
// `name`: nullopt for all locks with waiters. `change`: nullopt if no such option was given. Over
// several servers each waiter has the number of servers at which it waits.
std::string queue_json(const std::optional<lock::LockName>& name, std::span<const QueueView> queues,
                       const std::optional<QueueChange>& change = {}, uint64_t servers = 1);

// `error`: why the other holders were not broken.
std::string force_unlock_json(const lock::LockName& name, const lock::Forced& forced,
                              const std::optional<Error>& error = {});

// `left`: until the lease expires.
std::string acquire_json(const lock::AcquireCall& claim, lock::Token token, uint64_t slot,
                         Millis left, lock::ServerTime since);

// unchanged: the lease lasts for longer than the renewal would.
enum class Renewed { renewed, restored, unchanged };
std::string renew_json(const lock::RenewCall& call, Renewed renewed, Millis left);

std::string release_json(const lock::ReleaseCall& call);

// `commit`: empty if unknown. `form`: the form of stored locks.
std::string version_json(std::string_view version, std::string_view commit, uint64_t form);

std::string forget_json(const lock::ForgetCall& call, const lock::Forgotten& forgotten);

// `name`: nullopt for all locks.
std::string history_json(const std::optional<lock::LockName>& name, const History& history);

// A difference between two readings of `watch`. gone: the lock is no longer listed.
enum class ChangeKind { seen, changed, gone };
struct Change {
  ChangeKind kind = ChangeKind::changed;
  std::string name;
  std::vector<std::string_view> fields;  // the fields of `lock` that differ
  std::optional<LockView> lock;          // nullopt if the lock is gone
};
// `time`: this host's wall clock.
std::string change_json(const Change& change, lock::ServerTime time);
// Reports that the server no longer answers, and why; without `why`, that it answers again.
std::string server_change_json(const std::string& server, const std::optional<Error>& why,
                               lock::ServerTime time);

// A setting of a run, with its source.
struct ShownSetting {
  std::string_view name{};
  bool of_run = false;  // it belongs in the table [run] of a file
  std::string value{};  // empty if the setting is not set
  std::string_view source{};
  std::string place{};  // empty for a default
};
std::string config_json(std::span<const ShownSetting> settings, const std::string& unused_login,
                        const std::vector<std::string>& unknown_variables);

std::string doctor_json(const DoctorReport& found);

// The lock and the owner that an error is about, if known.
struct Subject {
  std::optional<std::string> name{};
  std::optional<std::string> owner{};
};
// The exit code and kind, if they differ from those of the error. `obstacle`: why the lock is busy.
struct ErrorDetails {
  std::optional<int> code{};
  std::string_view kind{};
  std::optional<lock::Obstacle> obstacle{};
};
std::string error_json(const Error& error, const Subject& subject,
                       const ErrorDetails& details = {});

// One line of the event log; docs/json/event-log.schema.json describes it.
struct LoggedEvent {
  std::string_view event{};
  int64_t t_ns = 0;
  lock::ServerTime time{};  // this host's wall clock
  Record run{};             // the run and its command
  std::string_view server{};
  std::string_view name{};
  std::string_view owner{};
  lock::Token token{};
  std::optional<Millis> waited{};  // from the start until the lock was acquired, or rlock gave up
  std::optional<Millis> held{};    // since the lock was acquired
  std::optional<int> exit_code{};  // of the command, in `exited`
  std::optional<int> signal{};
  std::string_view detail{};
};
std::string event_json(const LoggedEvent& event);

}  // namespace rlock::cli
