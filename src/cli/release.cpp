#include "cli/commands.hpp"
#include "cli/describe.hpp"
#include "cli/held_by.hpp"
#include "cli/record.hpp"
#include "cli/terminal.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

std::string how_ended(const lock::ReleaseReply& reply) {
  const std::string operators = note_text(reply.note);
  switch (reply.ending) {
    case lock::Ending::forced:
      return "it was broken " + (operators.empty() ? "by an operator" : operators);
    case lock::Ending::removed:
      return "it was removed from the queue " + (operators.empty() ? "by an operator" : operators);
    case lock::Ending::cancelled:
      return "it waited in the queue, and does not any more";
    case lock::Ending::expired:
    case lock::Ending::released:
    case lock::Ending::unknown:
      break;
  }
  return "its lease has ended, or it never held it";
}

// Its command would go on beside the next holder.
util::Error held_by_run(const OwnerOf& whose, const lock::Holder& run, const std::string& server) {
  const std::string name = in_quotes(whose.name.text());
  return {util::ErrorKind::busy,
          name + " at " + util::printable(server) + " is " + holder_phrase(run) +
              "; a run releases its lock itself when its command has ended; to break it: "
              "rlock force-unlock " +
              util::printable(shell_quoted(whose.name.text())) + " --owner " + whose.owner.text()};
}

// Who has it now, for the message alone.
std::optional<lock::Holder> present_holder(Session& session, const lock::LockName& name) {
  auto seen = inspect_holders(session, name);
  if (!seen || seen->holders.empty()) return std::nullopt;
  return seen->holders.front();
}

}  // namespace

int release_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto whose = owner_of(invocation);
  if (!whose) return fail(whose.error(), choices);
  const Subject subject{whose->name.text(), whose->owner.text()};
  auto session = Session::open(choices);
  if (!session) return fail(session.error(), choices, subject);
  lock::ReleaseCall call{whose->name, whose->owner};
  call.how = lock::ReleaseHow::by_id;
  auto reply = session->ask([&](auto& store) { return store.release(call); });
  if (!reply) return fail(reply.error(), choices, subject);
  if (reply->run) {
    return fail(held_by_run(*whose, *reply->run, session->server()), choices, subject);
  }
  if (reply->ending == lock::Ending::released) {
    if (choices.has(Opt::verbose)) say(in_quotes(whose->name.text()) + ": released");
    return 0;
  }
  auto now = present_holder(*session, whose->name);
  return fail(no_longer_held(*whose, how_ended(*reply), now, session->server()), choices, subject);
}

}  // namespace rlock::cli
