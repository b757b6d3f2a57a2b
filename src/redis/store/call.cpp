#include "redis/store/call.hpp"

#include <algorithm>
#include <span>

#include "redis/net/redis_cli.hpp"
#include "redis/store/versions.hpp"

namespace rlock::redis {
namespace {

// Adds the source line at which a script failed, and the command that an ACL denies or the server
// lacks, if the error does not name it.
Error script_error(std::string_view text, const lua::Script* script) {
  Error error = decode_error(text);
  if (script != nullptr) error.text = with_sources(error.text, script->text);
  const bool of_command = error.kind == ErrorKind::denied || error.kind == ErrorKind::config;
  if (!of_command || script == nullptr) return error;
  if (std::string command = command_at(text, script->text); !command.empty()) {
    error.text += ": " + command;
  }
  return error;
}

// The keys in EVALSHA or EVAL.
std::span<const std::string> keys_in(const std::vector<std::string>& words) {
  constexpr size_t kCount = 2;
  const size_t most = words.size() > kCount ? words.size() - kCount - 1 : 0;
  const size_t count = most > 0 ? util::parse_number<size_t>(words[kCount]).value_or(0) : 0;
  return std::span(words).last(most).first(std::min(most, count));
}

// `: use redis+cluster://db1:6379` for the node to which `link` leads; `kind` is `+cluster`, or
// empty for a server.
std::string other_url(const Link& link, std::string_view kind) {
  const std::string node = link.node();
  const std::string host = node.substr(0, node.find('/'));
  return util::format(": use redi{}{}://{}", link.uses_tls() ? "ss" : "s", kind,
                      host.empty() ? "HOST:PORT" : host);
}

// Adds the server to an error reply; errors of the transport name it already.
Error with_server(const Link& link, Error error) {
  error.text = util::format("{}: {}", link.node(), redact(link, std::move(error.text)));
  error.answered = Answered::yes;
  return error;
}

// Adds what to do with a key that another program has stored: rlock deletes none.
void add_key(Error& error, const Link& link, std::string_view text, const lua::Script* script,
             const std::vector<std::string>& words) {
  const std::string key = script == nullptr ? "" : key_at(text, script->text, keys_in(words));
  if (error.kind != ErrorKind::wrong_type || key.empty()) return;
  error.text = util::format(
      "the key {} is used for something else: use another NAME or --prefix, or, if no program "
      "needs the key, delete it: {}",
      key, redis_cli(link.node_server(), "DEL " + util::shell_quoted(key)));
}

}  // namespace

Error with_action(const std::string& what, Error error) {
  error.text = util::format("cannot {}: {}", what, error.text);
  return error;
}

Error refusal(const Link& link, const std::string& what, std::string_view text,
              const lua::Script* script, const std::vector<std::string>& words) {
  Error error = script_error(text, script);
  if (error.cause == Cause::other_node) error.text += other_url(link, "+cluster");
  if (error.cause == Cause::other_kind) error.text += other_url(link, "");
  add_key(error, link, text, script, words);
  if (auto other = script != nullptr ? other_version(text, keys_in(words), link.node_server())
                                     : std::nullopt) {
    error = *std::move(other);
  }
  return with_action(what, with_server(link, std::move(error)));
}

Error unexpected_reply(const Link& link, const std::string& what) {
  return with_action(
      what, with_server(link, {ErrorKind::unavailable, "unexpected reply to a command of rlock"}));
}

bool is_noscript(const redisReply& reply) {
  return is_error(reply) && text_of(reply).starts_with("NOSCRIPT");
}

bool is_demoted(const redisReply& reply) {
  if (!is_error(reply)) return false;
  for (std::string_view part : {"READONLY", "UNBLOCKED", "MASTERDOWN"}) {
    if (text_of(reply).find(part) != std::string_view::npos) return true;
  }
  return false;
}

bool has_wakes(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements < 4) return false;
  return text_of(*reply.element[0]) == "wakes";
}

std::vector<std::string> script_call(const lua::Script& script,
                                     const std::vector<std::string>& keys,
                                     const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"EVALSHA", std::string(script.sha1), std::to_string(keys.size())};
  words.insert(words.end(), keys.begin(), keys.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

std::vector<std::string> wake_call(const std::vector<std::string>& words, const redisReply& reply) {
  constexpr size_t kKeyCount = 2;
  constexpr size_t kFirstKey = 3;
  constexpr size_t kFirstOwner = 2;
  auto first = words.begin() + kFirstKey;
  std::vector<std::string> keys(first, first + std::stoi(words[kKeyCount]));
  std::string base = keys.front().substr(0, keys.front().rfind(':') + 1);
  std::vector<std::string> arguments;
  for (size_t i = kFirstOwner; i + 1 < reply.elements; i += 2) {
    const std::string owner(text_of(*reply.element[i]));
    const std::string event(text_of(*reply.element[i + 1]));
    if (owner.empty() || event.empty()) continue;
    keys.push_back(base + "wake:" + owner);
    arguments.push_back(owner);
    arguments.push_back(event);
  }
  return script_call(lua::wake, keys, arguments);
}

}  // namespace rlock::redis
