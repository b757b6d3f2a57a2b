#include "cli/commands/commands.hpp"

#include "cli/output/console.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/output/messages.hpp"
#include "util/text.hpp"

namespace rlock::cli {

int fail(const Error& error, const Choices& choices, const Subject& subject) {
  const auto& lock = subject.lock;
  bool named = !lock || error.text.find("\"" + *lock + "\"") != error.text.npos;
  print_message((named ? "" : in_quotes(*lock) + ": ") + util::printable(error.text) +
                std::string(next_step(error.kind)));
  int code = exit_code(error.kind);
  return choices.has(Opt::json) ? print_result(error_json(error, subject), code) : code;
}

int print_result(const std::string& output, int code) {
  auto written = print(output);
  if (written) return code;
  print_message(written.error().text);
  return exit_code(written.error().kind);
}

Result<std::string> only_name(const Invocation& invocation) {
  std::vector<std::string> names = invocation.names;
  if (invocation.after_dashes) {
    names.insert(names.end(), invocation.after_dashes->begin(), invocation.after_dashes->end());
  }
  std::string form = "rlock " + std::string(row_of(invocation.command).name) + " NAME";
  if (names.empty()) {
    return Error{ErrorKind::usage, "no lock name given: " + form};
  }
  if (names.size() > 1) {
    return Error{ErrorKind::usage,
                 "one lock name at a time, not also " + in_quotes(names[1]) + ": " + form};
  }
  return names.front();
}

}  // namespace rlock::cli
