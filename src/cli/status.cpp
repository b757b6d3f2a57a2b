#include <unistd.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/describe.hpp"
#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/json.hpp"
#include "cli/render.hpp"
#include "cli/session.hpp"
#include "cli/terminal.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using util::Error;
using util::ErrorKind;
using util::Result;

struct StatusSettings {
  std::vector<lock::LockName> names;
  std::vector<std::string> patterns;  // neither names nor patterns: all locks
  std::optional<lock::Owner> owner;
  bool quiet = false;
  bool json = false;
  bool any_format = true;  // other clients' locks are recognised by their shape
};

util::Status set_names(StatusSettings& settings, const Invocation& invocation) {
  std::vector<std::string> texts = invocation.names;
  const auto& more = invocation.after_dashes;
  if (more) texts.insert(texts.end(), more->begin(), more->end());
  for (const std::string& text : texts) {
    auto name = lock::LockName::parse(text);
    if (!name) return std::move(name).error();
    if (text.find_first_of("*?") == text.npos) {
      settings.names.push_back(*std::move(name));
    } else {
      settings.patterns.push_back(text);
    }
  }
  return util::Done{};
}

Result<StatusSettings> settings_of(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  StatusSettings settings;
  if (auto ok = set_names(settings, invocation); !ok) return std::move(ok).error();
  settings.quiet = choices.has(Opt::quiet);
  settings.json = choices.has(Opt::json);
  settings.any_format = !choices.has(Opt::format);
  auto owner = owner_choice(choices);
  if (!owner) return std::move(owner).error();
  settings.owner = *std::move(owner);
  if (settings.quiet && !settings.patterns.empty()) {
    return Error{ErrorKind::usage, "status -q takes names of locks, not the pattern " +
                                       in_quotes(settings.patterns.front())};
  }
  if (settings.quiet && settings.names.empty()) {
    return Error{ErrorKind::usage,
                 "status -q needs a NAME: its exit code tells whether that is held"};
  }
  if (settings.owner && !settings.quiet) {
    return Error{ErrorKind::usage, "status --owner needs -q: rlock status -q NAME --owner ID"};
  }
  return settings;
}

bool is_listing(const StatusSettings& settings) {
  return settings.names.empty() || !settings.patterns.empty();
}

struct Looked {
  std::vector<LockView> locks{};
  std::vector<Error> missing{};  // why other locks are not told
};

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

Result<Looked> look_at_named(Session& session, const StatusSettings& settings) {
  auto locks = look_at(session, settings.names);
  if (!locks) return std::move(locks).error();
  if (settings.any_format) {
    auto ok = add_foreign(*locks, session, settings.names);
    if (!ok) return std::move(ok).error();
  }
  return Looked{*std::move(locks)};
}

bool is_wanted(const std::string& name, const StatusSettings& settings) {
  const auto& patterns = settings.patterns;
  return patterns.empty() ||
         std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return util::matches(pattern, name); });
}

// What vanished between the listing and the look is left out, and so is a key that no lock can
// have.
Result<Looked> look_at_listed(Session& session, const StatusSettings& settings) {
  auto all = all_names(session);
  if (!all) return std::move(all).error();
  std::vector<lock::LockName> names;
  for (const std::string& text : all->names) {
    auto name = lock::LockName::parse(text);
    if (name && is_wanted(text, settings)) names.push_back(*std::move(name));
  }
  auto locks = look_at(session, names);
  if (!locks) return std::move(locks).error();
  std::erase_if(*locks,
                [](const LockView& lock) { return lock.snapshot && !lock.snapshot->known; });
  return Looked{*std::move(locks), std::move(all->missing)};
}

Result<Looked> look(Session& session, const StatusSettings& settings) {
  Result<Looked> listed = is_listing(settings) ? look_at_listed(session, settings) : Looked{};
  if (!listed || settings.names.empty()) return listed;
  auto named = look_at_named(session, settings);
  if (!named) return named;
  named->missing = std::move(listed->missing);
  std::move(listed->locks.begin(), listed->locks.end(), std::back_inserter(named->locks));
  return named;
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

std::string table_of(const Looked& looked, const StatusSettings& settings, size_t width) {
  if (!looked.locks.empty()) return status_table(looked.locks, width);
  if (!looked.missing.empty()) return {};
  if (settings.patterns.empty()) return "no locks\n";
  return "no lock matches " + in_quotes(settings.patterns.front()) + "\n";
}

std::string text_of(const Looked& looked, const StatusSettings& settings) {
  const size_t width = line_width(STDOUT_FILENO);
  if (settings.json) return status_json(looked.locks);
  if (settings.quiet) return {};
  if (is_listing(settings)) return table_of(looked, settings, width);
  std::string text;
  for (const LockView& lock : looked.locks) text += lock_details(lock, width);
  return text;
}

int code_of(const Looked& looked, const StatusSettings& settings) {
  const std::vector<LockView>& locks = looked.locks;
  if (!looked.missing.empty()) return exit_code(looked.missing.front().kind);
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
  auto looked = look(*session, *settings);
  if (!looked) return fail(looked.error(), choices);
  for (const Error& why : looked->missing) fail(why, Choices{});
  for (const LockView& lock : looked->locks) {
    if (!lock.snapshot) fail(lock.snapshot.error(), Choices{}, {lock.name});
  }
  if (is_listing(*settings) && !settings->json) warn_of_silent(looked->locks);
  return deliver(text_of(*looked, *settings), code_of(*looked, *settings));
}

}  // namespace rlock::cli
