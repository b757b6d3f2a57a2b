#include <algorithm>
#include <iterator>

#include "cli/commands/blocking_key.hpp"
#include "cli/commands/commands.hpp"
#include "cli/near_name.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/json.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/output/render.hpp"
#include "cli/output/view.hpp"
#include "cli/settings/connect.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// Which holders to break.
struct OnlyHolder {};
struct AllHolders {};
using HolderChoice = std::variant<OnlyHolder, lock::Owner, lock::Token, AllHolders>;

// The request of `rlock force-unlock`.
struct ForceSettings {
  lock::LockName name;
  HolderChoice target = OnlyHolder{};
  lock::ForceWhen when = lock::ForceWhen::confirmed;
  std::string note{};
  bool any_format = true;  // recognise other clients' locks by their keys
};

Status set_target(ForceSettings& settings, const Choices& choices) {
  int chosen = choices.has(Opt::owner) + choices.has(Opt::token) + choices.has(Opt::all);
  if (chosen > 1) {
    return usage("--owner, --token and --all cannot be used together");
  }
  if (choices.has(Opt::all)) settings.target.emplace<AllHolders>();
  TRY(auto owner, owner_choice(choices));
  if (owner) settings.target.emplace<lock::Owner>(*std::move(owner));
  const auto token = choices.number(Opt::token);
  if (token == 0U)
    return usage("--token: no holder has the token 0; rlock status shows the tokens");
  if (token) settings.target = lock::Token{*token};
  return Done{};
}

Result<ForceSettings> force_settings(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  TRY(auto name, only_name(invocation));
  TRY_STATUS(check_format(choices));
  ForceSettings settings{std::move(name)};
  settings.any_format = !choices.has(Opt::format);
  TRY_STATUS(set_target(settings, choices));
  settings.when = choices.has(Opt::now) ? lock::ForceWhen::now : lock::ForceWhen::confirmed;
  settings.note = operator_note(choices.last(Opt::reason));
  return settings;
}

bool matches(const lock::Holder& holder, const HolderChoice& target) {
  if (const auto* owner = std::get_if<lock::Owner>(&target)) return holder.owner == owner->text();
  if (const auto* token = std::get_if<lock::Token>(&target)) return holder.token == *token;
  return true;
}

Subject subject_of(const ForceSettings& settings) {
  const auto* owner = std::get_if<lock::Owner>(&settings.target);
  return {settings.name.text(), owner == nullptr ? std::nullopt : std::optional(owner->text())};
}

Error no_match(const ForceSettings& settings) {
  return {ErrorKind::busy,
          util::format("{0} is not held by that owner or with that token: nothing was changed; "
                       "rlock status {1} shows who holds it",
                       in_quotes(settings.name.text()), typed_name(settings.name.text()))};
}

// The present holders that the call would break; empty if the lock is not held.
Result<std::vector<lock::Holder>> find_targets(const ForceSettings& settings, Session& session) {
  TRY(auto seen, inspect_holders(session, settings.name));
  std::vector<lock::Holder> holders = std::move(seen.holders);
  if (holders.empty()) return holders;
  if (std::holds_alternative<OnlyHolder>(settings.target) && holders.size() > 1) {
    return usage(util::format("{} has {} holders: use --owner, --token or --all to choose",
                              in_quotes(settings.name.text()), holders.size()));
  }
  std::erase_if(holders, [&](const auto& holder) { return !matches(holder, settings.target); });
  if (holders.empty()) return no_match(settings);
  return holders;
}

// The effect of breaking a lock on its holder, the worst last.
enum class Effect { cooldown_only, notified, died, unsupervised, not_notified, external };

// The question before, and the text after the lock was freed immediately.
struct EffectRow {
  const char* asked;
  const char* freed;
};
constexpr EffectRow kEffects[] = {
    {"the lock is only in its cool-down", ""},
    {"its holder will be asked to stop its command",
     "; the holder was asked to stop its command, which may overlap with the next one"},
    {"its processes cannot be stopped any more and may overlap with the next holder",
     "; processes of its command may still run and overlap with the next one"},
    {"rlock cannot stop its steps, which may overlap with the next holder",
     "; rlock cannot stop its steps, which may overlap with the next holder"},
    {"its holder is not notified and may overlap with the next one",
     "; the holder is not notified and may overlap with the next one"},
    {"its holder cannot be notified and may overlap with the next one",
     "; the holder cannot be notified and may overlap with the next one"}};

