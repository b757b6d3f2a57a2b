#include "redis/store/versions.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "lua/scripts.hpp"
#include "redis/link/reply.hpp"
#include "redis/net/redis_cli.hpp"
#include "redis/store/call.hpp"
#include "redis/store/keys.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

using Others = std::vector<Result<bool>>;  // for each of some locks, whether it is another's

// Whether the fields of a lock's memory have another form, or rules of another version.
std::optional<bool> is_another(const redisReply& memory) {
  if (memory.type != REDIS_REPLY_ARRAY) return std::nullopt;
  for (size_t i = 0; i + 1 < memory.elements; i += 2) {
    const std::string_view field = text_of(*memory.element[i]);
    const bool other_form =
        field == "form" && text_of(*memory.element[i + 1]) != std::to_string(lua::form);
    if (other_form || field.starts_with('!')) return true;
  }
  return false;
}

// `1.10` is later than `1.9`.
std::vector<uint64_t> numbers_of(std::string_view version) {
  std::vector<uint64_t> numbers;
  for (std::string_view part : util::split(version, '.')) {
    numbers.push_back(util::parse_number<uint64_t>(part).value_or(0));
  }
  return numbers;
}

Error of_other_version(std::string text) {
  return {ErrorKind::config, std::move(text), Retry::never, Answered::no, Cause::other_version};
}

// What to do with a lock whose form is `text`. Nothing of a newer rlock must be deleted.
std::string other_form(std::string_view name, std::string_view text,
                       std::span<const std::string> keys, const Server& server) {
  const auto number = util::parse_number<uint64_t>(text);
  if (number.value_or(0) > static_cast<uint64_t>(lua::form)) {
    return util::format(
        "\"{}\" is stored by a newer rlock (form {}; this one knows form {}): upgrade rlock on "
        "this "
        "host",
        name, *number, lua::form);
  }
  std::string deletion = "DEL";
  for (const std::string& key : keys) deletion += " " + util::shell_quoted(key);
  deletion = redis_cli(server, deletion);
  if (number) {
    return util::format(
        "\"{}\" is stored by an older rlock (form {}; this one knows form {}): when no such rlock "
        "runs any more, delete its keys: {}",
        name, *number, lua::form, deletion);
  }
  constexpr size_t kShown = 20;
  return util::format(
      "\"{}\" is stored in an unknown form (\"{}\"; this rlock knows form {}): when all its runs "
      "have ended on all hosts, delete its keys: {}",
      name, text.substr(0, kShown), lua::form, deletion);
}

}  // namespace

int stored_form() {
  return lua::form;
}

std::optional<lock::NewerRules> newer_rules(std::string_view text) {
  lock::NewerRules rules;
  for (std::string_view word : util::split(text, ' ')) {
    if (word.starts_with('!')) {
      rules.words.emplace_back(word);
    } else if (rules.version.empty() || numbers_of(rules.version) < numbers_of(word)) {
      rules.version = word;
    }
  }
  if (rules.words.empty()) return std::nullopt;
  std::sort(rules.words.begin(), rules.words.end());
  return rules;
}

std::optional<Error> other_version(std::string_view text, std::span<const std::string> keys,
                                   const Server& server) {
  const std::string_view error = util::take_until(text, ' ');
  if ((error != "FORM" && error != "UNKNOWN") || keys.empty()) return std::nullopt;
  const std::string_view name = parts_of_key(keys.front()).name;
  if (error == "UNKNOWN") {
    const lock::NewerRules rules = newer_rules(text).value_or(lock::NewerRules{});
    return of_other_version(
        util::format("\"{}\" can only be acquired by rlock {} or later, because an rlock of that "
                     "version uses it in a way that this one does not know ({}): upgrade rlock on "
                     "this host",
                     name, rules.version, util::joined(rules.words, ", ")));
  }
  return of_other_version(other_form(name, text, keys, server));
}

lock::InFlight<lock::NamesPage> with_other_versions(Link& link, const std::string& prefix,
                                                    lock::NamesPage page) {
  const std::set<std::string> in_use(page.in_use.begin(), page.in_use.end());
  std::vector<std::string> names;
  std::vector<CallItem> commands;
  for (const std::string& name : page.names) {
    if (in_use.contains(name)) continue;
    names.push_back(name);
    commands.push_back({{"HGETALL", lock_key(prefix, name, "meta")}, action_on("read", name)});
  }
  if (names.empty()) return lock::ready<lock::NamesPage>(std::move(page));
  lock::InFlight<Others> others =
      std::make_unique<BatchCall<bool>>(link, std::move(commands), nullptr, is_another);
  return lock::then<lock::NamesPage>(
      std::move(others),
      [page = std::move(page), names = std::move(names)](Result<Others> read, Nanos) mutable {
        if (!read) return lock::ready<lock::NamesPage>(std::move(read).error());
        for (size_t i = 0; i < names.size(); ++i) {
          const Result<bool>& another = (*read)[i];
          // Before 1.0 the memory was a text.
          const bool text = !another && another.error().kind == ErrorKind::wrong_type;
          if (text || (another && *another)) page.in_use.push_back(names[i]);
        }
        return lock::ready<lock::NamesPage>(std::move(page));
      });
}

}  // namespace rlock::redis
