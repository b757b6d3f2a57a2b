#pragma once

#include <optional>
#include <span>
#include <string>

#include "cli/session.hpp"

// The commands, a function each: it prints the output and returns the exit code. The dispatcher
// prints an Error that it returns, as fail() does, or unknown_check() for `check`.
namespace rlock::cli {

struct RunSettings;

Result<int> run_command(const Invocation& invocation);
Result<int> acquire_command(const Invocation& invocation);
Result<int> renew_command(const Invocation& invocation);
Result<int> release_command(const Invocation& invocation);
Result<int> status_command(const Invocation& invocation);
Result<int> queue_command(const Invocation& invocation);
Result<int> force_unlock_command(const Invocation& invocation);
Result<int> close_command(const Invocation& invocation);
Result<int> open_command(const Invocation& invocation);
Result<int> watch_command(const Invocation& invocation);
Result<int> history_command(const Invocation& invocation);
Result<int> forget_command(const Invocation& invocation);
Result<int> metrics_command(const Invocation& invocation);
Result<int> check_command(const Invocation& invocation);
Result<int> doctor_command(const Invocation& invocation);
Result<int> config_command(const Invocation& invocation);
Result<int> local_command(const Invocation& invocation);
Result<int> completion_command(const Invocation& invocation);

// What run_settings() is for `run`.
Result<RunSettings> acquire_settings(const Invocation& invocation);

// What `check` prints where it cannot find out: a line on stdout, and the code 3.
int unknown_check(const Error& error);

// The commands that no help shows, because nobody types them: `__complete WORD...` prints the names
// of locks for the completion scripts; `--generate WHAT` prints what is committed in completions/
// and man/. Nothing for other words.
std::optional<int> hidden_command(std::span<const std::string> words);

}  // namespace rlock::cli
