// rlock stop-local: stops the private server of `local:`.
#include "cli/commands/commands.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/settings/connect.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// For the URL `local:`, or if there is no URL.
Result<redis::OpenOptions> local_settings(const Invocation& invocation) {
  if (!invocation.names.empty() || invocation.after_dashes) {
    return usage("stop-local takes no NAME: it stops the server of local:, with all of its locks");
  }
  Choices choices = invocation.choices;
  if (!choices.has(Opt::url)) {
    choices.set(Opt::url, {{"local:"}});
  }
  TRY(auto settings, connection_options(choices));
  if (settings.urls.size() != 1 || !std::holds_alternative<redis::LocalUrl>(settings.urls[0])) {
    return usage(
        "stop-local stops the server of local:, but the URL names another one; use rlock "
        "stop-local --url local:");
  }
  settings.local_start = redis::LocalStart::forbidden;
  return settings;
}

std::string lock_user(const lock::LockName& name, const lock::Snapshot& lock) {
  std::string text = in_quotes(name.text()) + " is ";
  if (!lock.holders.empty()) return text + holder_phrase(lock.holders.front(), TimeStyle::duration);
  const std::string who =
      lock.waiters.empty() ? "" : who_text(decode_record(lock.waiters.front().record));
  return text + "waited for by " + (who.empty() ? "another client" : who);
}

// ErrorKind::busy while a run holds or waits for a lock.
Status check_locks_free(Session& session) {
  TRY(auto all, all_names(session, ListedNames::in_use));
  const auto names = selected(std::move(all.names));
  auto locks = inspect_first_waiter(session, names);
  size_t used = 0;
  std::string first;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!locks[i]) return locks[i].error();
    if (locks[i]->holders.empty() && locks[i]->live_waiters == 0) continue;
    if (++used == 1) first = lock_user(names[i], *locks[i]);
  }
  if (used == 0) return Done{};
  return Error{ErrorKind::busy,
               "the server was not stopped: " + first +
                   (used > 1 ? " (and " + std::to_string(used - 1) + " more: rlock status)" : "")};
}

}  // namespace

Result<Report> stop_local_command(const Invocation& invocation) {
  TRY(auto settings, local_settings(invocation));
  const std::string folder = std::get<redis::LocalUrl>(settings.urls[0]).folder;
  if (auto session = Session::open(std::move(settings))) TRY_STATUS(check_locks_free(*session));
  TRY(const bool stopped, redis::stop_local_server(folder));
  return Report{.text = [=] {
    return stopped ? "stopped the server of local:\n" : "no server of local: was running\n";
  }};
}

}  // namespace rlock::cli
