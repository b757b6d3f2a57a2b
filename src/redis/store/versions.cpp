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
#include "util/text.hpp"

namespace rlock::redis {
namespace {

// NAME of `prefix{NAME}:suffix`.
std::string_view name_in(std::string_view key) {
  key = key.substr(0, key.rfind("}:"));
  key.remove_prefix(std::min(key.size(), key.find('{') + 1));
  return key;
}

using Forms = std::vector<Result<bool>>;  // for each of some locks, whether it has another form

std::optional<bool> is_another(const redisReply& form) {
  return form.type == REDIS_REPLY_STRING && text_of(form) != std::to_string(lua::form);
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
        "\"{}\" is stored by a newer rlock (form {}; this one knows form {}): upgrade rlock on this "
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

std::optional<Error> other_version(std::string_view text, std::span<const std::string> keys,
                                   const Server& server) {
  const std::string_view error = util::take_until(text, ' ');
  if ((error != "FORM" && error != "UNKNOWN") || keys.empty()) return std::nullopt;
  const std::string_view name = name_in(keys.front());
  if (error == "UNKNOWN") {
    const std::string_view word = util::take_until(text, ' ');
    return of_other_version(
        util::format("\"{}\" can only be acquired by rlock {} or later, because an rlock of that "
                     "version uses it in a way that this one does not know ({})",
                     name, text, word));
  }
  return of_other_version(other_form(name, text, keys, server));
}

lock::InFlight<lock::NamesPage> with_other_forms(Link& link, const std::string& prefix,
                                                 lock::NamesPage page) {
  const std::set<std::string> in_use(page.in_use.begin(), page.in_use.end());
  std::vector<std::string> names;
  std::vector<CallItem> commands;
  for (const std::string& name : page.names) {
    if (in_use.contains(name)) continue;
    names.push_back(name);
    commands.push_back(
        {{"HGET", util::format("{}{{{}}}:meta", prefix, name), "form"}, action_on("read", name)});
  }
  if (names.empty()) return lock::ready<lock::NamesPage>(std::move(page));
  lock::InFlight<Forms> forms =
      std::make_unique<BatchCall<bool>>(link, std::move(commands), nullptr, is_another);
  return lock::then<lock::NamesPage>(
      std::move(forms),
      [page = std::move(page), names = std::move(names)](Result<Forms> read, Nanos) mutable {
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
