#include <unistd.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/json.hpp"
#include "cli/render.hpp"
#include "cli/session.hpp"
#include "cli/terminal.hpp"

namespace rlock::cli {
namespace {

using util::Error;
using util::ErrorKind;
using util::Result;

struct StatusSettings {
  std::vector<lock::LockName> names;  // none: all
  std::optional<lock::Owner> owner;
  bool quiet = false;
  bool json = false;
  bool any_format = true;  // other clients' locks are recognised by their shape
};

Result<std::vector<lock::LockName>> names_of(const Invocation& invocation) {
  std::vector<std::string> texts = invocation.names;
  const auto& more = invocation.after_dashes;
  if (more) texts.insert(texts.end(), more->begin(), more->end());
  std::vector<lock::LockName> names;
  for (const std::string& text : texts) {
    auto name = lock::LockName::parse(text);
    if (!name) return std::move(name).error();
    names.push_back(*std::move(name));
  }
  return names;
}

Result<StatusSettings> settings_of(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  StatusSettings settings;
  auto names = names_of(invocation);
  if (!names) return std::move(names).error();
  settings.names = *std::move(names);
  settings.quiet = choices.has(Opt::quiet);
  settings.json = choices.has(Opt::json);
  settings.any_format = !choices.has(Opt::format);
  auto owner = owner_choice(choices);
  if (!owner) return std::move(owner).error();
  settings.owner = *std::move(owner);
  if (settings.quiet && settings.names.empty()) {
    return Error{ErrorKind::usage,
                 "status -q needs a NAME: its exit code tells whether that is held"};
  }
  if (settings.owner && !settings.quiet) {
    return Error{ErrorKind::usage, "status --owner needs -q: rlock status -q NAME --owner ID"};
  }
  return settings;
}

// Does the failure of one lock spoil only that one, or is the server out of reach?
bool spoils_all(const Error& error) {
  return error.kind != ErrorKind::foreign;
}

Result<std::vector<LockView>> look_at(Session& session, const std::vector<lock::LockName>& names) {
  std::vector<LockView> locks;
  for (const lock::LockName& name : names) {
    auto snapshot = inspect_holders(session, name);
    if (!snapshot && spoils_all(snapshot.error())) return std::move(snapshot).error();
    locks.push_back({name.text(), std::move(snapshot), session.format()});
  }
  return locks;
}

// Those that nobody holds as rlock does, another client may hold.
util::Status add_foreign(std::vector<LockView>& locks, const Session& session,
                         const std::vector<lock::LockName>& names) {
  for (size_t i = 0; i < locks.size(); ++i) {
    if (!locks[i].snapshot || !locks[i].snapshot->holders.empty()) continue;
    auto other = find_foreign(session, names[i]);
    if (!other) return std::move(other).error();
    if (!*other) continue;
    locks[i].snapshot = inspect_holders(**other, names[i]);
    locks[i].format = (*other)->format();
  }
  return util::Done{};
}

Result<std::vector<LockView>> look_at_named(Session& session, const StatusSettings& settings) {
  auto locks = look_at(session, settings.names);
  if (!locks || !settings.any_format) return locks;
  auto ok = add_foreign(*locks, session, settings.names);
  if (!ok) return std::move(ok).error();
  return locks;
}

// What vanished between the listing and the look is left out, and so is a key that no lock can
// have.
Result<std::vector<LockView>> look_at_all(Session& session) {
  auto texts = all_names(session);
  if (!texts) return std::move(texts).error();
  std::vector<lock::LockName> names;
  for (const std::string& text : *texts) {
    if (auto name = lock::LockName::parse(text)) names.push_back(*std::move(name));
  }
  auto locks = look_at(session, names);
  if (locks) {
    std::erase_if(*locks,
                  [](const LockView& lock) { return lock.snapshot && !lock.snapshot->known; });
  }
  return locks;
}

bool held(const LockView& lock, const std::optional<lock::Owner>& owner) {
  if (!lock.snapshot) return false;
  const auto& holders = lock.snapshot->holders;
  return std::any_of(holders.begin(), holders.end(), [&](const lock::Holder& holder) {
    bool theirs = !owner || holder.owner == owner->text();
    return theirs && holder.state != lock::HolderState::cooldown;
  });
}

// The table has no room for what one lock in full says.
void warn_of_silent(const std::vector<LockView>& locks) {
  if (locks.empty() || !locks.front().snapshot) return;
  for (const lock::Silent& server : locks.front().snapshot->silent) say(server.why);
}

std::string text_of(const std::vector<LockView>& locks, const StatusSettings& settings) {
  constexpr size_t kWidth = 80;
  const size_t width = columns(STDOUT_FILENO, kWidth);
  if (settings.json) return status_json(locks);
  if (settings.quiet) return {};
  if (settings.names.empty()) return locks.empty() ? "no locks\n" : status_table(locks, width);
  std::string text;
  for (const LockView& lock : locks) text += lock_details(lock, width);
  return text;
}

int code_of(const std::vector<LockView>& locks, const StatusSettings& settings) {
  for (const LockView& lock : locks) {
    if (!lock.snapshot) return exit_code(lock.snapshot.error().kind);
  }
  if (!settings.quiet) return kSuccess;
  bool all = std::all_of(locks.begin(), locks.end(),
                         [&](const LockView& lock) { return held(lock, settings.owner); });
  return all ? kSuccess : kNotHeld;
}

}  // namespace

int status_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto settings = settings_of(invocation);
  if (!settings) return fail(settings.error(), choices);
  auto session = Session::open(choices);
  if (!session) return fail(session.error(), choices);
  auto locks = settings->names.empty() ? look_at_all(*session) : look_at_named(*session, *settings);
  if (!locks) return fail(locks.error(), choices);
  for (const LockView& lock : *locks) {
    if (!lock.snapshot) fail(lock.snapshot.error(), Choices{}, {lock.name});
  }
  if (settings->names.empty() && !settings->json) warn_of_silent(*locks);
  return deliver(text_of(*locks, *settings), code_of(*locks, *settings));
}

}  // namespace rlock::cli
