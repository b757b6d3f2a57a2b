#include "cli/output/record.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/output/messages.hpp"
#include "util/fd.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongestCommand = 200;
constexpr size_t kLongestText = 1000;
constexpr size_t kMostHolds = 8;
// Ten times as much as rlock writes; a longer record is not worth parsing.
constexpr size_t kLongestRecord = 32 * 1024;

struct TextField {
  const char* key;
  std::optional<std::string> Record::*value;
};
constexpr TextField kTexts[] = {{"host", &Record::host},
                                {"user", &Record::user},
                                {"command", &Record::command},
                                {"reason", &Record::reason},
                                {"at", &Record::at},
                                {"asked", &Record::asked},
                                {"ending", &Record::ending},
                                {"traceparent", &Record::traceparent},
                                {"processes", &Record::processes},
                                {"moved", &Record::moved}};

// Parses an object; empty if the bytes are not one. Skips what is nested deeper than any record of
// rlock, because the library writes JSON by recursion.
Json parsed(std::string_view bytes) {
  if (bytes.size() > kLongestRecord) return Json::object();
  auto is_shallow = [](int depth, Json::parse_event_t, const Json&) { return depth < 8; };
  Json json = Json::parse(util::to_utf8(bytes), is_shallow, false);
  return json.is_object() ? json : Json::object();
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::string> text_at(const Json& json, const char* key) {
  auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::optional<int64_t> pid_at(const Json& json) {
  auto found = json.find("pid");
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  auto pid = found->get<int64_t>();
  return pid > 0 && pid <= INT32_MAX ? std::optional(pid) : std::nullopt;
}

std::optional<uint64_t> number_at(const Json& json, const char* key) {
  auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

Millis urgent_at(const Json& json) {
  return Millis(std::min<uint64_t>(number_at(json, "urgent_ms").value_or(0), INT32_MAX));
}

std::vector<Hold> holds_at(const Json& json) {
  std::vector<Hold> holds;
  auto found = json.find("holds");
  if (found == json.end() || !found->is_array()) return holds;
  for (const Json& one : *found) {
    if (holds.size() == kMostHolds || !one.is_object()) break;
    auto name = text_at(one, "name");
    auto owner = text_at(one, "owner");
    if (name && owner) holds.push_back({*std::move(name), *std::move(owner)});
  }
  return holds;
}

// The longest front of `text` with at most `limit` bytes that does not split a character.
std::string cut_at_character(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end));
}

// Makes `user:***` from `user:password`. A lone word may be an access token and is masked as a
// whole, as is a user whose password marks a token; but over ssh a lone word is a user name.
std::string masked(std::string_view userinfo, bool ssh) {
  const size_t end = userinfo.find_first_of(":/?#@");
  if (end == userinfo.npos) return ssh ? std::string(userinfo) : "***";
  const std::string_view password = userinfo.substr(end + 1);
  const bool token = userinfo[end] != ':' || password.empty() || password == "x-oauth-basic";
  return token ? "***" : std::string(userinfo.substr(0, end + 1)) + "***";
}

// A URL may have passwords after its host, such as `sentinel_password=`.
std::string without_parameters(std::string_view url) {
  constexpr std::string_view kKey = "password=";
  std::string out;
  for (size_t key; (key = url.find(kKey)) != url.npos;) {
    const size_t value = key + kKey.size();
    out += std::string(url.substr(0, value)) + "***";
    url.remove_prefix(std::min(url.find('&', value), url.size()));
  }
  return out + std::string(url);
}

// Masks passwords, because others can read the command in `status` and `history`. A password may
// contain an unescaped / or @, so everything before the last @ of the word is masked, which is
// rather too much than a part of the password. Returns at least the first `most` bytes.
std::string without_passwords(std::string_view text, size_t most) {
  constexpr std::string_view kScheme = "://";
  std::string out;
  size_t at = text.find(kScheme);
  while (at != text.npos && out.size() + at < most) {
    out += text.substr(0, at + kScheme.size());
    text.remove_prefix(at + kScheme.size());
    std::string_view word = text.substr(0, text.find_first_of(" \t\n"));
    text.remove_prefix(word.size());
    if (const size_t end = word.rfind('@'); end != word.npos) {
      out += masked(word.substr(0, end), out.ends_with("ssh://"));
      word.remove_prefix(end);
    }
    out += without_parameters(word);
    at = text.find(kScheme);
  }
  if (out.size() < most) out += text.substr(0, most - out.size());
  return out;
}

// A secret follows each of them.
constexpr std::string_view kLabels[] = {"--password=", "--password ", "--token=",  "--token ",
                                        "--secret=",   "--secret ",   "PASSWORD=", "_TOKEN=",
                                        "_SECRET=",    "_KEY=",       "Bearer ",   "bearer ",
                                        "github_pat_", "ghp_",        "glpat-"};

// Whether the argument after this one is a secret.
bool announces_secret(std::string_view argument) {
  return std::any_of(std::begin(kLabels), std::end(kLabels), [&](std::string_view label) {
    return label.ends_with(' ') && label.substr(0, label.size() - 1) == argument;
  });
}

// Masks what follows a label, up to the end of its word in the text of a shell. An argument that
// begins with an option of the labels contains nothing else.
std::string without_secrets(std::string_view text) {
  std::string out;
  while (true) {
    size_t value = text.npos;
    for (const std::string_view label : kLabels) {
      const size_t at = text.find(label);
      if (at != text.npos) value = std::min(value, at + label.size());
    }
    if (value == text.npos) return out + std::string(text);
    const bool whole =
        out.empty() && text.starts_with("--") && text.find_first_of(" \t\n=") + 1 == value;
    out += std::string(text.substr(0, value)) + "***";
    text.remove_prefix(value);
    const bool quoted = text.starts_with('\'') || text.starts_with('"');
    const size_t end = quoted ? text.find(text.front(), 1) : text.find_first_of(" \t\n'\"");
    text.remove_prefix(whole || end == text.npos ? text.size() : end + (quoted ? 1 : 0));
  }
}

// The name of the effective user: from /etc/passwd, else $LOGNAME or $USER, else the number.
std::string user_name() {
  std::string name = util::name_in_passwd(geteuid());
  if (!name.empty()) return name;
  for (const char* variable : {"LOGNAME", "USER"}) {
    const char* value = getenv(variable);
    if (value != nullptr && *value != '\0') return value;
  }
  return std::to_string(geteuid());
}

std::optional<std::string> host_name() {
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) != 0) return std::nullopt;
  return util::to_utf8(host);
}

}  // namespace

