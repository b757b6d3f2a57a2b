#include "cli/report.hpp"

#include <utility>

#include "cli/output/messages.hpp"
#include "util/text.hpp"

namespace rlock::cli {

Verbosity verbosity_of(const Choices& choices) {
  if (choices.has(Opt::quiet)) return Verbosity::quiet;
  return choices.has(Opt::verbose) ? Verbosity::verbose : Verbosity::normal;
}

void print_warnings(const std::vector<std::string>& warnings, const Choices& choices) {
  if (choices.has(Opt::quiet)) return;
  for (const std::string& warning : warnings) print_message(warning);
}

int print_report(const Report& report, const Choices& choices) {
  const bool json = choices.has(Opt::json);
  const auto& make = json ? report.json : report.text;
  const bool prints = make && (json || !choices.has(Opt::quiet));
  return print_result(prints ? make() : std::string(), report.code);
}

int print_result(const std::string& output, int code) {
  auto written = print(output);
  if (written) return code;
  print_message(written.error().text);
  return exit_code(written.error().kind);
}

int print_error(const Error& error, const Subject& subject, std::string_view longer) {
  const std::string text = util::printable(error.text);
  print_message((subject.name ? naming(*subject.name, text) : text) + next_step(error, longer));
  return exit_code(error.kind);
}

int report_missing(const std::vector<Error>& missing) {
  for (const Error& why : missing) print_error(why);
  return missing.empty() ? kSuccess : exit_code(missing.front().kind);
}

Report failure(const Error& error, const Subject& subject, std::string_view longer,
               const ExitCodes& codes) {
  const int code = codes.of(error.kind);
  print_error(error, subject, longer);
  return {[=] { return error_json(error, subject, {.code = code}); }, {}, code};
}

Report reported(Result<Report> report, const Subject& subject, const ExitCodes& codes) {
  return report ? *std::move(report) : failure(report.error(), subject, kLongerConnect, codes);
}

}  // namespace rlock::cli
