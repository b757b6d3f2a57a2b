#include "cli/watch/model.hpp"

#include <algorithm>
#include <utility>

#include "cli/output/history_rows.hpp"
#include "cli/output/record.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// A lock that is handed over is free for a moment: its line stays.
constexpr Millis kFreeShown{10'000};

std::string id_of_closure(const lock::Snapshot& lock) {
  return lock.closure ? lock.closure->owner : "";
}

bool same_holder(const lock::Holder& a, const lock::Holder& b) {
  return a.owner == b.owner && a.token == b.token && a.state == b.state && a.entries == b.entries &&
         a.servers == b.servers && a.record == b.record;
}

bool same_holders(const std::vector<lock::Holder>& a, const std::vector<lock::Holder>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_holder);
}

bool same_servers(const lock::Snapshot& a, const lock::Snapshot& b) {
  auto same = [](const lock::SilentServer& x, const lock::SilentServer& y) {
    return x.server == y.server;
  };
  return std::equal(a.silent.begin(), a.silent.end(), b.silent.begin(), b.silent.end(), same) &&
         same_holders(a.partial, b.partial);
}

}  // namespace

std::vector<std::string_view> changed_fields(const std::optional<LockView>& before,
                                             const LockView& after) {
  if (!before) return {"state", "holders", "waiters"};
  if (!before->snapshot || !after.snapshot) {
    const bool same = !before->snapshot && !after.snapshot &&
                      before->snapshot.error().text == after.snapshot.error().text;
    return same ? std::vector<std::string_view>{} : std::vector<std::string_view>{"error"};
  }
  const lock::Snapshot& was = *before->snapshot;
  const lock::Snapshot& is = *after.snapshot;
  std::vector<std::string_view> fields;
  if (state_of(was) != state_of(is)) fields.push_back("state");
  const bool same = was.live_holders == is.live_holders && same_holders(was.holders, is.holders);
  if (!same) fields.push_back("holders");
  if (was.live_waiters != is.live_waiters) fields.push_back("waiters");
  if (id_of_closure(was) != id_of_closure(is)) fields.push_back("closed");
  if (!same_servers(was, is)) fields.push_back("quorum");
  return fields;
}

WatchModel::WatchModel(Selection selection) : selection_(std::move(selection)) {
  for (const lock::LockName& name : selection_.names) {
    locks_.try_emplace(name.text(), WatchedLock{name, true});
  }
}

void WatchModel::add(const lock::NamesPage& page) {
  // A server that is not ours may claim to have any number of locks.
  constexpr size_t kMost = 100'000;
  for (const std::string& text : page.in_use) {
    if (locks_.size() >= kMost) return;
    auto name = lock::LockName::parse(text);
    const bool wanted = name && selection_.is_listing() && selection_.lists(*name);
    if (wanted) locks_.try_emplace(text, WatchedLock{*std::move(name), false});
  }
}

std::optional<Change> WatchModel::see(const std::string& name, LockView lock, TimePoint asked_at) {
  auto found = locks_.find(name);
  if (found == locks_.end()) return std::nullopt;
  WatchedLock& watched = found->second;
  const bool first = !watched.lock;
  watched.at = asked_at;
  if (!is_idle(lock)) {
    watched.free_since.reset();
  } else if (first && !watched.named) {
    locks_.erase(found);  // it was in use when it was listed
    return std::nullopt;
  } else if (!watched.free_since) {
    watched.free_since = asked_at;
  }
  auto fields = changed_fields(watched.lock, lock);
  watched.lock = std::move(lock);
  if (fields.empty()) return std::nullopt;
  return Change{first ? ChangeKind::seen : ChangeKind::changed, name, std::move(fields),
                watched.lock};
}

void WatchModel::learn(const std::string& name, const std::vector<lock::HistoryRow>& runs) {
  auto found = locks_.find(name);
  if (found == locks_.end()) return;
  WatchedLock& watched = found->second;
  watched.usual = usual_duration(runs);
  watched.usual_token = lock::Token{};
  if (watched.lock && watched.lock->snapshot)
    watched.usual_token = watched.lock->snapshot->last_grant;
}

std::vector<Change> WatchModel::drop_free(TimePoint now) {
  std::vector<Change> gone;
  for (auto at = locks_.begin(); at != locks_.end();) {
    const WatchedLock& watched = at->second;
    const bool over =
        !watched.named && watched.free_since && now - *watched.free_since > kFreeShown;
    if (over) gone.push_back({ChangeKind::gone, at->first, {}, std::nullopt});
    at = over ? locks_.erase(at) : std::next(at);
  }
  return gone;
}

std::vector<const WatchedLock*> WatchModel::shown() const {
  std::vector<const WatchedLock*> out;
  for (const auto& [name, watched] : locks_) {
    if (watched.lock) out.push_back(&watched);
  }
  return out;
}

const WatchedLock* WatchModel::find(const std::string& name) const {
  auto found = locks_.find(name);
  return found == locks_.end() ? nullptr : &found->second;
}

}  // namespace rlock::cli
