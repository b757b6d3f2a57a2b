#include "cli/held.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace rlock::cli {
namespace {

// server,prefix,name,owner,token,limit,min-hold in ms,pid,ms since boot,ms of the ttl that is
// renewed[,entry]...;the next record
constexpr char kBetweenRecords = ';';
constexpr char kBetweenFields = ',';
constexpr size_t kFields = 10;

using Fields = std::vector<std::string_view>;

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~:/").find(c) != std::string_view::npos;
}

std::string encoded(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (plain(c)) {
      out += c;
    } else {
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t length = text.front() == '%' ? 3 : 1;
    unsigned byte = static_cast<unsigned char>(text.front());
    if (length == 3) {
      if (text.size() < length) return std::nullopt;
      auto [stop, trouble] = std::from_chars(text.data() + 1, text.data() + 3, byte, 16);
      if (trouble != std::errc() || stop != text.data() + 3) return std::nullopt;
    }
    out += static_cast<char>(byte);
    text.remove_prefix(length);
  }
  return out;
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
  auto [stop, trouble] = std::from_chars(text.data(), end, value);
  bool whole = trouble == std::errc() && stop == end;
  return whole && value <= most ? std::optional(value) : std::nullopt;
}

std::optional<HeldPlace> read_place(const Fields& fields) {
  auto server = decoded(fields[0]);
  auto prefix = decoded(fields[1]);
  auto name = decoded(fields[2]);
  if (!server || !prefix || !name) return std::nullopt;
  return HeldPlace{*std::move(server), *std::move(prefix), *std::move(name)};
}

constexpr uint64_t kLongestUptime = 100ULL * 366 * 24 * 60 * 60 * 1'000;  // ms
constexpr uint64_t kTenYears = 3'650ULL * 24 * 60 * 60 * 1'000;  // the longest duration in options

std::optional<run::Use> read_use(const Fields& fields) {
  constexpr uint64_t kExact = uint64_t{1} << 53;  // beyond that scripts lose digits
  auto owner = lock::Owner::parse(fields[3]);
  auto token = number(fields[4], kExact);
  auto limit = number(fields[5], lock::Limit::shared().value());
  auto min_hold = number(fields[6], kTenYears);
  if (!owner || !token || !limit || *limit == 0 || !min_hold) return std::nullopt;
  return run::Use{*std::move(owner), lock::Token{*token}, lock::Limit::slots(*limit),
                  util::Millis(*min_hold)};
}

std::optional<HeldBy> read_by(const Fields& fields) {
  auto pid = number(fields[7], std::numeric_limits<pid_t>::max());
  auto at = number(fields[8], kLongestUptime);
  auto renewing = number(fields[9], kTenYears);
  if (!pid || !at || !renewing) return std::nullopt;
  return HeldBy{static_cast<pid_t>(*pid), util::TimePoint(util::Millis(*at)),
                util::Millis(*renewing)};
}

std::optional<HeldRecord> read_record(std::string_view text) {
  auto fields = split(text, kBetweenFields);
  if (fields.size() < kFields) return std::nullopt;
  auto place = read_place(fields);
  auto use = read_use(fields);
  auto by = read_by(fields);
  if (!place || !use || !by) return std::nullopt;
  HeldRecord record{*std::move(place), *std::move(use), *by};
  for (size_t i = kFields; i < fields.size(); ++i) {
    if (!lock::Owner::parse(fields[i])) return std::nullopt;  // an entry looks the same
    record.entries.emplace_back(fields[i]);
  }
  return record;
}

// Up: a process must not seem to be younger than its record.
int64_t ms_since_boot(util::TimePoint at) {
  return std::chrono::ceil<util::Millis>(at.time_since_epoch()).count();
}

std::string record_text(const HeldRecord& record) {
  const auto& [place, use, by, entries] = record;
  std::string text = encoded(place.server);
  for (const std::string& field :
       {encoded(place.prefix), encoded(place.name), use.owner.text(),
        std::to_string(use.token.value), std::to_string(use.limit.value()),
        std::to_string(use.min_hold.count()), std::to_string(by.pid),
        std::to_string(ms_since_boot(by.at)), std::to_string(by.renewing.count())}) {
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

std::vector<HeldRecord> held_around(const std::vector<HeldRecord>& records,
                                    const HeldPlace& place) {
  std::vector<HeldRecord> around;
  auto add = [&](const HeldRecord& record) {
    auto same = [&](const HeldRecord& one) { return one.use.owner == record.use.owner; };
    if (std::none_of(around.begin(), around.end(), same)) around.push_back(record);
  };
  for (const HeldRecord& record : records) {
    if (record.place == place) add(record);
  }
  for (const HeldRecord& record : records) {
    if (record.place.prefix == place.prefix && record.place.name == place.name) add(record);
  }
  return around;
}

std::vector<HeldRecord> held_inside(std::vector<HeldRecord> around, HeldRecord own) {
  auto same_owner = [&](const HeldRecord& one) { return one.use.owner == own.use.owner; };
  auto same = [&](const HeldRecord& one) { return one.place == own.place && same_owner(one); };
  auto found = std::find_if(around.begin(), around.end(), same);
  if (found == around.end()) {
    // Entered with the server spelled otherwise: runs inside may spell it either way.
    auto outer = std::find_if(around.begin(), around.end(), same_owner);
    if (outer != around.end()) own.entries = outer->entries;
    found = around.insert(around.begin(), own);
  }
  found->by = own.by;
  if (own.use.nested()) found->entries.push_back(own.use.entry.text());
  return around;
}

}  // namespace rlock::cli
