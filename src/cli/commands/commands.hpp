#pragma once

#include <optional>
#include <span>
#include <string>

#include "cli/options/parse.hpp"
#include "cli/output/json.hpp"

// One function a command: what it prints, and its exit code.
namespace rlock::cli {

int run_command(const Invocation& invocation);
int acquire_command(const Invocation& invocation);
int renew_command(const Invocation& invocation);
int release_command(const Invocation& invocation);
int status_command(const Invocation& invocation);
int queue_command(const Invocation& invocation);
int force_unlock_command(const Invocation& invocation);
int history_command(const Invocation& invocation);
int doctor_command(const Invocation& invocation);
int completion_command(const Invocation& invocation);

// What no help names, since nobody types it: `__complete WORD...` prints the names of locks for the
// completion scripts, `--generate WHAT` what is committed in completions/ and man/. Nothing for
// other words.
std::optional<int> hidden_command(std::span<const std::string> words);

// One line on stderr, with --json the error document on stdout too; its exit code.
int fail(const Error& error, const Choices& choices, const Subject& subject = {});

// The output of a command that did its work; `code`, or 71 when it cannot be written.
int print_result(const std::string& output, int code = 0);

// The one NAME of `rlock COMMAND NAME`; words after `--` are names too.
Result<std::string> only_name(const Invocation& invocation);

}  // namespace rlock::cli
