#include "cli/commands/held_locks.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "util/percent.hpp"

namespace rlock::cli {
namespace {

// server,prefix,name,owner,token,limit,min-hold in ms,pid,ms since boot,ms of the ttl that is
// renewed[,entry]...;the next record
constexpr char kBetweenRecords = ';';
constexpr char kBetweenFields = ',';
constexpr size_t kFields = 10;

using Fields = std::vector<std::string_view>;

std::string encoded(std::string_view text) {
  return util::percent_encoded(text, "-._~:/");
}

Fields split(std::string_view text, char between) {
  Fields parts;
  while (true) {
    size_t end = text.find(between);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<uint64_t> number(std::string_view text, uint64_t most) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  bool whole = error == std::errc() && stop == end;
  return whole && value <= most ? std::optional(value) : std::nullopt;
}

std::optional<LockAddress> read_address(const Fields& fields) {
  auto server = util::percent_decoded(fields[0]);
  auto prefix = util::percent_decoded(fields[1]);
  auto name = util::percent_decoded(fields[2]);
  if (!server || !prefix || !name) return std::nullopt;
  return LockAddress{*std::move(server), *std::move(prefix), *std::move(name)};
}

constexpr uint64_t kLongestUptime = 100ULL * 366 * 24 * 60 * 60 * 1'000;  // ms
constexpr uint64_t kTenYears = 3'650ULL * 24 * 60 * 60 * 1'000;  // the longest duration in options

std::optional<run::HeldLock> read_held(const Fields& fields) {
  constexpr uint64_t kExact = uint64_t{1} << 53;  // beyond that scripts lose digits
  auto owner = lock::Owner::parse(fields[3]);
  auto token = number(fields[4], kExact);
  auto limit = number(fields[5], lock::Limit::shared().value());
  auto min_hold = number(fields[6], kTenYears);
  if (!owner || !token || !limit || *limit == 0 || !min_hold) return std::nullopt;
  return run::HeldLock{*std::move(owner), lock::Token{*token}, lock::Limit::slots(*limit),
                       Millis(*min_hold)};
}

std::optional<HolderProcess> read_process(const Fields& fields) {
  auto pid = number(fields[7], std::numeric_limits<pid_t>::max());
  auto at = number(fields[8], kLongestUptime);
  auto renewing = number(fields[9], kTenYears);
  if (!pid || !at || !renewing) return std::nullopt;
  return HolderProcess{static_cast<pid_t>(*pid), TimePoint(Millis(*at)), Millis(*renewing)};
}

std::optional<HeldRecord> read_record(std::string_view text) {
  auto fields = split(text, kBetweenFields);
  if (fields.size() < kFields) return std::nullopt;
  auto address = read_address(fields);
  auto held_lock = read_held(fields);
  auto process = read_process(fields);
  if (!address || !held_lock || !process) return std::nullopt;
  HeldRecord record{*std::move(address), *std::move(held_lock), *process};
  for (size_t i = kFields; i < fields.size(); ++i) {
    if (!lock::Owner::parse(fields[i])) return std::nullopt;  // an entry looks the same
    record.entries.emplace_back(fields[i]);
  }
  return record;
}

// Up: a process must not seem to be younger than its record.
int64_t ms_since_boot(TimePoint at) {
  return std::chrono::ceil<Millis>(at.time_since_epoch()).count();
}

std::string record_text(const HeldRecord& record) {
  const auto& [address, held_lock, process, entries] = record;
  std::string text = encoded(address.server);
  for (const std::string& field :
       {encoded(address.prefix), encoded(address.name), held_lock.owner.text(),
        std::to_string(held_lock.token.value), std::to_string(held_lock.limit.value()),
        std::to_string(held_lock.min_hold.count()), std::to_string(process.pid),
        std::to_string(ms_since_boot(process.at)), std::to_string(process.renewing.count())}) {
    text += kBetweenFields + field;
  }
  for (const std::string& entry : entries) text += kBetweenFields + entry;
  return text;
}

}  // namespace

std::vector<HeldRecord> decode_held(std::string_view text) {
  std::vector<HeldRecord> records;
  for (std::string_view part : split(text, kBetweenRecords)) {
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
  auto same_owner = [&](const HeldRecord& one) {
    return one.held_lock.owner == own.held_lock.owner;
  };
  auto same = [&](const HeldRecord& one) { return one.address == own.address && same_owner(one); };
  auto found = std::find_if(outer_locks.begin(), outer_locks.end(), same);
  if (found == outer_locks.end()) {
    // Entered with the server spelled otherwise: runs inside may spell it either way.
    auto outer = std::find_if(outer_locks.begin(), outer_locks.end(), same_owner);
    if (outer != outer_locks.end()) own.entries = outer->entries;
    found = outer_locks.insert(outer_locks.begin(), own);
  }
  found->process = own.process;
  if (own.held_lock.nested()) found->entries.push_back(own.held_lock.entry.text());
  return outer_locks;
}

}  // namespace rlock::cli
