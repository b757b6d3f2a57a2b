#include "cli/commands/force_settings.hpp"

#include "cli/commands/commands.hpp"
#include "cli/options/values.hpp"
#include "cli/output/operator_note.hpp"
#include "cli/settings/format.hpp"

namespace rlock::cli {
namespace {

Status set_target(ForceSettings& settings, const Choices& choices) {
  int chosen = choices.has(Opt::owner) + choices.has(Opt::token) + choices.has(Opt::all);
  if (chosen > 1) {
    return Error{ErrorKind::usage, "--owner, --token and --all exclude each other"};
  }
  if (choices.has(Opt::all)) settings.target.emplace<AllHolders>();
  TRY(auto owner, owner_choice(choices));
  if (owner) settings.target.emplace<lock::Owner>(*std::move(owner));
  TRY(auto token, number_choice(choices, Opt::token, kGreatestToken));
  if (token == 0U) return Error{ErrorKind::usage, "--token: no holder has the token 0"};
  if (token) settings.target = lock::Token{*token};
  return Done{};
}

}  // namespace

Result<ForceSettings> force_settings(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  TRY(auto text, only_name(invocation));
  TRY(auto name, lock::LockName::parse(text));
  TRY_STATUS(check_format(choices));
  ForceSettings settings{std::move(name)};
  settings.any_format = !choices.has(Opt::format);
  TRY_STATUS(set_target(settings, choices));
  settings.when = choices.has(Opt::now) ? lock::ForceWhen::now : lock::ForceWhen::confirmed;
  settings.note = operator_note(choices);
  settings.yes = choices.has(Opt::yes);
  settings.quiet = choices.has(Opt::quiet);
  settings.json = choices.has(Opt::json);
  return settings;
}

}  // namespace rlock::cli
