#include "cli/force_settings.hpp"

#include "cli/commands.hpp"
#include "cli/format.hpp"
#include "cli/operator_note.hpp"
#include "cli/values.hpp"

namespace rlock::cli {
namespace {

using util::Error;
using util::ErrorKind;
using util::Result;

util::Status set_target(ForceSettings& settings, const Choices& choices) {
  int chosen = choices.has(Opt::owner) + choices.has(Opt::token) + choices.has(Opt::all);
  if (chosen > 1) {
    return Error{ErrorKind::usage, "--owner, --token and --all exclude each other"};
  }
  if (choices.has(Opt::all)) settings.target.emplace<lock::Every>();
  auto owner = owner_choice(choices);
  if (!owner) return std::move(owner).error();
  if (*owner) settings.target.emplace<lock::Owner>(**std::move(owner));
  auto token = number_choice(choices, Opt::token, kGreatestToken);
  if (!token) return std::move(token).error();
  if (*token == 0U) return Error{ErrorKind::usage, "--token: no holder has the token 0"};
  if (*token) settings.target = lock::Token{**token};
  return util::Done{};
}

}  // namespace

Result<ForceSettings> force_settings(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto text = only_name(invocation);
  if (!text) return std::move(text).error();
  auto name = lock::LockName::parse(*text);
  if (!name) return std::move(name).error();
  if (auto ok = check_format(choices); !ok) return std::move(ok).error();
  ForceSettings settings{*std::move(name)};
  settings.any_format = !choices.has(Opt::format);
  if (auto ok = set_target(settings, choices); !ok) return std::move(ok).error();
  settings.pace = choices.has(Opt::now) ? lock::Pace::now : lock::Pace::confirmed;
  settings.note = operator_note(choices);
  settings.yes = choices.has(Opt::yes);
  settings.quiet = choices.has(Opt::quiet);
  settings.json = choices.has(Opt::json);
  return settings;
}

}  // namespace rlock::cli
