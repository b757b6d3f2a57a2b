#include "cli/commands/lease_id.hpp"

#include "cli/commands/commands.hpp"
#include "cli/output/messages.hpp"
#include "cli/settings/format.hpp"
#include "util/text.hpp"

namespace rlock::cli {

Result<LeaseId> parse_lease_id(const Invocation& invocation) {
  TRY(auto text, only_name(invocation));
  TRY(auto name, lock::LockName::parse(text));
  TRY_STATUS(check_format(invocation.choices));
  auto id = invocation.choices.last(Opt::owner);
  if (!id) {
    std::string command(row_of(invocation.command).name);
    return Error{ErrorKind::usage, command + " needs --owner ID, as rlock acquire printed it"};
  }
  TRY(auto owner, lock::Owner::parse(*id));
  return LeaseId{std::move(name), std::move(owner)};
}

Error no_longer_held(const LeaseId& lease, const std::string& how,
                     const std::optional<lock::Holder>& now, const std::string& server) {
  std::string text = in_quotes(lease.name.text()) + " at " + util::printable(server) +
                     " is no longer held by " + lease.owner.text() + ": " + how;
  if (now) text += "; " + std::string("it is now ") + holder_phrase(now);
  return {ErrorKind::lost, text};
}

}  // namespace rlock::cli
