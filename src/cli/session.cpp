#include "cli/session.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <utility>

#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/dead_holders.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/settings/connect.hpp"
#include "lock/quorum/quorum.hpp"
#include "util/text.hpp"

namespace rlock::cli {

namespace {

// Words after `--` are names, too.
std::vector<std::string> all_names_of(const Invocation& invocation) {
  std::vector<std::string> names = invocation.names;
  if (invocation.after_dashes) {
    names.insert(names.end(), invocation.after_dashes->begin(), invocation.after_dashes->end());
  }
  return names;
}

// Limits the memory of one listing, however many pages a server claims to have. There is room for
// some 100,000 entries of rlock.
class ListingBudget {
 public:
  explicit ListingBudget(const Session& session) : session_(session) {}

  Status spend(size_t bytes) {
    spent_ += bytes;
    return check(0);
  }

  // Checks that `bytes` more fit into the budget.
  Status check(size_t bytes) const {
    constexpr size_t kLimit = size_t{32} << 20;
    if (spent_ + bytes <= kLimit) return Done{};
    return Error{ErrorKind::unavailable,
                 session_.server() +
                     ": the listing exceeds 32 MiB; name some locks, or a pattern such as shop/*"};
  }

  template <class Entry>
  Status spend(const std::vector<Entry>& entries) {
    constexpr size_t kOverhead =
        256;  // an empty page counts, too, because there may be any number of them
    for (const Entry& entry : entries) {
      TRY_STATUS(spend(entry.owner.size() + entry.record.size() + kOverhead));
    }
    return spend(kOverhead);
  }

 private:
  const Session& session_;
  size_t spent_ = 0;
};

Result<lock::Snapshot> read_lock(Session& session, const lock::LockName& name, uint64_t waiters) {
  lock::InspectCall call{name};
  call.waiters_page = waiters;
  auto next_page = [&] { return session.ask([&](auto& store) { return store.inspect(call); }); };
  ListingBudget budget(session);
  TRY(auto all, next_page());
  while (all.more_holders) {
    call.holders_from += call.holders_page;
    call.waiters_page = 0;
    TRY(auto page, next_page());
    TRY_STATUS(budget.spend(page.holders));
    std::move(page.holders.begin(), page.holders.end(), std::back_inserter(all.holders));
    all.more_holders = page.more_holders;
  }
  return all;
}

// Reads the lock again if only that shows whether a holder has died. `seen`: the first reading.
Result<lock::Snapshot> settled(Result<lock::Snapshot> seen, Session& session,
                               const lock::LockName& name, uint64_t waiters) {
  DeadHolders dead;
  while (seen && dead.mark(seen->holders)) {
    auto again = read_lock(session, name, waiters);
    if (!again) break;
    seen = std::move(again);
  }
  return seen;
}

Result<lock::Snapshot> inspect_lock(Session& session, const lock::LockName& name,
                                    uint64_t waiters) {
  return settled(read_lock(session, name, waiters), session, name, waiters);
}

// Reads in batches, and then one lock at a time: the rest of a lock that has more holders than a
// page, and locks with a failure that may be temporary. Stops at the first request that a server
// does not answer.
lock::Snapshots inspect_in_batches(Session& session, std::span<const lock::LockName> names,
                                   uint64_t waiters, const Progress& progress) {
  constexpr size_t kBatch = 100;
  lock::Snapshots all;
  while (!names.empty()) {
    std::vector<lock::InspectCall> calls;
    for (const lock::LockName& name : names.first(std::min(names.size(), kBatch))) {
      calls.push_back({name});
      calls.back().waiters_page = waiters;
    }
    auto batch = session.ask([&](auto& store) { return store.inspect_all(calls); });
    if (!batch && batch.error().kind == ErrorKind::unavailable) {
      all.insert(all.end(), names.size(), batch.error());
      break;
    }
    for (size_t i = 0; i < calls.size(); ++i) {
      auto one = batch ? std::move((*batch)[i]) : Result<lock::Snapshot>(batch.error());
      const bool incomplete = one && one->more_holders;
      const bool may_pass = batch && !one && one.error().retry == Retry::later;
      all.push_back(incomplete || may_pass ? inspect_lock(session, names[i], waiters)
                                           : settled(std::move(one), session, names[i], waiters));
    }
    names = names.subspan(calls.size());
    if (progress) progress(all.size());
  }
  return all;
}

// Counts distinct names, in eight bytes each.
class NameCounter {
 public:
  void add(const std::string& name) {
    hashes_.push_back(std::hash<std::string>{}(name));
    if (hashes_.size() >= compact_at_) compact();
  }
  size_t count() {
    compact();
    return hashes_.size();
  }
  size_t bytes() const { return compact_at_ * sizeof(size_t); }

