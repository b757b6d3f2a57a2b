#include "cli/commands/closures.hpp"
#include "cli/output/messages.hpp"

namespace rlock::cli {
namespace {

std::string text_of(const std::vector<ClosureResult>& results) {
  std::string text;
  for (const ClosureResult& result : results) {
    if (result.error) continue;
    const std::string name = in_quotes(result.name.text());
    text += result.before ? "opened " + name + "\n" : name + " is open already\n";
  }
  return text.empty() ? "no lock was opened\n" : text;
}

}  // namespace

int open_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto settings = closure_settings(invocation);
  if (!settings) return fail(settings.error(), choices);
  auto session = Session::open(choices);
  if (!session) return fail(session.error(), choices);
  auto names = locks_to_change(*session, settings->locks);
  if (!names) return fail(names.error(), choices);
  std::vector<ClosureResult> results;
  for (const lock::LockName& name : *names) {
    results.push_back(change_closure(*session, name, *settings));
  }
  const int code = report_failures(results);
  if (choices.has(Opt::quiet) && !choices.has(Opt::json)) return code;
  return print_result(choices.has(Opt::json) ? closures_json(results) : text_of(results), code);
}

}  // namespace rlock::cli