std::string encode_record(const Record& record) {
  Json json = Json::object();
  for (const auto& [key, value] : kTexts) {
    if (const auto& text = record.*value) json[key] = cut_at_character(*text, kLongestText);
  }
  if (record.pid) json["pid"] = *record.pid;
  if (!record.renews) json["renews"] = false;
  if (record.supersede) json["supersede"] = *record.supersede;
  if (record.urgent > Millis(0)) json["urgent_ms"] = record.urgent.count();
  for (size_t i = 0; i < std::min(record.holds.size(), kMostHolds); ++i) {
    json["holds"].push_back({{"name", record.holds[i].name}, {"owner", record.holds[i].owner}});
  }
  return dumped(json);
}

std::string moved_record(std::string_view bytes, std::string_view moved) {
  Json json = parsed(bytes);
  json["moved"] = cut_at_character(moved, kLongestText);
  return dumped(json);
}

Record decode_record(std::string_view bytes) {
  const Json json = parsed(bytes);
  Record record;
  for (const auto& [key, value] : kTexts) record.*value = text_at(json, key);
  if (record.traceparent) record.traceparent = parse_traceparent(*record.traceparent);
  record.pid = pid_at(json);
  const auto renews = json.find("renews");
  record.renews = renews == json.end() || *renews != Json(false);
  record.holds = holds_at(json);
  record.urgent = urgent_at(json);
  record.supersede = number_at(json, "supersede");
  return record;
}

std::optional<std::string> parse_traceparent(std::string_view text) {
  constexpr std::string_view kForm = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::string_view front = text.substr(0, kForm.size()), later = text.substr(front.size());
  auto fits = [&](char c, char form) {
    return form == '-' ? c == '-' : kDigits.find(c) != kDigits.npos;
  };
  if (!std::equal(front.begin(), front.end(), kForm.begin(), kForm.end(), fits)) {
    return std::nullopt;
  }
  const std::string_view version = front.substr(0, 2);
  if (version == "ff") return std::nullopt;
  if (!later.empty() && (version == "00" || later.front() != '-')) return std::nullopt;
  auto is_zero = [](std::string_view id) { return id.find_first_not_of('0') == id.npos; };
  if (is_zero(front.substr(3, 32)) || is_zero(front.substr(36, 16))) return std::nullopt;
  return std::string(front);
}

