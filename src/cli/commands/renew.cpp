#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "cli/commands/commands.hpp"
#include "cli/near_name.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/settings/connect.hpp"
#include "cli/settings/run_settings.hpp"
#include "lock/lease.hpp"
#include "lock/timing.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

struct RenewSettings {
  LeaseId lease;
  std::optional<Millis> ttl;
  lock::RenewCall call;
  Millis left{0};  // of the lease before the renewal
  TimePoint asked_at{};
};

// The record of a restored lease. The process that runs the steps is known, but not whether acquire
// had --hide-command.
Record record_without_command() {
  Record record = own_record();
  record.pid = getppid();
  return record;
}

Result<RenewSettings> renew_settings(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  TRY(auto lease, parse_lease_id(invocation));
  const auto ttl = choices.duration(Opt::ttl);
  if (!ttl && format_choice(choices) != redis::Format::native) {
    return usage(
        "renew needs --ttl with --format: the server does not store the ttl of such a lock");
  }
  const auto token = choices.number(Opt::token);
  lock::Claim claim{lease.name, lease.owner};
  claim.ttl = ttl.value_or(claim.ttl);
  claim.responsive = lock::Responsive::no;
  claim.record = encode_record(record_without_command());
  lock::RenewCall call{std::move(claim), lock::Entry::outer(), std::nullopt};
  if (token.value_or(0) > 0) call.restore = lock::Restore{{*token}, 0, std::nullopt};
  return RenewSettings{std::move(lease), ttl, std::move(call)};
}

// Fills in what only the server knows about a live lease: its mode, its end, and its ttl if --ttl
// does not change it. The server knows nothing about a lease that has to be restored. Such a lease
// becomes exclusive, which is never wider than the old mode, and needs --ttl, because a lease of a
// default length might expire between two steps.
Status complete_call(RenewSettings& settings, Session& session) {
  settings.asked_at = BootClock::now();
  TRY(auto seen, inspect_holders(session, settings.lease.name));
  const lock::Holder* holder = lock::find_holder(seen.holders, settings.lease.owner.text());
  if (holder == nullptr) {
    if (!settings.ttl) settings.call.restore.reset();
    return Done{};
  }
  settings.call.limit = holder->limit;
  if (auto& restore = settings.call.restore) {
    restore->slot = holder->slot;
    const bool lives =
        holder->state == lock::HolderState::held || holder->state == lock::HolderState::granted;
    const bool at_majority = 2 * holder->servers > session.servers();
    const Millis left = std::min(holder->left.value_or(Millis(0)), timing::kLongestQuorumLease);
    if (lives && at_majority) restore->lease_end = lock::lease_deadline(settings.asked_at, left);
  }
  settings.call.responsive = holder->responsive;
  settings.call.record = holder->record;
  settings.left = holder->left.value_or(Millis(0));
  if (!settings.ttl && holder->ttl > Millis(0)) settings.call.ttl = holder->ttl;
  return Done{};
}

// Without a token the server does not check whether another owner had the lock in between.
std::string how_lost(const lock::Lost& lost, const std::optional<lock::Restore>& restore) {
  if (lost.how == lock::LostHow::unissued && restore) {
    return util::format(
        "the server never issued token {}; a lease is restored only for a token that it issued",
        restore->token.value);
  }
  bool ended = lost.how == lock::LostHow::expired || lost.how == lock::LostHow::deleted;
  if (ended && (!restore || lost.by))
    return "its lease has expired, the server has lost it, or it never held the lock";
  return lost_phrase(lost);
}

Error no_longer_ours(const RenewSettings& settings, const lock::Lost& lost, const Session& session,
                     const Choices& choices) {
  const bool names_holder = lost.how == lock::LostHow::taken || lost.how == lock::LostHow::full;
  auto error = no_longer_held(settings.lease, how_lost(lost, settings.call.restore),
                              names_holder ? std::nullopt : lost.by, session.server());
  bool ended = lost.how == lock::LostHow::expired || lost.how == lock::LostHow::deleted;
  if (ended && !lost.by && choices.has(Opt::token) && !settings.ttl) {
    error.text += "; to restore it if no other client has held the lock since, add --ttl DUR";
  }
  return error;
}

Renewed event_of(const RenewSettings& settings, lock::Renewal renewal) {
  if (renewal == lock::Renewal::restored) return Renewed::restored;
  return settings.left <= settings.call.ttl ? Renewed::renewed : Renewed::unchanged;
}

// The least time left: the request took a part of it.
Millis left_now(const RenewSettings& settings) {
  const auto since = std::chrono::duration_cast<Millis>(BootClock::now() - settings.asked_at);
  return std::max(Millis(0), std::max(settings.call.ttl, settings.left) - since);
}

std::string how_renewed(const RenewSettings& settings) {
  const std::string ttl = util::format_duration(settings.call.ttl);
  if (settings.left <= settings.call.ttl) return "renewed for " + ttl;
  const Millis seconds = settings.left - settings.left % Millis(1000);
  return util::format("not changed: the lease already lasts for another {}, longer than {}",
                      util::format_duration(seconds), ttl);
}

Result<Report> renew(RenewSettings& settings, const Choices& choices) {
  TRY(auto session, Session::open(choices));
  settings.call.replicas = session.replicas();
  TRY_STATUS(complete_call(settings, session));
  TRY(auto reply, session.ask([&](auto& store) { return store.renew(settings.call); }));
  if (const auto* lost = std::get_if<lock::Lost>(&reply)) {
    Error error = no_longer_ours(settings, *lost, session, choices);
    error.text += near_name_hint(session, settings.lease.name);
    return error;
  }
  const auto* renewal = std::get_if<lock::Renewal>(&reply);
  if (renewal == nullptr) {
    return Error{ErrorKind::internal,
                 "the mode of the lock has changed since it was acquired: another program may have "
                 "written to its keys; rlock status shows what the server stores"};
  }
  if (*renewal == lock::Renewal::restored && !choices.has(Opt::quiet)) {
    print_message(
        util::format(
            "{}: the lease had expired, and rlock restored it for {}; the server knows of no other "
            "holder since",
            in_quotes(settings.lease.name.text()), util::format_duration(settings.call.ttl)),
        Weight::notice);
  } else if (choices.has(Opt::verbose)) {
    print_message(
        util::format("{}: {}", in_quotes(settings.lease.name.text()), how_renewed(settings)),
        Weight::notice);
  }
  return Report{[call = settings.call, event = event_of(settings, *renewal),
                 left = left_now(settings)] { return renew_json(call, event, left); }};
}

}  // namespace

Result<Report> renew_command(const Invocation& invocation) {
  TRY(auto settings, renew_settings(invocation));
  const Subject subject = settings.lease.subject();
  return reported(renew(settings, invocation.choices), subject);
}

}  // namespace rlock::cli