const EffectRow& row_of(Effect effect) {
  return kEffects[static_cast<size_t>(effect)];
}

Effect effect_on(const lock::Holder& holder, redis::Format format) {
  if (format != redis::Format::native) return Effect::external;
  if (holder.state == lock::HolderState::cooldown) return Effect::cooldown_only;
  if (holder.died) return Effect::died;
  switch (holder.responsive) {
    case lock::Responsive::run:
      return Effect::notified;
    case lock::Responsive::yes:
      return Effect::unsupervised;
    case lock::Responsive::no:
      break;
  }
  return Effect::not_notified;
}

Effect worst_effect(const std::vector<lock::Holder>& holders, redis::Format format) {
  Effect worst = Effect::cooldown_only;
  for (const lock::Holder& holder : holders) worst = std::max(worst, effect_on(holder, format));
  return worst;
}

std::string effect_text(Effect effect, lock::ForceWhen when) {
  if (effect == Effect::unsupervised && when != lock::ForceWhen::now) {
    return "rlock cannot stop its steps: the next holder waits until their process exits or the "
           "lease expires";
  }
  if (effect == Effect::died && when != lock::ForceWhen::now) {
    return "rlock has died and cannot confirm this: the next holder waits until the lease expires";
  }
  if (effect == Effect::notified && when == lock::ForceWhen::now) {
    return "this frees the lock immediately: unless its holder's host is dead, two commands may "
           "overlap";
  }
  return row_of(effect).asked;
}

Status confirm_break(const ForceSettings& settings, const std::vector<lock::Holder>& shown,
                     Session& session, const Choices& choices) {
  constexpr size_t kWidth = 80;
  if (choices.has(Opt::yes)) return Done{};
  if (!choices.has(Opt::quiet)) {
    std::string text =
        util::format("rlock: force-unlock breaks {} at {}:\n", in_quotes(settings.name.text()),
                     util::printable(session.server()));
    for (const lock::Holder& holder : shown) text += holder_details(holder, kWidth);
    write_stderr(text, Millis(1000));
  }
  const Effect effect = worst_effect(shown, session.format());
  return confirm(util::format("rlock: {}. Break it? [y/N] ", effect_text(effect, settings.when)),
                 "break " + in_quotes(settings.name.text()));
}

// The reply to a call does not show whether the holders that it broke have died.
void mark_died(std::vector<lock::Holder>& broken, const std::vector<lock::Holder>& shown) {
  for (lock::Holder& holder : broken) {
    const lock::Holder* other = lock::find_holder(shown, holder.owner);
    holder.died = other != nullptr && other->died;
  }
}

// If a reply was lost, the repeated call does not report again whom it broke; they are as they were
// shown.
void add_broken_before(lock::Forced& forced, const std::vector<lock::Holder>& shown) {
  auto listed = [](const auto& owners, const std::string& owner) {
    return std::find(owners.begin(), owners.end(), owner) != owners.end();
  };
  for (const lock::Holder& holder : shown) {
    const bool known = lock::find_holder(forced.broken, holder.owner) != nullptr;
    if (!known && listed(forced.broken_before, holder.owner)) forced.broken.push_back(holder);
  }
}

// Breaks only the holders that were shown, even if the lock changes hands in the meantime or a
// request is sent again. An owner's cool-down is broken by its owner id, too.
Result<lock::ForceReply> force_together(const ForceSettings& settings,
                                        const std::vector<lock::Holder>& shown, Session& session) {
  lock::ForceCall call{settings.name, {}, settings.when, settings.note};
  for (const lock::Holder& holder : shown) {
    call.targets.push_back({lock::Owner::external(holder.owner), holder.token});
  }
  constexpr int kMostSweeps = 100'000;  // of 256 expired waiters each
  for (int sweeps = 0; sweeps < kMostSweeps; ++sweeps) {
    auto reply = session.change([&](auto& inspector) { return inspector.force_unlock(call); });
    if (reply && std::holds_alternative<lock::RetryNow>(*reply)) continue;
    auto* forced = reply ? std::get_if<lock::Forced>(&*reply) : nullptr;
    if (forced != nullptr) {
      add_broken_before(*forced, shown);
      mark_died(forced->broken, shown);
    }
    return reply;
  }
  return Error{
      ErrorKind::unavailable,
      session.server() + ": too many expired waiters to clean up; run the same command again"};
}