std::string offset_text(long offset) {
  const long minutes = std::abs(offset) / 60;
  return util::format("{}{:02}:{:02}", offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

std::string local_time(time_t seconds) {
  tm date{};
  tzset();
  char text[32];
  if (localtime_r(&seconds, &date) == nullptr) return {};
  const size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &date);
  return std::string(text, length) + offset_text(date.tm_gmtoff);
}

std::optional<LocalTime> parse_local_time(std::string_view text) {
  constexpr std::string_view kForm = "2026-11-27T03:00:00+01:00";
  if (text.size() != kForm.size()) return std::nullopt;
  tm date{};
  const std::string whole(text);
  const char* end = strptime(whole.c_str(), "%Y-%m-%dT%H:%M:%S%z", &date);
  if (end == nullptr || *end != '\0') return std::nullopt;
  const long offset = date.tm_gmtoff;
  return LocalTime{timegm(&date) - offset, offset};
}

Record own_record() {
  Record record;
  record.host = host_name();
  record.user = util::to_utf8(user_name());
  record.pid = getpid();
  return record;
}

std::optional<std::string> own_processes() {
  constexpr size_t kEnough = 8;  // digits
  struct stat space {};
  const std::string boot = util::boot_id();
  if (boot.size() < kEnough || stat("/proc/self/ns/pid", &space) != 0) return std::nullopt;
  return util::format("{}:{}", boot.substr(0, kEnough), space.st_ino);
}

std::string pid_and_place(const Record& record) {
  constexpr std::string_view kOfTheHost = ":4026531836";  // include/linux/proc_ns.h
  const bool plain = !record.processes || record.processes->ends_with(kOfTheHost) ||
                     record.processes == own_processes();
  return std::to_string(*record.pid) + (plain ? "" : " of its pid namespace");
}

bool is_gone(const Record& record) {
  static const auto kOwn = own_processes();  // a listing may have thousands of records
  if (!record.pid || !record.processes || record.processes != kOwn) return false;
  if (record.host != host_name()) return false;
  const auto pid = static_cast<pid_t>(*record.pid);
  if (kill(pid, 0) != 0 && errno == ESRCH) return true;
  const auto stat = util::read_stat(pid);
  return stat && !stat->alive();
}

std::string operator_note(const std::optional<std::string>& reason) {
  Record note = own_record();
  note.pid.reset();
  note.at = rfc3339(wall_clock());
  if (reason) note.reason = util::to_utf8(*reason);
  return encode_record(note);
}

std::vector<std::string> command_line_of(pid_t pid) {
  util::Fd file(open(util::format("/proc/{}/cmdline", pid).c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];
  ssize_t length = file ? read(file.get(), text, sizeof text) : -1;
  std::vector<std::string> words;
  std::string_view rest(text, length > 0 ? static_cast<size_t>(length) : 0);
  while (!rest.empty()) words.emplace_back(util::take_until(rest, '\0'));
  return words;
}

std::string command_text(const std::vector<std::string>& argv) {
  std::string text;
  bool is_secret = false;
  for (const std::string& word : argv) {
    if (!text.empty()) text += ' ';
    // The text is shortened below, so this does not copy a megabyte to keep 200 bytes.
    const std::string safe = without_passwords(word, kLongestCommand + 1);
    const auto part = std::string_view(safe).substr(0, kLongestCommand + 1);
    text += util::shell_quoted(is_secret ? "***" : without_secrets(part));
    is_secret = announces_secret(word);
    if (text.size() > kLongestCommand) break;
  }
  return cut_at_character(util::to_utf8(text), kLongestCommand);
}

std::string who_text(const Record& record) {
  std::string who = record.user.value_or("");
  if (record.host) util::append(who, "@", *record.host);
  return util::printable(who);
}

std::string note_text(std::string_view note) {
  Record record = decode_record(note);
  std::string who = who_text(record);
  const std::string by = who.empty() ? "" : "by " + util::shortened(who, 60);
  if (!record.reason || record.reason->empty()) return by;
  return util::format("{}{}{}", by, by.empty() ? "" : ": ",
                      util::shortened(util::printable(*record.reason), 200));
}

}  // namespace rlock::cli
