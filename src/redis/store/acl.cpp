#include "redis/store/acl.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "lua/scripts.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

using Commands = std::set<std::string>;

// Commands that are sent outside the scripts. SETNAME is optional, but each denial would add a row
// to ACL LOG.
constexpr std::string_view kDirect[] = {"evalsha", "eval",   "blpop",
                                        "scan",    "select", "client|setname"};

// Adds the command of each `call('COMMAND'` and `pcall('COMMAND'` in `text`, in lower case.
void collect(std::string_view text, Commands& out) {
  constexpr std::string_view kCall = "call('";
  for (size_t at = text.find(kCall); at != text.npos; at = text.find(kCall)) {
    text.remove_prefix(at + kCall.size());
    out.insert(util::lower_case(text.substr(0, text.find('\''))));
  }
}

std::string joined(const Commands& commands, std::string_view between) {
  return util::joined(std::vector<std::string>(commands.begin(), commands.end()), between);
}

// How a server names a line of a script.
constexpr std::string_view kScriptLine = "user_script:";

// The number of the line at which the script stopped; 0 if the server does not report it.
size_t line_number(std::string_view error) {
  size_t at = error.find(kScriptLine);
  if (at == error.npos) return 0;
  error.remove_prefix(at + kScriptLine.size());
  return util::parse_number<size_t>(util::leading_digits(error)).value_or(0);
}

// The line at which the script stopped; empty if the server does not report it.
std::string_view line_at(std::string_view error, std::string_view script) {
  size_t line = line_number(error);
  if (line == 0) return {};
  for (; line > 1 && !script.empty(); --line) util::take_until(script, '\n');
  return util::take_until(script, '\n');
}

// The origin of a line of a script, for example `release.lua:34`: a line `--@ FILE LINE` in the
// text gives the origin of the lines after it. Empty if there is no such line.
std::string source_of(size_t line, std::string_view script) {
  constexpr std::string_view kMark = "--@ ";
  std::string_view file;
  size_t next = 0;  // the number of the next line, in its file
  for (; line > 0 && !script.empty(); --line) {
    std::string_view text = util::take_until(script, '\n');
    if (line == 1 && !file.empty()) return util::format("{}:{}", file, next);
    ++next;
    if (!text.starts_with(kMark)) continue;
    text.remove_prefix(kMark.size());
    file = util::take_until(text, ' ');
    next = util::parse_number<size_t>(text).value_or(0);
  }
  return {};
}

}  // namespace

std::string glob_quoted(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::string_view("*?[]\\^").find(c) != std::string_view::npos) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string least_acl(std::string_view prefix, ServerKind kind, uint64_t replicas) {
  Commands commands(std::begin(kDirect), std::end(kDirect));
  if (kind == ServerKind::quorum_member) commands.insert({"info", "config|get", "script|exists"});
  if (kind == ServerKind::sentinel_master) commands.insert("role");
  if (kind == ServerKind::cluster_node) commands.insert({"asking", "cluster|nodes"});
  if (replicas > 0) commands.insert("wait");
  for (const lua::Script& script :
       {lua::acquire, lua::heartbeat, lua::renew, lua::release, lua::force_unlock, lua::inspect,
        lua::forget, lua::closure, lua::first}) {
    collect(script.text, commands);
  }
  // A rule cannot have a blank in a pattern.
  std::string pattern = glob_quoted(prefix);
  std::replace(pattern.begin(), pattern.end(), ' ', '?');
  return util::format("~{}* resetchannels -@all +{}", pattern, joined(commands, " +"));
}

std::string with_sources(std::string_view error, std::string_view script) {
  std::string out;
  for (size_t at = error.find(kScriptLine); at != error.npos; at = error.find(kScriptLine)) {
    const std::string_view digits = util::leading_digits(error.substr(at + kScriptLine.size()));
    const size_t end = at + kScriptLine.size() + digits.size();
    const std::string source = source_of(util::parse_number<size_t>(digits).value_or(0), script);
    out += source.empty() ? error.substr(0, end) : error.substr(0, at);
    out += source;
    error.remove_prefix(end);
  }
  return out.append(error);
}

std::string command_at(std::string_view error, std::string_view script) {
  Commands commands;
  collect(line_at(error, script), commands);
  return joined(commands, " or ");
}

std::string key_at(std::string_view error, std::string_view script,
                   std::span<const std::string> keys) {
  if (keys.size() == 1) return keys.front();
  const std::string_view line = line_at(error, script);
  for (const std::string& key : keys) {
    std::string variable = key.substr(key.rfind(':') + 1);
    std::transform(variable.begin(), variable.end(), variable.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    if (line.find(", " + variable) != line.npos) return key;
  }
  return {};
}

}  // namespace rlock::redis