// The broken holders; if none was broken, why.
struct Outcome {
  lock::ForceReply reply;
  std::optional<Error> error{};  // why only some were broken
};

Error incomplete(Error error, size_t broken, size_t shown) {
  error.text += util::format(
      "; {} of {} holders were broken before, and the others may still hold the lock: run the same "
      "command again for them",
      broken, shown);
  return error;
}

// Breaks some hundreds in one step, because the reply to many would be refused for its size.
Result<Outcome> force(const ForceSettings& settings, const std::vector<lock::Holder>& shown,
                      Session& session) {
  constexpr std::ptrdiff_t kAtOnce = 500;
  lock::Forced all;
  lock::ForceReply why_none = lock::NotHeld{};
  for (auto from = shown.begin(); from != shown.end();) {
    const auto to = from + std::min(kAtOnce, shown.end() - from);
    auto reply = force_together(settings, {from, to}, session);
    if (!reply && all.broken.empty()) return std::move(reply).error();
    if (!reply) {
      Error error = incomplete(std::move(reply).error(), all.broken.size(), shown.size());
      return Outcome{std::move(all), std::move(error)};
    }
    from = to;
    auto* forced = std::get_if<lock::Forced>(&*reply);
    if (forced == nullptr) {
      why_none = *std::move(reply);
      continue;
    }
    std::move(forced->broken.begin(), forced->broken.end(), std::back_inserter(all.broken));
    std::move(forced->unconfirmed.begin(), forced->unconfirmed.end(),
              std::back_inserter(all.unconfirmed));
    if (forced->next) all.next = std::move(forced->next);
  }
  return Outcome{all.broken.empty() ? why_none : lock::ForceReply(std::move(all))};
}

std::string process_of(const lock::Holder& holder) {
  const Record record = decode_record(holder.record);
  return record.pid ? "process " + pid_and_place(record) : "the process of --renew-while";
}

std::string break_result(const lock::Holder& holder, const lock::Forced& forced,
                         redis::Format format) {
  const auto& unconfirmed = forced.unconfirmed;
  const Effect effect = effect_on(holder, format);
  if (std::find(unconfirmed.begin(), unconfirmed.end(), holder.owner) != unconfirmed.end()) {
    if (effect == Effect::died) {
      return "rlock cannot confirm that its command has stopped; if none of its processes runs, "
             "use "
             "--now to free the lock immediately";
    }
    return util::format(
        "{} or in {}, when the lease expires; if the holder's host is dead, use --now to free the "
        "lock immediately",
        effect == Effect::unsupervised
            ? util::format("rlock cannot stop its steps; the next holder starts when {} exits,",
                           process_of(holder))
            : "the holder was asked to stop its command; the next one starts when the holder has "
              "confirmed that,",
        util::format_duration(holder.left.value_or(Millis(0))));
  }
  return util::format("freed immediately{}", row_of(effect).freed);
}

std::string forced_text(const ForceSettings& settings, const lock::Forced& forced,
                        redis::Format format) {
  const std::string name = in_quotes(settings.name.text());
  if (forced.broken.empty()) return util::format("{} is not held: nothing to break\n", name);
  std::string text = util::format("broke {}\n", name);
  for (const lock::Holder& holder : forced.broken) {
    text += util::format("  was {}\n  {}\n", holder_phrase(holder, TimeStyle::duration),
                         break_result(holder, forced, format));
  }
  if (forced.next) text += util::format("  next: owner {}\n", util::printable(*forced.next));
  return text;
}

