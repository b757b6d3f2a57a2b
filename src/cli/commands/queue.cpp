#include <unistd.h>

#include <cstdint>
#include "cli/commands/commands.hpp"

#include "cli/commands/session.hpp"
#include "cli/output/console.hpp"
#include "cli/output/json.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/output/render.hpp"

namespace rlock::cli {
namespace {

struct QueueSettings {
  lock::LockName name;
  std::optional<lock::Owner> remove;
};

Result<QueueSettings> settings_of(const Invocation& invocation) {
  TRY(auto name, only_name(invocation));
  QueueSettings settings{std::move(name), std::nullopt};
  if (auto id = invocation.choices.last(Opt::remove)) {
    TRY(auto owner, lock::Owner::parse(*id));
    settings.remove = std::move(owner);
  } else if (invocation.choices.has(Opt::reason)) {
    return Error{ErrorKind::usage,
                 "--reason needs --remove OWNER: rlock queue NAME --remove OWNER"};
  }
  return settings;
}

std::string list_text(const QueueSettings& settings, const std::vector<lock::Waiter>& waiters,
                      uint64_t servers) {
  if (waiters.empty()) return "nobody is waiting for " + in_quotes(settings.name.text()) + "\n";
  return queue_table(waiters, line_width(STDOUT_FILENO), servers);
}

int list(const QueueSettings& settings, Session& session, const Choices& choices) {
  auto waiters = inspect_waiters(session, settings.name);
  if (!waiters) return fail(waiters.error(), choices, {settings.name.text()});
  if (choices.has(Opt::json))
    return print_result(queue_json(settings.name, *waiters, std::nullopt, session.servers()));
  return print_result(choices.has(Opt::quiet) ? ""
                                              : list_text(settings, *waiters, session.servers()));
}

// Reports what was removed, as JSON with the queue that is left.
int report_removed(const QueueSettings& settings, bool removed, Session& session,
                   const Choices& choices) {
  const std::string& owner = settings.remove->text();
  if (choices.has(Opt::json)) {
    auto waiters = inspect_waiters(session, settings.name);
    if (!waiters) return fail(waiters.error(), choices, {settings.name.text()});
    return print_result(queue_json(settings.name, *waiters,
                                   Removal{removed ? std::optional(owner) : std::nullopt},
                                   session.servers()));
  }
  if (choices.has(Opt::quiet)) return 0;
  std::string name = in_quotes(settings.name.text());
  return print_result(removed ? "removed " + owner + " from the queue of " + name + "\n"
                              : owner + " is not waiting for " + name + ": nothing to remove\n");
}

int remove(const QueueSettings& settings, Session& session, const Choices& choices) {
  const lock::CancelCall call{settings.name, *settings.remove, lock::CancelHow::removed,
                              operator_note(choices.last(Opt::reason))};
  auto reply = session.ask([&](auto& store) { return store.cancel(call); });
  if (!reply) return fail(reply.error(), choices, {settings.name.text()});
  if (*reply == lock::CancelReply::still_holds) {
    std::string text = in_quotes(settings.name.text()) + " is held by " + settings.remove->text() +
                       ", which is not waiting: use rlock force-unlock to break its lock";
    return fail({ErrorKind::busy, text}, choices, {settings.name.text(), settings.remove->text()});
  }
  return report_removed(settings, *reply != lock::CancelReply::not_found, session, choices);
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