 private:
  static constexpr size_t kFirstSize = size_t{1} << 16;

  void compact() {
    std::sort(hashes_.begin(), hashes_.end());
    hashes_.erase(std::unique(hashes_.begin(), hashes_.end()), hashes_.end());
    compact_at_ = std::max(kFirstSize, hashes_.size() * 2);
  }

  std::vector<size_t> hashes_;
  size_t compact_at_ = kFirstSize;
};

class NameListing {
 public:
  NameListing(const Session& session, ListedNames listed) : budget_(session), listed_(listed) {}

  Status add(const lock::NamesPage& page) {
    seen_ += page.names.size();
    TRY_STATUS(add_names(page.in_use, true));
    if (listed_ == ListedNames::all) return add_names(page.names, false);
    for (const std::string& text : page.names) {
      if (lock::LockName::parse(text)) counter_.add(text);
    }
    return budget_.check(counter_.bytes());
  }

  uint64_t seen() const { return seen_; }

  AllNames take(std::vector<Error> missing) {
    AllNames all{{}, 0, std::move(missing)};
    if (listed_ == ListedNames::in_use) all.others = counter_.count() - names_.size();
    for (const auto& [name, in_use] : names_) all.names.push_back({name, in_use});
    return all;
  }

 private:
  Status add_names(const std::vector<std::string>& texts, bool in_use) {
    constexpr size_t kOverhead = 96;
    for (const std::string& text : texts) {
      auto name = lock::LockName::parse(text);
      if (!name) continue;
      auto [listed, is_new] = names_.emplace(*std::move(name), in_use);
      listed->second = listed->second || in_use;
      if (is_new) TRY_STATUS(budget_.spend(text.size() + kOverhead));
    }
    return Done{};
  }

  ListingBudget budget_;
  const ListedNames listed_;
  std::map<lock::LockName, bool> names_;
  NameCounter counter_;
  uint64_t seen_ = 0;
};

}  // namespace

Result<lock::LockName> only_name(const Invocation& invocation) {
  const std::vector<std::string> names = all_names_of(invocation);
  const std::string_view command = row_of(invocation.command).name;
  if (names.empty()) return usage(util::format("no lock name given: rlock {} NAME", command));
  if (names.size() > 1) {
    return usage(util::format("only one lock name is allowed, but {} was given, too: rlock {} NAME",
                              in_quotes(names[1]), command));
  }
  return parse_name(names.front(), invocation.choices);
}

Result<std::optional<lock::LockName>> optional_name(const Invocation& invocation) {
  if (invocation.names.empty() && !invocation.after_dashes) return std::optional<lock::LockName>();
  TRY(auto name, only_name(invocation));
  return std::optional(std::move(name));
}

Result<Selection> selection_of(const Invocation& invocation) {
  Selection selection;
  for (const std::string& text : all_names_of(invocation)) {
    const bool key = format_choice(invocation.choices) != redis::Format::native;
    std::string rest = text;
    std::erase_if(rest, [](char c) { return c == '*' || c == '?'; });
    if (rest.size() < text.size() && !key) {
      if (!rest.empty()) TRY_STATUS(lock::LockName::parse(rest));
      selection.patterns.push_back(text);
      continue;
    }
    TRY(auto name, parse_name(text, invocation.choices));
    auto& names = selection.names;
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(std::move(name));
    }
  }
  return selection;
}

Result<LeaseId> parse_lease_id(const Invocation& invocation) {
  TRY(auto name, only_name(invocation));
  TRY_STATUS(check_format(invocation.choices));
  auto id = invocation.choices.last(Opt::owner);
  if (!id) {
    return usage(util::format("{} needs --owner ID, the owner id that rlock acquire printed",
                              row_of(invocation.command).name));
  }
  TRY(auto owner, lock::Owner::parse(*id));
  return LeaseId{std::move(name), std::move(owner)};
}

Error no_longer_held(const LeaseId& lease, const std::string& how,
                     const std::optional<lock::Holder>& now, const std::string& server) {
  return {ErrorKind::lost,
          util::format("{} at {} is no longer held by {}: {}{}", in_quotes(lease.name.text()),
                       util::printable(server), lease.owner.text(), how,
                       now ? "; it is now " + holder_phrase(*now) : "")};
}

