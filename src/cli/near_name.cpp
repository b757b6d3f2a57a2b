#include "cli/near_name.hpp"

#include <algorithm>

#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

bool was_held(const lock::Snapshot& lock) {
  return lock.last_grant.value > 0 || lock.counters.runs > 0 || lock.live_holders > 0 ||
         lock.live_waiters > 0 || lock.closure;
}

// Returns true even if the server does not answer.
bool was_held(Session& session, const lock::LockName& name) {
  lock::InspectCall call{name};
  call.holders_page = call.waiters_page = 0;
  auto lock = session.ask([&](auto& store) { return store.inspect(call); });
  return !lock || was_held(*lock);
}

// The names among the first 10,000 keys, as far as the server lists them in time.
std::vector<std::string> some_names(Session& session) {
  constexpr int kMostPages = 10;  // of a thousand keys
  constexpr Millis kLongest{200};
  lock::SystemPoller poller;
  const TimePoint until = poller.now() + kLongest;
  std::vector<std::string> names;
  std::string cursor;
  for (int page = 0; page < kMostPages; ++page) {
    auto listed = lock::finish(poller, session.store().list_names(cursor), until, session.server());
    if (!listed) break;
    std::move(listed->names.begin(), listed->names.end(), std::back_inserter(names));
    cursor = std::move(listed->cursor);
    if (cursor.empty()) break;
  }
  return names;
}

// `shop/nightly` for `nightly`, or else the name with the most similar spelling.
std::string near_name(Session& session, const std::string& name) {
  std::vector<std::string> names = some_names(session);
  std::erase(names, name);
  for (const std::string& other : names) {
    if (other.ends_with("/" + name)) return other;
  }
  const std::vector<std::string_view> others(names.begin(), names.end());
  return std::string(suggestion(name, others).value_or(""));
}

bool may_report(const Session& session, const Choices& choices) {
  const bool people = !choices.has(Opt::quiet) && !choices.has(Opt::json);
  return people && session.format() == redis::Format::native;
}

// `did you mean "nightly"?`; empty if no name is similar.
std::string question(Session& session, const lock::LockName& name) {
  const std::string other = near_name(session, name.text());
  if (other.empty()) return {};
  return util::format("did you mean {}?", in_quotes(other));
}

}  // namespace

void report_unknown_name(Session& session, const lock::LockName& name, const Choices& choices) {
  if (!may_report(session, choices)) return;
  if (was_held(session, name)) return;
  const std::string asked = question(session, name);
  print_message(util::format("no run held {} at {} in the last 30 days{}{}", in_quotes(name.text()),
                             util::printable(session.server()), asked.empty() ? "" : "; ", asked),
                Weight::notice);
}

void report_unused_name(Session& session, const lock::LockName& name, const lock::Snapshot& seen,
                        const Choices& choices) {
  if (!may_report(session, choices) || was_held(seen)) return;
  const std::string asked = question(session, name);
  const std::string list =
      util::format("rlock status{} --all lists the names", session.lock_options());
  print_message(util::format("no run of {} is known at {}; {}", in_quotes(name.text()),
                             util::printable(session.server()), asked.empty() ? list : asked),
                Weight::notice);
}

std::string near_name_hint(Session& session, const lock::LockName& name) {
  if (session.format() != redis::Format::native || was_held(session, name)) return {};
  const std::string asked = question(session, name);
  return asked.empty() ? asked : "; " + asked;
}

void report_near_name(Session& session, const lock::LockName& name, const Choices& choices) {
  if (!may_report(session, choices)) return;
  const std::string asked = question(session, name);
  if (!asked.empty()) print_message(in_quotes(name.text()) + ": " + asked, Weight::notice);
}

}  // namespace rlock::cli
