#include "cli/held_locks.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "cli/output/view.hpp"
#include "lock/timing.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// server,prefix,name,owner,token,limit,min-hold in ms,pid,ms since boot,ms of the ttl that is
// renewed[,slot];the next record
constexpr char kBetweenRecords = ';';
constexpr char kBetweenFields = ',';
constexpr size_t kFields = 10;

std::string encoded(std::string_view text) {
  return util::percent_encoded(text, "-._~:/");
}

std::optional<uint64_t> number(std::string_view text, uint64_t most) {
  auto value = util::parse_number<uint64_t>(text);
  return value && *value <= most ? value : std::nullopt;
}

std::optional<HeldRecord> read_record(std::string_view text) {
  constexpr uint64_t kExact = uint64_t{1} << 53;  // above that scripts lose digits
  constexpr uint64_t kLongestUptime = 100ULL * 366 * 24 * 60 * 60 * 1'000;  // ms
  constexpr uint64_t kTenYears =
      3'650ULL * 24 * 60 * 60 * 1'000;  // the longest duration in options
  const auto fields = util::split(text, kBetweenFields);
  if (fields.size() < kFields || fields.size() > kFields + 1) return std::nullopt;
  auto server = util::percent_decoded(fields[0]);
  auto prefix = util::percent_decoded(fields[1]);
  auto name = util::percent_decoded(fields[2]);
  auto owner = lock::Owner::parse(fields[3]);
  auto token = number(fields[4], kExact);
  auto limit = number(fields[5], lock::Limit::shared().value());
  auto min_hold = number(fields[6], kTenYears);
  auto pid = number(fields[7], std::numeric_limits<pid_t>::max());
  auto at = number(fields[8], kLongestUptime);
  auto renewing = number(fields[9], kTenYears);
  auto slot = fields.size() > kFields ? number(fields[kFields], lock::Limit::kMostSlots) : 0;
  if (!server || !prefix || !name || !owner) return std::nullopt;
  if (!token || limit.value_or(0) == 0 || !min_hold || !slot) return std::nullopt;
  if (!pid || !at || !renewing) return std::nullopt;
  return HeldRecord{{*std::move(server), *std::move(prefix), *std::move(name)},
                    {.owner = *std::move(owner),
                     .token = lock::Token{*token},
                     .limit = lock::Limit::slots(*limit),
                     .min_hold = Millis(*min_hold),
                     .slot = *slot},
                    {static_cast<pid_t>(*pid), TimePoint(Millis(*at)), Millis(*renewing)}};
}

std::string record_text(const HeldRecord& record) {
  const auto& [address, held_lock, process] = record;
  // Rounded up, so that a process does not seem younger than its record.
  const auto at = std::chrono::ceil<Millis>(process.at.time_since_epoch());
  return util::format("{},{},{},{},{},{},{},{},{},{}{}", encoded(address.server),
                      encoded(address.prefix), encoded(address.name), held_lock.owner.text(),
                      held_lock.token.value, held_lock.limit.value(), held_lock.min_hold.count(),
                      process.pid, at.count(), process.renewing.count(),
                      held_lock.slot != 0 ? util::format(",{}", held_lock.slot) : "");
}

// A lost lease may be restored only while its run is a live ancestor, and only under the same
// spelling of the server: under another spelling the lock may be on another server.
run::OuterRun outer_run(HeldRecord record, const LockAddress& address) {
  constexpr Millis kToRenew{500};  // how long a renewal may take that is due then
  const bool same_server = record.address == address;
  const HolderProcess& process = record.process;
  run::OuterRun outer{std::move(record.held_lock)};
  outer.may_restore = same_server && util::is_live_ancestor(process.pid, process.at);
  const bool renews = same_server && !outer.may_restore && process.renewing > Millis(0);
  if (renews) outer.restore_grace = timing::renew_interval(process.renewing) + kToRenew;
  return outer;
}

}  // namespace

std::vector<HeldRecord> decode_held(std::string_view text) {
  std::vector<HeldRecord> records;
  for (std::string_view part : util::split(text, kBetweenRecords)) {
    if (auto record = read_record(part)) records.push_back(*std::move(record));
  }
  return records;
}

std::string encode_held(const std::vector<HeldRecord>& records) {
  std::string text;
  for (const HeldRecord& record : records) {
    if (!text.empty()) text += kBetweenRecords;
    text += record_text(record);
  }
  return text;
}

std::vector<HeldRecord> find_outer_locks(const std::vector<HeldRecord>& records,
                                         const LockAddress& address) {
  std::vector<HeldRecord> outer_locks;
  auto add = [&](const HeldRecord& record) {
    auto same = [&](const HeldRecord& one) {
      return one.held_lock.owner == record.held_lock.owner;
    };
    if (std::none_of(outer_locks.begin(), outer_locks.end(), same)) outer_locks.push_back(record);
  };
  for (const HeldRecord& record : records) {
    if (record.address == address) add(record);
  }
  for (const HeldRecord& record : records) {
    if (record.address.prefix == address.prefix && record.address.name == address.name) add(record);
  }
  return outer_locks;
}

std::vector<HeldRecord> records_for_command(std::vector<HeldRecord> outer_locks, HeldRecord own) {
  auto same = [&](const HeldRecord& one) {
    return one.address == own.address && one.held_lock.owner == own.held_lock.owner;
  };
  auto found = std::find_if(outer_locks.begin(), outer_locks.end(), same);
  // The same lock under another spelling of the server has its own record, because nested runs may
  // use either spelling.
  if (found == outer_locks.end()) found = outer_locks.insert(outer_locks.begin(), own);
  found->process = own.process;
  return outer_locks;
}

std::vector<Hold> outer_holds(const std::vector<HeldRecord>& records, const Session& session) {
  std::vector<Hold> holds;
  if (session.format() != redis::Format::native || session.servers() > 1) return holds;
  for (const auto& [address, held_lock, process] : records) {
    const bool here = address.server == session.server() && address.prefix == session.prefix();
    if (!here || held_lock.limit != lock::Limit::exclusive()) continue;
    holds.push_back({address.name, held_lock.owner.text()});
  }
  return holds;
}

std::vector<run::OuterRun> outer_runs(const std::vector<HeldRecord>& records,
                                      const LockAddress& address) {
  std::vector<run::OuterRun> runs;
  for (HeldRecord& record : find_outer_locks(records, address)) {
    runs.push_back(outer_run(std::move(record), address));
  }
  return runs;
}

}  // namespace rlock::cli
