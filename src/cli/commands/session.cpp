#include "cli/commands/session.hpp"

#include <algorithm>
#include <set>

#include "cli/output/console.hpp"
#include "cli/settings/connect.hpp"
#include "lock/quorum/quorum.hpp"

namespace rlock::cli {

Result<Session> Session::open(const Choices& choices) {
  TRY(auto settings, connection_options(choices, system_getenv));
  // Printed even with --quiet: the option may be in a file that everybody forgot.
  if (redis::is_unverified(settings)) {
    print_message(
        "warning: --insecure: the server's certificate is not verified; anyone could impersonate "
        "the server");
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

// Bounds the memory of one listing, however many pages a server claims to have. There is room for
// some 100,000 of our entries.
class ListingBudget {
 public:
  explicit ListingBudget(const Session& session) : session_(session) {}

  Status spend(size_t bytes_of_text) {
    constexpr size_t kLimit = size_t{32} << 20;
    constexpr size_t kOverhead = 256;  // an empty page counts, too: there may be no end of them
    spent_ += bytes_of_text + kOverhead;
    if (spent_ <= kLimit) return Done{};
    return Error{ErrorKind::unavailable, session_.server() + ": the listing exceeds 32 MiB"};
  }

  template <class Entry>
  Status spend(const std::vector<Entry>& entries) {
    for (const Entry& entry : entries) {
      TRY_STATUS(spend(entry.owner.size() + entry.record.size()));
    }
    return spend(0);
  }

 private:
  const Session& session_;
  size_t spent_ = 0;
};

}  // namespace

Result<lock::Snapshot> inspect_holders(Session& session, const lock::LockName& name) {
  lock::InspectCall call{name};
  call.waiters_page = 0;
  auto next_page = [&] { return session.ask([&](auto& store) { return store.inspect(call); }); };
  ListingBudget budget(session);
  TRY(auto all, next_page());
  while (all.more_holders) {
    call.holders_from += call.holders_page;
    TRY(auto page, next_page());
    TRY_STATUS(budget.spend(page.holders));
    std::move(page.holders.begin(), page.holders.end(), std::back_inserter(all.holders));
    all.more_holders = page.more_holders;
  }
  return all;
}

Result<std::optional<Session>> find_external(const Session& session, const lock::LockName& name) {
  for (redis::Format format : {redis::Format::plain, redis::Format::redisson}) {
    auto other = session.in_format(format);
    // Not every kind of server has every format: a cluster and a quorum do not have Redisson's.
    if (!other && other.error().kind == ErrorKind::usage) continue;
    if (!other) return std::move(other).error();
    auto seen = inspect_holders(*other, name);
    const bool answered = seen || seen.error().kind == ErrorKind::wrong_type ||
                          seen.error().kind == ErrorKind::denied;
    if (!answered) return std::move(seen).error();
    const bool held = seen && !seen->holders.empty() && seen->holders.front().left >= Millis(0);
    if (held) return std::optional(*std::move(other));
  }
  return std::optional<Session>();
}

Result<std::vector<lock::Waiter>> inspect_waiters(Session& session, const lock::LockName& name) {
  lock::InspectCall call{name};
  std::vector<lock::Waiter> waiters;
  ListingBudget budget(session);
  while (true) {
    TRY(auto page, session.ask([&](auto& store) { return store.inspect(call); }));
    TRY_STATUS(budget.spend(page.waiters));
    std::move(page.waiters.begin(), page.waiters.end(), std::back_inserter(waiters));
    if (!page.more_waiters) return waiters;
    call.waiters_from += call.waiters_page;
  }
}

// A page without names of locks costs nothing: the server may hold a hundred million other keys.
Result<AllNames> all_names(Session& session) {
  std::set<std::string> names;
  std::vector<Error> missing;
  std::string cursor;
  ListingBudget budget(session);
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
      if (!names.insert(std::move(name)).second) continue;
      TRY_STATUS(budget.spend(size));
    }
    cursor = page->cursor;
  } while (!cursor.empty());
  return AllNames{{names.begin(), names.end()}, std::move(missing)};
}

}  // namespace rlock::cli
