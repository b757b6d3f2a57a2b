#include "cli/watch/client.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "cli/output/deadlock.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// How long the line of a free lock stays: a lock that is handed over is free for a moment.
constexpr Millis kFreeShown{10'000};

std::string id_of_closure(const lock::Snapshot& lock) {
  return lock.closure ? lock.closure->id : "";
}

std::string rules_of(const lock::Snapshot& lock) {
  return lock.needs ? lock.needs->version + util::joined(lock.needs->words, "") : "";
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

constexpr Millis kBatchEvery{1000};
constexpr size_t kBatchSize = 100;
constexpr size_t kFewLocks = 20;  // up to this number there is one other request a second
constexpr Millis kOtherEvery{1000};
constexpr Millis kOtherEveryOfMany{334};
constexpr uint64_t kRunsRead = 50;  // rows of a history that are read

// A single lock that cannot be read is not an outage, for example a key of the wrong type, or a
// lock of another version of rlock.
bool is_outage(const Error& error) {
  if (error.cause == Cause::other_version) return false;
  return error.kind == ErrorKind::unavailable || error.kind == ErrorKind::denied ||
         error.kind == ErrorKind::config;
}

template <class T>
Result<T> result_of(lock::InFlight<T> request, TimePoint now, const std::string& server,
                    Millis limit) {
  if (request->advance(now)) return request->take();
  return Error{ErrorKind::unavailable, server + ": no answer in " + util::format_duration(limit),
               Retry::later};
}

// How many waiters of a lock are read to find runs that wait for each other.
constexpr uint64_t kWaitersOfDeadlock = 16;

bool is_waited_for(const WatchedLock& watched) {
  return watched.lock && watched.lock->snapshot && watched.lock->snapshot->servers == 1 &&
         watched.lock->snapshot->live_waiters > 0;
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
  if (rules_of(was) != rules_of(is)) fields.push_back("needs");
  if (!same_servers(was, is)) fields.push_back("quorum");
  return fields;
}

WatchModel::WatchModel(Selection selection) : selection_(std::move(selection)) {
  for (const lock::LockName& name : selection_.names) {
    locks_.try_emplace(name.text(), WatchedLock{name, true});
  }
}

void WatchModel::add(const lock::NamesPage& page) {
  // A server of another program may claim to have any number of locks.
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
  if (lock.snapshot) watched.dead_holders.mark(lock.snapshot->holders);
  if (!is_idle(lock)) {
    watched.free_since.reset();
  } else if (first && !watched.named) {
    locks_.erase(found);  // it was in use when the listing was read
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

void WatchModel::mark_deadlocks() {
  const ReadLock read = [this](const lock::LockName& name) {
    const WatchedLock* watched = find(name.text());
    const bool known = watched != nullptr && watched->lock && watched->lock->snapshot;
    return known ? std::optional(*watched->lock->snapshot) : std::nullopt;
  };
  for (auto& [name, watched] : locks_) {
    const bool waited_for =
        watched.lock && watched.lock->snapshot && !watched.lock->snapshot->waiters.empty();
    if (watched.lock) watched.lock->deadlock = waited_for ? deadlock_of(read, *watched.lock) : "";
  }
}

void WatchModel::learn(const std::string& name, const lock::HistoryRows& runs) {
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

lock::InspectCall WatchClient::call_for(const WatchedLock& watched, const OnScreen& screen) const {
  lock::InspectCall call{watched.name};
  call.holders_page = options_.holders_page;
  call.waiters_page = screen.opened == watched.name.text()         ? screen.waiters
                      : screen.estimates && is_waited_for(watched) ? kWaitersOfDeadlock
                                                                   : 0;
  return call;
}

// Reads what is on the screen first, then what was read the longest time ago.
std::vector<lock::InspectCall> WatchClient::batch_calls(const OnScreen& screen) const {
  constexpr size_t kMostVisible = kBatchSize / 2;
  std::vector<lock::InspectCall> calls;
  std::set<std::string> chosen;
  auto choose = [&](const WatchedLock* watched) {
    if (watched == nullptr || calls.size() == kBatchSize) return;
    if (chosen.insert(watched->name.text()).second) calls.push_back(call_for(*watched, screen));
  };
  if (screen.opened) choose(model_.find(*screen.opened));
  for (const std::string& name : screen.visible) {
    if (calls.size() < kMostVisible) choose(model_.find(name));
  }
  std::vector<const WatchedLock*> rest;
  for (const auto& [name, watched] : model_.locks()) rest.push_back(&watched);
  std::stable_sort(rest.begin(), rest.end(),
                   [](const WatchedLock* a, const WatchedLock* b) { return a->at < b->at; });
  for (const WatchedLock* watched : rest) choose(watched);
  return calls;
}

bool WatchClient::start_batch(TimePoint now, const OnScreen& screen) {
  const auto calls = batch_calls(screen);
  next_batch_ = now + kBatchEvery;
  if (calls.empty()) return false;
  last_batch_ = now;
  batch_names_.clear();
  for (const lock::InspectCall& call : calls) batch_names_.push_back(call.name.text());
  batch_ = inspector_.inspect_all(calls);
  return true;
}

// The first lock on the screen whose present run has no estimate.
const WatchedLock* WatchClient::without_estimate(const OnScreen& screen) const {
  if (!screen.estimates || options_.format != redis::Format::native) return nullptr;
  auto lacks = [&](const std::string& name) {
    const WatchedLock* watched = model_.find(name);
    if (watched == nullptr || !watched->lock || !watched->lock->snapshot) return false;
    const lock::Snapshot& snapshot = *watched->lock->snapshot;
    return !snapshot.holders.empty() && watched->usual_token != snapshot.last_grant;
  };
  if (screen.opened && lacks(*screen.opened)) return model_.find(*screen.opened);
  auto found = std::find_if(screen.visible.begin(), screen.visible.end(), lacks);
  return found == screen.visible.end() ? nullptr : model_.find(*found);
}

void WatchClient::start_other(TimePoint now, const OnScreen& screen) {
  const bool few = model_.locks().size() <= kFewLocks;
  next_other_ = now + (few ? kOtherEvery : kOtherEveryOfMany);
  const bool listing = model_.selection().is_listing();
  const WatchedLock* unknown = history_next_ || !listing ? without_estimate(screen) : nullptr;
  history_next_ = !history_next_;
  if (unknown != nullptr) {
    runs_of_ = unknown->name.text();
    runs_ = inspector_.history(unknown->name, kRunsRead);
  } else if (listing) {
    page_ = inspector_.list_names(cursor_);
  }
}

void WatchClient::start_due(TimePoint now, const OnScreen& screen) {
  if (in_flight() != nullptr || (server_.outage && now < server_.outage->next_try)) return;
  if (!first_try_) first_try_ = now;
  asked_at_ = now;
  if (now >= next_batch_ && start_batch(now, screen)) return;
  if (now >= next_other_) start_other(now, screen);
}

bool WatchClient::is_complete() const {
  const auto& locks = model_.locks();
  return (complete_ || !model_.selection().is_listing()) &&
         std::all_of(locks.begin(), locks.end(),
                     [](const auto& one) { return one.second.lock.has_value(); });
}

lock::Request* WatchClient::in_flight() const {
  if (batch_) return batch_.get();
  if (page_) return page_.get();
  return runs_.get();
}

TimePoint WatchClient::due() const {
  if (in_flight() != nullptr) return asked_at_ + options_.limit;
  const TimePoint next = std::min(next_batch_, next_other_);
  return server_.outage ? std::max(next, server_.outage->next_try) : next;
}

std::vector<Change> WatchClient::finish(TimePoint now) {
  std::vector<Change> changes;
  if (batch_) {
    changes = finish_batch(now);
  } else if (page_) {
    finish_page(now);
  } else if (runs_) {
    finish_runs(now);
  }
  if (!server_.outage) {
    auto gone = model_.drop_free(now);
    std::move(gone.begin(), gone.end(), std::back_inserter(changes));
  }
  return changes;
}

std::vector<Change> WatchClient::finish_batch(TimePoint now) {
  auto all = result_of(std::exchange(batch_, nullptr), now, inspector_.server(), options_.limit);
  if (!all) {
    fail(std::move(all).error(), now);
    return {};
  }
  auto refused = [](const auto& one) { return !one && is_outage(one.error()); };
  if (std::all_of(all->begin(), all->end(), refused)) {
    fail(all->front().error(), now);
    return {};
  }
  auto read = std::find_if(all->begin(), all->end(),
                           [](const auto& one) { return static_cast<bool>(one); });
  answered(now, read == all->end() ? server_.silent : (*read)->silent);
  std::vector<Change> changes;
  for (size_t i = 0; i < std::min(all->size(), batch_names_.size()); ++i) {
    LockView lock{batch_names_[i], std::move((*all)[i]), options_.format};
    auto change = model_.see(batch_names_[i], std::move(lock), asked_at_);
    if (change) changes.push_back(*std::move(change));
  }
  model_.mark_deadlocks();
  return changes;
}

void WatchClient::finish_page(TimePoint now) {
  auto page = result_of(std::exchange(page_, nullptr), now, inspector_.server(), options_.limit);
  if (!page && cursor_.empty()) return fail(std::move(page).error(), now);
  if (!page) {
    // In a cluster, the other nodes can still be listed.
    cursor_ = inspector_.cursor_past_server(cursor_);
    complete_ = complete_ || cursor_.empty();
    return;
  }
  answered(now, cursor_.empty() ? std::move(page->silent) : server_.silent);
  model_.add(*page);
  cursor_ = page->cursor;
  complete_ = complete_ || cursor_.empty();
  next_batch_ = last_batch_ ? std::min(next_batch_, *last_batch_ + kBatchEvery) : now;
}

// Without the history only the estimate is missing.
void WatchClient::finish_runs(TimePoint now) {
  auto runs = result_of(std::exchange(runs_, nullptr), now, inspector_.server(), options_.limit);
  model_.learn(runs_of_, runs ? *runs : lock::HistoryRows{});
}

void WatchClient::answered(TimePoint now, std::vector<lock::SilentServer> silent) {
  server_ = {now, std::nullopt, std::move(silent)};
}

void WatchClient::fail(Error why, TimePoint now) {
  constexpr Millis kFirstPause{250};
  constexpr Millis kLongestPause{8000};
  const int tries = server_.outage ? server_.outage->tries + 1 : 1;
  const Millis pause = std::min(kLongestPause, kFirstPause * (1 << std::min(tries - 1, 10)));
  const TimePoint since = server_.last_answer.value_or(*first_try_);
  server_.outage =
      Outage{std::move(why), server_.outage ? server_.outage->since : since, now + pause, tries};
}

}  // namespace rlock::cli
