#include "cli/commands/session.hpp"

#include <algorithm>
#include <set>

#include "cli/output/console.hpp"
#include "cli/settings/connect.hpp"
#include "lock/quorum/quorum.hpp"

namespace rlock::cli {

Result<Session> Session::open(const Choices& choices) {
  TRY(auto settings, connection_options(choices, system_getenv));
  // Not even --quiet hides it: the option may stand in a file that was forgotten.
  if (redis::is_unverified(settings)) {
    print_message(
        "warning: --insecure: the server's certificate is not verified, anybody may answer for it");
  }
  return open(std::move(settings));
}

Status Session::check_supported(const lock::AcquireCall& claim) const {
  if (servers() == 1) return Done{};
  return lock::fits_quorum(claim);
}

Result<Session> Session::open(redis::OpenOptions options) {
  TRY(auto make_server, redis::open(options));
  return Session(std::move(make_server), std::move(options));
}

Result<Session> Session::in_format(redis::Format format) const {
  redis::OpenOptions options = options_;
  options.format = format;
  return open(std::move(options));
}

namespace {

// What one listing may cost in memory, whatever number of pages a server claims to have: room for
// some 100,000 entries of ours.
class Budget {
 public:
  // False when it is used up. `kept`: bytes of text.
  bool spend(size_t kept) {
    constexpr size_t kMost = size_t{32} << 20;
    constexpr size_t kOverhead = 256;  // an empty page costs as well: there may be no end of them
    spent_ += kept + kOverhead;
    return spent_ <= kMost;
  }

 private:
  size_t spent_ = 0;
};

Error listing_too_large(const Session& session) {
  return {ErrorKind::unavailable, session.server() + ": it lists more than can be believed"};
}

template <class Entry>
bool spend_on(Budget& budget, const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    if (!budget.spend(entry.owner.size() + entry.record.size())) return false;
  }
  return budget.spend(0);
}

}  // namespace

Result<lock::Snapshot> inspect_holders(Session& session, const lock::LockName& name) {
  lock::InspectCall call{name};
  call.waiters_page = 0;
  auto ask = [&] { return session.ask([&](auto& store) { return store.inspect(call); }); };
  Budget budget;
  auto all = ask();
  while (all && all->more_holders) {
    call.holders_from += call.holders_page;
    auto page = ask();
    if (!page) return page;
    if (!spend_on(budget, page->holders)) return listing_too_large(session);
    std::move(page->holders.begin(), page->holders.end(), std::back_inserter(all->holders));
    all->more_holders = page->more_holders;
  }
  return all;
}

Result<std::optional<Session>> find_external(const Session& session, const lock::LockName& name) {
  for (redis::Format format : {redis::Format::plain, redis::Format::redisson}) {
    auto other = session.in_format(format);
    // Not every kind of server has locks of every format: a cluster and a quorum none of
    // Redisson's.
    if (!other && other.error().kind == ErrorKind::usage) continue;
    if (!other) return std::move(other).error();
    auto seen = inspect_holders(*other, name);
    bool looked = seen || seen.error().kind == ErrorKind::wrong_type ||
                  seen.error().kind == ErrorKind::denied;
    if (!looked) return std::move(seen).error();
    bool held = seen && !seen->holders.empty() && seen->holders.front().left >= Millis(0);
    if (held) return std::optional(*std::move(other));
  }
  return std::optional<Session>();
}

Result<std::vector<lock::Waiter>> inspect_waiters(Session& session, const lock::LockName& name) {
  lock::InspectCall call{name};
  std::vector<lock::Waiter> waiters;
  Budget budget;
  while (true) {
    auto page = session.ask([&](auto& store) { return store.inspect(call); });
    if (!page) return std::move(page).error();
    if (!spend_on(budget, page->waiters)) return listing_too_large(session);
    std::move(page->waiters.begin(), page->waiters.end(), std::back_inserter(waiters));
    if (!page->more_waiters) return waiters;
    call.waiters_from += call.waiters_page;
  }
}

// Pages without a name of ours cost nothing here: the server may hold a hundred million other keys.
Result<AllNames> all_names(Session& session) {
  std::set<std::string> names;
  std::vector<Error> missing;
  std::string cursor;
  Budget budget;
  do {
    auto page = session.ask([&](auto& store) { return store.list_names(cursor); });
    if (!page) {
      if (cursor.empty()) return std::move(page).error();
      missing.push_back(std::move(page).error());
      cursor = session.store().cursor_past_server(cursor);
      continue;
    }
    for (std::string& name : page->names) {
      const size_t size = name.size();
      if (names.insert(std::move(name)).second && !budget.spend(size))
        return listing_too_large(session);
    }
    cursor = page->cursor;
  } while (!cursor.empty());
  return AllNames{{names.begin(), names.end()}, std::move(missing)};
}

}  // namespace rlock::cli
