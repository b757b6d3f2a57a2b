#include "cli/options/values.hpp"

#include <algorithm>
#include <ctime>
#include <tuple>

#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

bool scheme_follows(std::string_view text) {
  constexpr std::string_view kSchemeLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-.";
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(kWhiteSpace)));
  if (text.starts_with("local:")) return true;
  size_t end = text.find_first_not_of(kSchemeLetters);
  return end != text.npos && end > 0 && text.substr(end).starts_with("://");
}

}  // namespace

Error usage(std::string text) {
  return {ErrorKind::usage, std::move(text)};
}

std::string shown_name(Opt id) {
  return spellings(row_of(id)).back();
}

std::string quoted_word(std::string_view word) {
  return '"' + util::printable(util::shortened(word, 60)) + '"';
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(kWhiteSpace) == text.npos;
}

bool is_quoted(std::string_view text) {
  if (text.size() < 2) return false;
  return (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
}

bool has_variable(std::string_view text) {
  return text.starts_with('$') || text.find("$(") != text.npos || text.find("${") != text.npos ||
         text.find("{{") != text.npos;
}

namespace {

// Scheme, host and path of a URL, because a user and a password may contain anything.
std::string without_login(std::string_view url) {
  const size_t mark = url.find("://");
  const size_t from = mark == url.npos ? 0 : mark + 3;
  const size_t at = url.rfind('@');
  const size_t host = at == url.npos || at < from ? from : at + 1;
  const std::string text = std::string(url.substr(0, from)) + std::string(url.substr(host));
  return text.substr(0, text.find('?'));
}

// `subject` names the option, the variable or the key of a file.
Status check_text(const OptionRow& row, const std::string& word, const std::string& subject) {
  if (row.demand == Demand::free) return Done{};
  if (is_blank(word)) {
    return usage(
        util::format("{} is empty; is its variable set?{}", subject,
                     row.id == Opt::prefix ? " Use --prefix rlock: for the usual one" : ""));
  }
  if (row.demand == Demand::given) return Done{};
  if (is_quoted(word)) return usage(util::format("{}: {}", subject, kRemoveQuotes));
  const bool is_url = row.demand == Demand::url;
  const std::string text = is_url ? without_login(word) : word;
  if (!has_variable(text) && !(is_url && text.find('$') != text.npos)) return Done{};
  return usage(util::format("bad {} {}: {}", subject, quoted_word(text), kDefineVariable));
}

// `native, plain or redisson`.
std::string alternatives(std::string_view metavar) {
  const size_t last = metavar.rfind('|');
  std::string text;
  for (size_t i = 0; i < metavar.size(); ++i) {
    text += metavar[i] != '|' ? std::string(1, metavar[i]) : i == last ? " or " : ", ";
  }
  return text;
}

Status check_word(const OptionRow& row, const std::string& word) {
  const std::vector<std::string_view> valid = util::split(row.metavar, '|');
  if (std::find(valid.begin(), valid.end(), word) != valid.end()) return Done{};
  const std::string_view before = row.value_optional ? "the only value of " : "";
  return usage(util::format("{}{} {} {}, not {}", before, shown_name(row.id),
                            row.value_optional ? "is" : "must be", alternatives(row.metavar),
                            quoted_word(word)));
}

Result<uint64_t> number_in(const OptionRow& row, const std::string& word) {
  auto number = util::parse_number<uint64_t>(word);
  if (number && *number >= row.least && *number <= row.most) return *number;
  return usage(util::format("{}: not a number from {} to {}: {}", shown_name(row.id), row.least,
                            row.most, quoted_word(word)));
}

Result<Millis> duration_in(const OptionRow& row, const std::string& word) {
  auto duration = util::parse_duration(word);
  if (!duration) {
    return usage(
        util::format("{}: {}", shown_name(row.id), util::printable(duration.error().text)));
  }
  const auto ms = static_cast<uint64_t>(duration->count());
  if (ms >= row.least && ms <= row.most) return *duration;
  auto text = [](uint64_t limit) {
    return util::format_duration(Millis(static_cast<Millis::rep>(limit)));
  };
  std::string range = row.least > 1 ? "at least " + text(row.least) : "longer than 0";
  if (row.most != UINT64_MAX) range += " and at most " + text(row.most);
  return usage(util::format("{} must be {}", shown_name(row.id), range));
}

// Whether help shows this word as the default of an option that has no such value.
bool is_default_word(const OptionRow& row, CommandId command, std::string_view word) {
  const ValueKind kind = row.kind();
  const bool is_text = kind == ValueKind::flag || kind == ValueKind::text;
  if (is_text || word.empty() || word != text_for(row, command).fallback) return false;
  const bool letters = word.find_first_of("0123456789") == word.npos;
  const auto valid = util::split(row.metavar, '|');
  return letters && std::find(valid.begin(), valid.end(), word) == valid.end();
}

}  // namespace

Result<Setting> make_setting(const OptionRow& row, std::vector<std::string> words, Source source,
                             std::string place, CommandId command) {
  if (row.id == Opt::url) words = split_urls(words);
  if (!words.empty() && is_default_word(row, command, words.back())) words.clear();
  Setting setting{std::move(words), source, std::move(place)};
  const bool has_value =
      !setting.words.empty() && !(row.value_optional && setting.words.back() == kFlagValue);
  if (!has_value) return setting;
  const std::string& word = setting.words.back();
  switch (row.kind()) {
    case ValueKind::word:
      TRY_STATUS(check_word(row, word));
      break;
    case ValueKind::number: {
      TRY(setting.value, number_in(row, word));
      break;
    }
    case ValueKind::duration: {
      TRY(setting.value, duration_in(row, word));
      break;
    }
    case ValueKind::text: {
      const std::string subject = source == Source::file ? std::string(row.name) : setting.place;
      for (const std::string& text : setting.words) TRY_STATUS(check_text(row, text, subject));
      break;
    }
    case ValueKind::flag:
      break;
  }
  return setting;
}

Result<Millis> time_left(Opt id, const std::string& text, int64_t now) {
  constexpr const char* kDates[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"};
  const time_t present = now / 1000;
  tm today{};
  localtime_r(&present, &today);
  const bool utc = text.ends_with('Z');
  const std::string digits = text.substr(0, text.size() - (utc ? 1 : 0));
  auto parse = [&](const char* form) -> std::optional<tm> {
    tm date = today;
    date.tm_sec = 0;
    const char* end = strptime(digits.c_str(), form, &date);
    tm real = date;
    timegm(&real);  // makes a day in March from the 30th of February
    const bool whole = end != nullptr && *end == '\0';
    return whole && real.tm_mday == date.tm_mday ? std::optional(date) : std::nullopt;
  };
  auto date = utc ? std::nullopt : parse("%H:%M");
  if (date) {
    const bool passed =
        std::tie(date->tm_hour, date->tm_min) <= std::tie(today.tm_hour, today.tm_min);
    if (passed) ++date->tm_mday;
  }
  for (const char* form : kDates) {
    if (!date) date = parse(form);
  }
  if (!date) {
    return usage(util::format("{}: not a time such as 18:00 or 2026-11-24T06:00:00Z: {}",
                              shown_name(id), quoted_word(text)));
  }
  date->tm_isdst = -1;
  const int64_t end = utc ? timegm(&*date) : mktime(&*date);
  if (end * 1000 <= now) {
    return usage(
        util::format("{} {} has passed; give a later time", shown_name(id), quoted_word(text)));
  }
  return Millis(end * 1000 - now);
}

std::vector<std::string> split_urls(std::string_view text) {
  std::vector<std::string> urls;
  std::string url;
  auto flush = [&] {
    if (!url.empty()) urls.push_back(std::move(url));
    url.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const bool space = kWhiteSpace.find(text[i]) != kWhiteSpace.npos;
    const bool between = space || text[i] == ',';
    if (between && (scheme_follows(text.substr(i + 1)) || (space && url.empty()))) {
      flush();
    } else {
      url += text[i];
    }
  }
  url.erase(url.find_last_not_of(kWhiteSpace) + 1);
  flush();
  return urls;
}

std::vector<std::string> split_urls(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const std::string& text : texts) {
    std::vector<std::string> urls = split_urls(text);
    if (urls.empty()) urls.push_back(text);
    all.insert(all.end(), urls.begin(), urls.end());
  }
  return all;
}

}  // namespace rlock::cli
