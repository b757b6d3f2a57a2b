#pragma once

#include <optional>
#include <span>
#include <string>

#include "cli/options/parse.hpp"
#include "cli/output/json.hpp"
#include "lock/store.hpp"

// The commands, and what several of them share.
namespace rlock::cli {

// One function a command: it prints the output and returns the exit code.
int run_command(const Invocation& invocation);
int acquire_command(const Invocation& invocation);
int renew_command(const Invocation& invocation);
int release_command(const Invocation& invocation);
int status_command(const Invocation& invocation);
int queue_command(const Invocation& invocation);
int force_unlock_command(const Invocation& invocation);
int close_command(const Invocation& invocation);
int open_command(const Invocation& invocation);
int watch_command(const Invocation& invocation);
int history_command(const Invocation& invocation);
int forget_command(const Invocation& invocation);
int metrics_command(const Invocation& invocation);
int check_command(const Invocation& invocation);
int doctor_command(const Invocation& invocation);
int config_command(const Invocation& invocation);
int local_command(const Invocation& invocation);
int completion_command(const Invocation& invocation);

// What `check` prints where it cannot find out: a line on stdout, and the code 3.
int unknown_check(const Error& error);

// The commands that no help shows, because nobody types them: `__complete WORD...` prints the names
// of locks for the completion scripts; `--generate WHAT` prints what is committed in completions/
// and man/. Nothing for other words.
std::optional<int> hidden_command(std::span<const std::string> words);

enum class Verbosity { quiet, normal, verbose };  // -q, neither, -v
Verbosity verbosity_of(const Choices& choices);

// Prints the error as one line on stderr, with the lock that it is about.
void print_error(const Error& error, const Subject& subject = {});

// Prints the error, with --json its document on stdout, too, and returns its exit code. `run` has
// no --json: its stdout belongs to the command.
int fail(const Error& error, const Choices& choices, const Subject& subject = {});

// Prints the output of a command that did its work. Returns `code`, or 71 if it cannot be written.
int print_result(const std::string& output, int code = 0);

// The one NAME of `rlock COMMAND NAME`; words after `--` are names, too.
Result<lock::LockName> only_name(const Invocation& invocation);

// The locks that a command is to read: those that are named, and those that fit a pattern.
struct Selection {
  std::vector<lock::LockName> names{};  // each once
  std::vector<std::string> patterns{};

  bool empty() const { return names.empty() && patterns.empty(); }
  // Neither names nor patterns: all locks.
  bool is_listing() const { return names.empty() || !patterns.empty(); }
  // Of a lock of the listing: whether it is asked for, and not by its name already.
  bool lists(const lock::LockName& name) const;
};

// From `rlock COMMAND [NAME...]`, where a NAME with `*` or `?` is a pattern.
Result<Selection> selection_of(const Invocation& invocation);

// Which owner of which lock `renew` and `release` are about.
struct LeaseId {
  lock::LockName name;
  lock::Owner owner;
};

// From NAME and --owner ID. RLOCK_OWNER is not read: inside a run it names that run's own lock.
Result<LeaseId> parse_lease_id(const Invocation& invocation);

// ErrorKind::lost: that this owner no longer holds the lock, why (`how`, a phrase), and who holds
// it now.
Error no_longer_held(const LeaseId& lease, const std::string& how,
                     const std::optional<lock::Holder>& now, const std::string& server);

}  // namespace rlock::cli
