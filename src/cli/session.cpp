#include "cli/session.hpp"

#include <algorithm>
#include <set>

#include "cli/connect.hpp"
#include "lock/quorum.hpp"

namespace rlock::cli {

using util::Result;

Result<Session> Session::open(const Choices& choices) {
  auto settings = connection_options(choices, system_getenv);
  if (!settings) return std::move(settings).error();
  auto make_store = redis::open(*settings);
  if (!make_store) return std::move(make_store).error();
  return Session(*std::move(make_store), *settings);
}

util::Status Session::fits(const lock::AcquireCall& claim) const {
  if (servers_ == 1) return util::Done{};
  return lock::fits_quorum(claim);
}

Result<lock::Snapshot> inspect_holders(Session& session, const lock::LockName& name) {
  lock::InspectCall call{name};
  call.waiters_page = 0;
  auto ask = [&] { return session.ask([&](auto& store) { return store.inspect(call); }); };
  auto all = ask();
  while (all && all->more_holders) {
    call.holders_from += call.holders_page;
    auto page = ask();
    if (!page) return page;
    std::move(page->holders.begin(), page->holders.end(), std::back_inserter(all->holders));
    all->more_holders = page->more_holders;
  }
  return all;
}

Result<std::vector<lock::Waiter>> inspect_waiters(Session& session, const lock::LockName& name) {
  lock::InspectCall call{name};
  std::vector<lock::Waiter> waiters;
  while (true) {
    auto page = session.ask([&](auto& store) { return store.inspect(call); });
    if (!page) return std::move(page).error();
    std::move(page->waiters.begin(), page->waiters.end(), std::back_inserter(waiters));
    if (!page->more_waiters) return waiters;
    call.waiters_from += call.waiters_page;
  }
}

Result<std::vector<std::string>> all_names(Session& session) {
  std::set<std::string> names;
  std::string cursor;
  do {
    auto page = session.ask([&](auto& store) { return store.list_names(cursor); });
    if (!page) return std::move(page).error();
    names.insert(page->names.begin(), page->names.end());
    cursor = page->cursor;
  } while (!cursor.empty());
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace rlock::cli
