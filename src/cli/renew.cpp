#include <unistd.h>

#include <algorithm>

#include "cli/claim_settings.hpp"
#include "cli/commands.hpp"
#include "cli/describe.hpp"
#include "cli/format.hpp"
#include "cli/held_by.hpp"
#include "cli/record.hpp"
#include "cli/terminal.hpp"
#include "cli/values.hpp"
#include "util/duration.hpp"

namespace rlock::cli {
namespace {

using util::Result;

struct RenewSettings {
  OwnerOf whose;
  std::optional<util::Millis> ttl;
  lock::RenewCall call;
  util::Millis left{0};  // of the lease that stands, before it is renewed
};

// Of a lease that is put back: whoever runs the steps is known, but not whether acquire was told to
// hide what they are.
Record without_command() {
  Record record = own_record();
  record.pid = getppid();
  return record;
}

Result<RenewSettings> settings_of(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto whose = owner_of(invocation);
  if (!whose) return std::move(whose).error();
  auto ttl = ttl_choice(choices);
  if (!ttl) return std::move(ttl).error();
  if (!*ttl && *format_choice(choices) != redis::Format::native) {
    return util::Error{util::ErrorKind::usage,
                       "renew needs --ttl with --format: such a lock does not tell its length"};
  }
  auto token = number_choice(choices, Opt::token, kGreatestToken);
  if (!token) return std::move(token).error();
  lock::RenewCall call{whose->name, whose->owner};
  call.token = {token->value_or(0)};
  call.ttl = ttl->value_or(call.ttl);
  call.attended = lock::Attended::no;
  call.record = encode_record(without_command());
  return RenewSettings{*std::move(whose), *ttl, std::move(call)};
}

// What only the server knows of a lease that stands: its mode, and its length where no other is
// wanted. Of one that is put back nothing is known there: it comes back exclusive, which admits
// nobody whom the old one would not have admitted, and only where --ttl tells its length: a default
// would vanish between two steps.
util::Status complete(RenewSettings& settings, Session& session) {
  auto seen = inspect_holders(session, settings.whose.name);
  if (!seen) return std::move(seen).error();
  auto ours = [&](const lock::Holder& holder) {
    return holder.owner == settings.whose.owner.text();
  };
  auto holder = std::find_if(seen->holders.begin(), seen->holders.end(), ours);
  if (holder == seen->holders.end()) {
    if (!settings.ttl) settings.call.token = {};
    return util::Done{};
  }
  settings.call.limit = holder->limit;
  settings.call.attended = holder->attended;
  settings.call.record = holder->record;
  settings.left = holder->left;
  if (!settings.ttl && holder->ttl > util::Millis(0)) settings.call.ttl = holder->ttl;
  return util::Done{};
}

// Without a token the server does not look whether somebody had the lock in between.
std::string how_lost(const lock::Lost& lost, lock::Token token) {
  if (lost.how == lock::LostHow::unissued) {
    return "the server never issued token " + std::to_string(token.value) +
           ", and puts nothing back for it";
  }
  bool ended = lost.how == lock::LostHow::expired || lost.how == lock::LostHow::deleted;
  if (ended && (token.value == 0 || lost.by)) return "its lease has ended";
  return lost_phrase(lost);
}

util::Error no_longer_ours(const RenewSettings& settings, const lock::Lost& lost,
                           const Session& session, const Choices& choices) {
  bool named = lost.how == lock::LostHow::taken || lost.how == lock::LostHow::full;
  auto error = no_longer_held(settings.whose, how_lost(lost, settings.call.token),
                              named ? std::nullopt : lost.by, session.server());
  bool ended = lost.how == lock::LostHow::expired || lost.how == lock::LostHow::deleted;
  if (ended && !lost.by && choices.has(Opt::token) && !settings.ttl) {
    error.text += "; with --ttl DUR it is put back where nobody had it since";
  }
  return error;
}

// Which lease stands now.
std::string how_renewed(const RenewSettings& settings) {
  const util::Millis ttl = settings.call.ttl;
  if (settings.left <= ttl) return "renewed for " + util::format_duration(ttl);
  const util::Millis seconds = settings.left - settings.left % util::Millis(1000);
  return "its lease lasts " + util::format_duration(seconds) + " already, longer than " +
         util::format_duration(ttl) + ": left as it is";
}

int tell(const RenewSettings& settings, const lock::RenewReply& reply, const Session& session,
         const Choices& choices) {
  const Subject subject{settings.whose.name.text(), settings.whose.owner.text()};
  if (const auto* lost = std::get_if<lock::Lost>(&reply)) {
    return fail(no_longer_ours(settings, *lost, session, choices), choices, subject);
  }
  const auto* renewal = std::get_if<lock::Renewal>(&reply);
  if (renewal == nullptr) {
    return fail({util::ErrorKind::internal, "it changed its mode meanwhile"}, choices, subject);
  }
  if (*renewal == lock::Renewal::put_back && !choices.has(Opt::quiet)) {
    say(in_quotes(settings.whose.name.text()) + ": its lease had ended and was put back, for " +
        util::format_duration(settings.call.ttl) + "; the server knows of nobody who had it since");
  } else if (choices.has(Opt::verbose)) {
    say(in_quotes(settings.whose.name.text()) + ": " + how_renewed(settings));
  }
  return 0;
}

}  // namespace

int renew_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto settings = settings_of(invocation);
  if (!settings) return fail(settings.error(), choices);
  const Subject subject{settings->whose.name.text(), settings->whose.owner.text()};
  auto session = Session::open(choices);
  if (!session) return fail(session.error(), choices, subject);
  if (auto ok = complete(*settings, *session); !ok) return fail(ok.error(), choices, subject);
  auto reply = session->ask([&](auto& store) { return store.renew(settings->call); });
  if (!reply) return fail(reply.error(), choices, subject);
  return tell(*settings, *reply, *session, choices);
}

}  // namespace rlock::cli
