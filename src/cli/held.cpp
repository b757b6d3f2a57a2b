#include "cli/held.hpp"

#include <algorithm>
#include <charconv>

namespace rlock::cli {
namespace {

// server,prefix,name,owner,token,limit,min-hold in ms[,entry]...;the next record
constexpr char kBetweenRecords = ';';
constexpr char kBetweenFields = ',';
constexpr size_t kFields = 7;

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

std::optional<run::Use> read_use(const Fields& fields) {
  constexpr uint64_t kExact = uint64_t{1} << 53;  // beyond that scripts lose digits
  constexpr uint64_t kTenYears = 3'650ULL * 24 * 60 * 60 * 1'000;  // as --min-hold takes it
  auto owner = lock::Owner::parse(fields[3]);
  auto token = number(fields[4], kExact);
  auto limit = number(fields[5], lock::Limit::shared().value());
  auto min_hold = number(fields[6], kTenYears);
  if (!owner || !token || !limit || *limit == 0 || !min_hold) return std::nullopt;
  return run::Use{*std::move(owner), lock::Token{*token}, lock::Limit::slots(*limit),
                  util::Millis(*min_hold)};
}

std::optional<HeldRecord> read_record(std::string_view text) {
  auto fields = split(text, kBetweenFields);
  if (fields.size() < kFields) return std::nullopt;
  auto place = read_place(fields);
  auto use = read_use(fields);
  if (!place || !use) return std::nullopt;
  HeldRecord record{*std::move(place), *std::move(use)};
  for (size_t i = kFields; i < fields.size(); ++i) {
    if (!lock::Owner::parse(fields[i])) return std::nullopt;  // an entry looks the same
    record.entries.emplace_back(fields[i]);
  }
  return record;
}

std::string record_text(const HeldRecord& record) {
  const auto& [place, use, entries] = record;
  std::string text = encoded(place.server);
  for (const std::string& field :
       {encoded(place.prefix), encoded(place.name), use.owner.text(),
        std::to_string(use.token.value), std::to_string(use.limit.value()),
        std::to_string(use.min_hold.count())}) {
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

std::optional<run::Use> held_around(const std::vector<HeldRecord>& records,
                                    const HeldPlace& place) {
  for (const HeldRecord& record : records) {
    if (record.place == place) return record.use;
  }
  return std::nullopt;
}

std::vector<HeldRecord> held_inside(std::vector<HeldRecord> around, const HeldPlace& place,
                                    const run::Use& use) {
  if (!use.nested()) {
    around.insert(around.begin(), HeldRecord{place, use});
    return around;
  }
  for (HeldRecord& record : around) {
    if (record.place != place || record.use.owner != use.owner) continue;
    record.entries.push_back(use.entry.text());
    break;
  }
  return around;
}

}  // namespace rlock::cli
