#include "cli/held_by.hpp"

#include "cli/commands.hpp"
#include "cli/describe.hpp"
#include "cli/format.hpp"
#include "util/text.hpp"

namespace rlock::cli {

using util::Error;
using util::ErrorKind;

util::Result<OwnerOf> owner_of(const Invocation& invocation) {
  auto text = only_name(invocation);
  if (!text) return std::move(text).error();
  auto name = lock::LockName::parse(*text);
  if (!name) return std::move(name).error();
  if (auto ok = check_format(invocation.choices); !ok) return std::move(ok).error();
  auto id = invocation.choices.last(Opt::owner);
  if (!id) {
    std::string command(row_of(invocation.command).name);
    return Error{ErrorKind::usage, command + " needs --owner ID, as rlock acquire printed it"};
  }
  auto owner = lock::Owner::parse(*id);
  if (!owner) return std::move(owner).error();
  return OwnerOf{*std::move(name), *std::move(owner)};
}

Error no_longer_held(const OwnerOf& whose, const std::string& how,
                     const std::optional<lock::Holder>& now, const std::string& server) {
  std::string text = in_quotes(whose.name.text()) + " at " + util::printable(server) +
                     " is no longer held by " + whose.owner.text() + ": " + how;
  if (now) text += "; " + std::string("it is now ") + holder_phrase(now);
  return {ErrorKind::lost, text};
}

}  // namespace rlock::cli
