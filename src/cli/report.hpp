#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/parse.hpp"
#include "cli/output/console.hpp"
#include "cli/output/json.hpp"
#include "cli/settings/run_settings.hpp"

// What a command returns for printing, and how it reports a failure.
namespace rlock::cli {

enum class Verbosity { quiet, normal, verbose };  // -q, neither, -v
Verbosity verbosity_of(const Choices& choices);

// Prints them on stderr, unless --quiet was given.
void print_warnings(const std::vector<std::string>& warnings, const Choices& choices);

// What a command prints on stdout, and its exit code. Only the form that the options ask for is
// made. Both forms are empty if the command has printed everything itself.
struct Report {
  std::function<std::string()> json{};  // the document of --json
  std::function<std::string()> text{};  // without it; nothing with --quiet
  int code = kSuccess;
};

// Returns the report's exit code, or 71 if it cannot be written.
int print_report(const Report& report, const Choices& choices);

// Prints text that neither --json nor --quiet changes. Returns `code`, or 71 if it cannot be
// written.
int print_result(const std::string& output, int code = 0);

// Prints the error as one line on stderr, with the lock that it is about and the option that makes
// rlock try for longer. Returns its exit code.
int print_error(const Error& error, const Subject& subject = {},
                std::string_view longer = kLongerConnect);

// Prints why a part of a listing is missing. Returns the exit code of the first error.
int report_missing(const std::vector<Error>& missing);

// Prints the error like print_error(). The report contains the JSON document of the error, and its
// exit code.
Report failure(const Error& error, const Subject& subject = {},
               std::string_view longer = kLongerConnect, const ExitCodes& codes = {});

// The report itself, or failure() for its error.
Report reported(Result<Report> report, const Subject& subject, const ExitCodes& codes = {});

}  // namespace rlock::cli
