#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/describe.hpp"
#include "cli/json.hpp"
#include "cli/operator_note.hpp"
#include "cli/render.hpp"
#include "cli/session.hpp"
#include "cli/terminal.hpp"

namespace rlock::cli {
namespace {

using util::Error;
using util::ErrorKind;
using util::Result;

struct QueueSettings {
  lock::LockName name;
  std::optional<lock::Owner> remove;
};

Result<QueueSettings> settings_of(const Invocation& invocation) {
  auto text = only_name(invocation);
  if (!text) return std::move(text).error();
  auto name = lock::LockName::parse(*text);
  if (!name) return std::move(name).error();
  QueueSettings settings{*std::move(name), std::nullopt};
  if (auto id = invocation.choices.last(Opt::remove)) {
    auto owner = lock::Owner::parse(*id);
    if (!owner) return std::move(owner).error();
    settings.remove = *std::move(owner);
  } else if (invocation.choices.has(Opt::reason)) {
    return Error{ErrorKind::usage,
                 "--reason needs --remove OWNER: rlock queue NAME --remove OWNER"};
  }
  return settings;
}

std::string list_text(const QueueSettings& settings, const std::vector<lock::Waiter>& waiters,
                      uint64_t servers) {
  if (waiters.empty()) return "nobody waits for " + in_quotes(settings.name.text()) + "\n";
  return queue_table(waiters, line_width(STDOUT_FILENO), servers);
}

int list(const QueueSettings& settings, Session& session, const Choices& choices) {
  auto waiters = inspect_waiters(session, settings.name);
  if (!waiters) return fail(waiters.error(), choices, {settings.name.text()});
  if (choices.has(Opt::json))
    return deliver(queue_json(settings.name, *waiters, std::nullopt, session.servers()));
  return deliver(choices.has(Opt::quiet) ? "" : list_text(settings, *waiters, session.servers()));
}

// The queue as it is afterwards, with who was taken out.
int tell_removed(const QueueSettings& settings, bool removed, Session& session,
                 const Choices& choices) {
  const std::string& owner = settings.remove->text();
  if (choices.has(Opt::json)) {
    auto waiters = inspect_waiters(session, settings.name);
    if (!waiters) return fail(waiters.error(), choices, {settings.name.text()});
    return deliver(queue_json(settings.name, *waiters,
                              removed ? std::optional(owner) : std::nullopt, session.servers()));
  }
  if (choices.has(Opt::quiet)) return 0;
  std::string name = in_quotes(settings.name.text());
  return deliver(removed ? "removed " + owner + " from the queue of " + name + "\n"
                         : owner + " does not wait for " + name + ": nothing to remove\n");
}

int remove(const QueueSettings& settings, Session& session, const Choices& choices) {
  const lock::CancelCall call{settings.name, *settings.remove, lock::CancelHow::removed,
                              operator_note(choices)};
  auto reply = session.ask([&](auto& store) { return store.cancel(call); });
  if (!reply) return fail(reply.error(), choices, {settings.name.text()});
  if (*reply == lock::CancelReply::holds) {
    std::string text = in_quotes(settings.name.text()) + " is held by " + settings.remove->text() +
                       ", which does not wait: see rlock force-unlock";
    return fail({ErrorKind::busy, text}, choices, {settings.name.text(), settings.remove->text()});
  }
  return tell_removed(settings, *reply != lock::CancelReply::absent, session, choices);
}

}  // namespace

int queue_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto settings = settings_of(invocation);
  if (!settings) return fail(settings.error(), choices);
  auto session = Session::open(choices);
  if (!session) return fail(session.error(), choices);
  return settings->remove ? remove(*settings, *session, choices)
                          : list(*settings, *session, choices);
}

}  // namespace rlock::cli