Result<Report> report_outcome(const ForceSettings& settings, const Outcome& outcome,
                              redis::Format format) {
  if (std::holds_alternative<lock::NoMatch>(outcome.reply)) return no_match(settings);
  const auto* reported = std::get_if<lock::Forced>(&outcome.reply);
  const lock::Forced forced = reported == nullptr ? lock::Forced{} : *reported;
  const auto& error = outcome.error;
  return Report{[=] { return force_unlock_json(settings.name, forced, error); },
                [=] { return forced_text(settings, forced, format); },
                error ? print_error(*error, subject_of(settings)) : kSuccess};
}

// If a lock is not held in the native format, it may belong to another client: a string or a hash
// that has the shape of a lock and expires. Then the session becomes one of that format. It stays
// as it is if this user may not read the key.
Status detect_format(Session& session, const ForceSettings& settings) {
  if (!settings.any_format) return Done{};
  TRY(auto native, inspect_holders(session, settings.name));
  if (!native.holders.empty()) return Done{};
  for (redis::Format format : {redis::Format::plain, redis::Format::redisson}) {
    auto other = session.in_format(format);
    // Not every kind of server supports every format: a cluster and a quorum do not support
    // Redisson's.
    if (!other && other.error().kind == ErrorKind::usage) continue;
    if (!other) return std::move(other).error();
    auto seen = inspect_holders(*other, settings.name);
    const bool answered = seen || seen.error().kind == ErrorKind::wrong_type ||
                          seen.error().kind == ErrorKind::denied;
    if (!answered) return std::move(seen).error();
    if (!seen || seen->holders.empty() || !seen->holders.front().left) continue;
    session = *std::move(other);
    if (!std::holds_alternative<lock::Token>(settings.target)) return Done{};
    return usage(util::format("--token: {} is held in the {} format, which has no fencing tokens",
                              in_quotes(settings.name.text()), to_string(format)));
  }
  return Done{};
}

Report not_broken(const ForceSettings& settings, std::string text) {
  return {[=] { return force_unlock_json(settings.name, lock::Forced{}); },
          [text = std::move(text)] { return text; }};
}

// The text about the key NAME, if it is not a lock but prevents programs from acquiring locks with
// such keys; else empty.
std::string other_programs_key(const ForceSettings& settings, const Session& session) {
  if (!settings.any_format) return {};
  auto plain = session.in_format(redis::Format::plain);
  const std::string key = plain ? blocking_key_text(*plain, settings.name) : std::string();
  if (key.empty()) return key;
  return util::format("{} is not held, and rlock does not break keys of other programs: {}\n",
                      in_quotes(settings.name.text()), key);
}

// A lock without a holder may still be a lock that no run can acquire.
Result<Report> nothing_broken(const ForceSettings& settings, Session& session,
                              const Choices& choices) {
  TRY(auto seen, inspect_holders(session, settings.name));
  if (!seen.closure) {
    std::string key = other_programs_key(settings, session);
    if (!key.empty()) return not_broken(settings, std::move(key));
    report_unknown_name(session, settings.name, choices);
    return report_outcome(settings, {lock::NotHeld{}}, session.format());
  }
  const std::string& name = settings.name.text();
  return not_broken(
      settings,
      util::format("no run holds {}, but it is {}; to open it: rlock open{} {}\n", in_quotes(name),
                   closure_phrase(*seen.closure), session.lock_options(), typed_name(name)));
}

Result<Report> break_lock(const ForceSettings& settings, Session& session, const Choices& choices) {
  TRY_STATUS(detect_format(session, settings));
  TRY(auto shown, find_targets(settings, session));
  if (shown.empty()) return nothing_broken(settings, session, choices);
  TRY_STATUS(confirm_break(settings, shown, session, choices));
  TRY(auto outcome, force(settings, shown, session));
  return report_outcome(settings, outcome, session.format());
}

}  // namespace

Result<Report> force_unlock_command(const Invocation& invocation) {
  TRY(auto settings, force_settings(invocation));
  TRY(auto session, Session::open(invocation.choices));
  auto broken = break_lock(settings, session, invocation.choices);
  if (!broken) {
    Error error = broken.error();
    error.text += blocking_key_hint(error, session, settings.name);
    broken = std::move(error);
  }
  return reported(std::move(broken), subject_of(settings));
}

}  // namespace rlock::cli
