#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/report.hpp"
#include "cli/session.hpp"

// The commands, one function each. The dispatcher prints the report that it returns; failure()
// turns an Error into one, or unknown_check() for `check`.
namespace rlock::cli {

struct RunSettings;

Result<Report> run_command(const Invocation& invocation);
Result<Report> acquire_command(const Invocation& invocation);
Result<Report> renew_command(const Invocation& invocation);
Result<Report> release_command(const Invocation& invocation);
Result<Report> status_command(const Invocation& invocation);
Result<Report> queue_command(const Invocation& invocation);
Result<Report> force_unlock_command(const Invocation& invocation);
Result<Report> close_command(const Invocation& invocation);
Result<Report> open_command(const Invocation& invocation);
Result<Report> watch_command(const Invocation& invocation);
Result<Report> history_command(const Invocation& invocation);
Result<Report> forget_command(const Invocation& invocation);
Result<Report> metrics_command(const Invocation& invocation);
Result<Report> check_command(const Invocation& invocation);
Result<Report> doctor_command(const Invocation& invocation);
Result<Report> config_command(const Invocation& invocation);
Result<Report> stop_local_command(const Invocation& invocation);
Result<Report> completion_command(const Invocation& invocation);

// The counterpart of run_settings() for `acquire`.
Result<RunSettings> acquire_settings(const Invocation& invocation);

// The help for the terminal at fd, with bold headings; unchanged if fd is not a terminal, or if
// NO_COLOR or TERM=dumb is set.
std::string shown_help(const std::string& help, int fd);

// Executes man(1) with an installed page of the manual, such as rlock-run.1. If that is impossible,
// executes a pager with the text of the page that this program contains, or returns the text if
// stdout is not a terminal or there is no pager. Fails if this program was built without the text.
Result<std::string> show_manual(const std::string& file);

// What `check` prints if it cannot find out: a line on stdout, and exit code 3.
Report unknown_check(const Error& error);

// The metrics as a scraper sees them: `rlock_holders{name} gauge`.
std::vector<std::string> metric_names();

// The names that the program has and the manual promises to keep, one line `KIND<tab>NAME` for
// each; for options, followed by the version since which the option exists.
std::string public_names();

// The commands that no help shows, because users do not type them: `__complete WORD...` prints the
// names of locks for the completion scripts; `--generate WHAT` prints the files that are committed
// in completions/ and man/. Returns nullopt for other words.
std::optional<int> hidden_command(std::span<const std::string> words);

}  // namespace rlock::cli