// Leaves out a URL with a password, because a message must not show it.
std::string options_to_find(const Choices& choices, const redis::OpenOptions& settings) {
  const redis::OpenOptions usual;
  std::string text;
  if (choices.is_flag(Opt::url)) {
    std::string urls = util::joined(choices.all(Opt::url), " ");
    if (!redis::mask_passwords(urls)) text += " --url " + util::shell_quoted(urls);
  }
  if (settings.prefix != usual.prefix) text += " --prefix=" + util::shell_quoted(settings.prefix);
  if (settings.format != usual.format) {
    text += util::format(" --format {}", to_string(settings.format));
  }
  return util::printable(text);
}

Result<Session> Session::open(const Choices& choices) {
  std::vector<std::string> warnings;
  TRY(auto session, open(choices, warnings));
  for (const std::string& warning : warnings) print_message(warning);
  return session;
}

Result<Session> Session::open(const Choices& choices, std::vector<std::string>& warnings) {
  TRY(auto settings, connection_options(choices));
  // Printed even with --quiet, because the option may be in a forgotten file.
  if (redis::is_unverified(settings)) {
    warnings.push_back(util::format(
        "warning: --insecure: the server's certificate is not verified; anyone could impersonate "
        "the server{}",
        settings.tls.cacert.empty() ? "" : ", and --cacert has no effect"));
  }
  std::string lock_options = options_to_find(choices, settings);
  TRY(auto session, open(std::move(settings)));
  session.lock_options_ = std::move(lock_options);
  return session;
}

Status Session::check(const lock::AcquireCall& claim) const {
  return servers() == 1 ? Done{} : lock::fits_quorum(claim);
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

Result<lock::Snapshot> inspect_holders(Session& session, const lock::LockName& name) {
  return inspect_lock(session, name, 0);
}

Result<lock::Snapshot> inspect_queue(Session& session, const lock::LockName& name) {
  lock::InspectCall call{name};
  call.holders_page = 0;
  auto next_page = [&] { return session.ask([&](auto& store) { return store.inspect(call); }); };
  ListingBudget budget(session);
  TRY(auto all, next_page());
  TRY_STATUS(budget.spend(all.waiters));
  while (all.more_waiters) {
    call.waiters_from += call.waiters_page;
    TRY(auto page, next_page());
    TRY_STATUS(budget.spend(page.waiters));
    std::move(page.waiters.begin(), page.waiters.end(), std::back_inserter(all.waiters));
    all.more_waiters = page.more_waiters;
  }
  return all;
}

lock::Snapshots inspect_holders(Session& session, std::span<const lock::LockName> names,
                                const Progress& progress) {
  return inspect_in_batches(session, names, 0, progress);
}

lock::Snapshots inspect_first_waiter(Session& session, std::span<const lock::LockName> names) {
  constexpr uint64_t kFirst = 16;  // the servers of a quorum may have different ones
  return inspect_in_batches(session, names, kFirst, {});
}

// A page without names of locks costs nothing, because the server may have a hundred million other
// keys.
Result<AllNames> all_names(Session& session, ListedNames listed, const Progress& progress) {
  NameListing listing(session, listed);
  std::vector<Error> missing;
  std::string cursor, seen;
  uint64_t pages = 0;
  do {
    // A server has at most 2^32 keys, and a page covers more than a thousand.
    constexpr uint64_t kMostPages = 4'294'968;
    if ((pages > 0 && cursor == seen) || pages == kMostPages) {
      return Error{ErrorKind::unavailable,
                   util::format("{}: SCAN does not end: cursor {} after {} pages",
                                session.store().server(), cursor, pages)};
    }
    // A cycle of any length reaches the cursor of its last power of two.
    if (std::has_single_bit(++pages)) seen = cursor;
    auto page = session.ask([&](auto& store) { return store.list_names(cursor); });
    if (!page) {
      if (cursor.empty()) return std::move(page).error();
      missing.push_back(std::move(page).error());
      cursor = session.store().cursor_past_server(cursor);
      continue;
    }
    TRY_STATUS(listing.add(*page));
    if (progress) progress(listing.seen());
    cursor = page->cursor;
  } while (!cursor.empty());
  return listing.take(std::move(missing));
}

std::vector<lock::LockName> selected(std::vector<ListedName> listed, const Selection& locks) {
  std::vector<lock::LockName> names;
  for (ListedName& one : listed) {
    if (locks.lists(one.name)) names.push_back(std::move(one.name));
  }
  return names;
}

}  // namespace rlock::cli
