#include "redis/store/versions.hpp"

#include <algorithm>

#include "lua/scripts.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

constexpr std::string_view kOtherForm = "is stored by another version of rlock";
constexpr std::string_view kNeedsVersion = "can only be acquired by rlock";

// NAME of `prefix{NAME}:suffix`.
std::string_view name_in(std::string_view key) {
  key = key.substr(0, key.rfind("}:"));
  key.remove_prefix(std::min(key.size(), key.find('{') + 1));
  return key;
}

// As a word of a shell.
std::string quoted(std::string_view key) {
  std::string word = "'";
  for (const char c : key) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

}  // namespace

int stored_form() {
  return lua::form;
}

std::optional<Error> other_version(std::string_view text, std::span<const std::string> keys) {
  const std::string_view error = util::take_until(text, ' ');
  if ((error != "FORM" && error != "UNKNOWN") || keys.empty()) return std::nullopt;
  const std::string_view name = name_in(keys.front());
  if (error == "UNKNOWN") {
    const std::string_view word = util::take_until(text, ' ');
    return Error{
        ErrorKind::config,
        util::format("\"{}\" {} {} or later, because an rlock of that version uses it in a "
                     "way that this one does not know ({})",
                     name, kNeedsVersion, text, word)};
  }
  std::string deletion = "redis-cli DEL";
  for (const std::string& key : keys) deletion += " " + quoted(key);
  return Error{
      ErrorKind::config,
      util::format("\"{}\" {} (form {}; this one has form {}): when all its runs have ended "
                   "on all hosts, delete its keys: {}",
                   name, kOtherForm, text, lua::form, deletion)};
}

bool is_of_other_version(const Error& error) {
  const auto has = [&](std::string_view part) { return error.text.find(part) != error.text.npos; };
  return error.kind == ErrorKind::config && (has(kOtherForm) || has(kNeedsVersion));
}

}  // namespace rlock::redis
