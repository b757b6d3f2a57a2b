#include "cli/commands/commands.hpp"
#include "cli/near_name.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "cli/settings/run_settings.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

Result<lock::ForgetCall> call_of(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  TRY(auto name, only_name(invocation));
  TRY(auto key, once_key_choice(choices));
  // A user who mistakes --key for the KEY would forget everything.
  if (choices.is_flag(Opt::key) && !choices.has(Opt::cert)) {
    return usage("--key requires --cert, for TLS; to forget one KEY, use --once KEY");
  }
  return lock::ForgetCall{std::move(name), std::move(key)};
}

// `what was done under "nightly"`, or `that "v17" was done under "migrate"`.
std::string what_is_forgotten(const lock::ForgetCall& call) {
  return util::format("{} was done under {}", call.key ? "that " + in_quotes(*call.key) : "what",
                      in_quotes(call.name.text()));
}

Status confirm_forget(const lock::ForgetCall& call, const Session& session,
                      const Choices& choices) {
  if (choices.has(Opt::yes)) return Done{};
  return confirm(util::format("rlock: {} will forget {}; a later run does it again. Forget it? "
                              "[y/N] ",
                              util::printable(session.server()), what_is_forgotten(call)),
                 "forget " + what_is_forgotten(call));
}

std::string text_of(const lock::ForgetCall& call, const lock::Forgotten& forgotten) {
  const std::string name = in_quotes(call.name.text());
  if (forgotten.marks + forgotten.failures + forgotten.numbers == 0) {
    return util::format("nothing was recorded under {}{}\n", name,
                        call.key ? " with the KEY " + in_quotes(*call.key) : "");
  }
  if (forgotten.marks > 0) return util::format("forgot {}\n", what_is_forgotten(call));
  if (call.key) {
    return util::format("forgot that {} failed under {}\n", in_quotes(*call.key), name);
  }
  return util::format("forgot {} under {}; no success was recorded\n",
                      forgotten.failures > 0 ? "what failed" : "the number of --supersede", name);
}

Result<Report> forget(const lock::ForgetCall& call, const Choices& choices) {
  TRY(auto session, Session::open(choices));
  TRY_STATUS(confirm_forget(call, session, choices));
  TRY(auto forgotten, session.change([&](auto& store) { return store.forget(call); }));
  if (forgotten.marks + forgotten.failures + forgotten.numbers == 0) {
    report_unknown_name(session, call.name, choices);
  }
  return Report{[=] { return forget_json(call, forgotten); },
                [=] { return text_of(call, forgotten); }};
}

}  // namespace

Result<Report> forget_command(const Invocation& invocation) {
  TRY(auto call, call_of(invocation));
  return reported(forget(call, invocation.choices), {call.name.text()});
}

}  // namespace rlock::cli
