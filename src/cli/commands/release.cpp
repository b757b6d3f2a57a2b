#include "cli/commands/commands.hpp"
#include "cli/near_name.hpp"
#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

std::string how_ended(const lock::ReleaseReply& reply) {
  const std::string note = note_text(reply.note);
  const std::string by_whom = note.empty() ? "by an operator" : note;
  switch (reply.ending) {
    case lock::OwnerEnd::forced:
      return "it was broken " + by_whom;
    case lock::OwnerEnd::removed:
      return "it was removed from the queue " + by_whom;
    case lock::OwnerEnd::cancelled:
      return "it never held the lock: it was waiting, and rlock removed it from the queue";
    case lock::OwnerEnd::expired:
    case lock::OwnerEnd::released:
    case lock::OwnerEnd::forgotten:
    case lock::OwnerEnd::unknown:
      break;
  }
  return "its lease has expired, the server has lost it, or it never held the lock";
}

// Refuses, because the run's command would keep running next to the next holder.
Error held_by_run(const LeaseId& lease, const lock::Holder& run, const Session& session) {
  return {ErrorKind::busy,
          util::format("{} at {} is {}; that run releases the lock when its command exits; to "
                       "break the lock now: rlock force-unlock{} --owner {} {}",
                       in_quotes(lease.name.text()), util::printable(session.server()),
                       holder_phrase(run), session.lock_options(), lease.owner.text(),
                       typed_name(lease.name.text()))};
}

// The lock as it was before; none if the server does not say so immediately.
std::optional<lock::Snapshot> seen_before(Session& session, const lock::LockName& name) {
  constexpr Millis kLongest{1000};
  if (session.format() != redis::Format::native) return std::nullopt;
  lock::SystemPoller poller;
  auto seen = lock::finish(poller, session.store().inspect({name}), poller.now() + kLongest,
                           session.server());
  return seen ? std::optional(*std::move(seen)) : std::nullopt;
}

// A script whose --renew-while names the wrong process had no lock from the exit of that process
// on. The server remembers the release, but not by whom.
void report_earlier_release(const LeaseId& lease, const lock::Snapshot& before,
                            const Session& session) {
  const std::string now =
      before.holders.empty() ? "" : "; it is now " + holder_phrase(before.holders.front());
  print_message(
      util::format(
          "{} at {} was released before this command: by another rlock release, or by rlock "
          "because the process of --renew-while had exited, and then the later steps ran "
          "without the lock: name a process that outlives all steps, such as $PPID{}",
          in_quotes(lease.name.text()), util::printable(session.server()), now),
      Weight::notice);
}

// The current holder, for the message only.
std::optional<lock::Holder> present_holder(Session& session, const lock::LockName& name) {
  auto seen = inspect_holders(session, name);
  if (!seen || seen->holders.empty()) return std::nullopt;
  return seen->holders.front();
}

Result<Report> release(const LeaseId& lease, const Choices& choices) {
  TRY(auto session, Session::open(choices));
  lock::ReleaseCall call{lease.name, lease.owner};
  call.how = lock::ReleaseHow::by_id;
  call.replicas = session.replicas();
  const auto before = seen_before(session, lease.name);
  TRY(auto reply, session.change([&](auto& store) { return store.release(call); }));
  if (reply.run) return held_by_run(lease, *reply.run, session);
  if (reply.ending != lock::OwnerEnd::released) {
    Error error = no_longer_held(lease, how_ended(reply), present_holder(session, lease.name),
                                 session.server());
    error.text += near_name_hint(session, lease.name);
    return error;
  }
  const bool earlier = before && !before->more_holders &&
                       lock::find_holder(before->holders, lease.owner.text()) == nullptr;
  if (earlier && !choices.has(Opt::quiet)) {
    report_earlier_release(lease, *before, session);
  } else if (choices.has(Opt::verbose)) {
    print_message(in_quotes(lease.name.text()) + ": released", Weight::notice);
  }
  return Report{[=] { return release_json(call); }};
}

}  // namespace

Result<Report> release_command(const Invocation& invocation) {
  TRY(auto lease, parse_lease_id(invocation));
  return reported(release(lease, invocation.choices), lease.subject());
}

}  // namespace rlock::cli
