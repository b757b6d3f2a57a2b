#include "redis/set_up.hpp"

#include <string_view>

#include "redis/restart_guard.hpp"

namespace rlock::redis {
namespace {

using util::Error;
using util::ErrorKind;
using util::Retry;

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// `WRONGPASS`: the one word of a refused AUTH that is safe to show.
std::string code_of(std::string_view text) {
  std::string_view code = text.substr(0, text.find(' '));
  return code.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos
             ? std::string(code)
             : "an error";
}

Error denied(const Server& server, std::string_view why) {
  return {ErrorKind::denied, server.label() + " refused us: " + std::string(why)};
}

Error not_ready(const Server& server, std::string_view why) {
  return {ErrorKind::unavailable, server.label() + ": " + std::string(why), Retry::later};
}

// Answers that may come to whatever is sent first.
std::optional<Error> turned_away(std::string_view text, const Server& server) {
  // The second is what an unauthenticated connection hears for a command of more than ten words.
  if (text.starts_with("NOAUTH") || has(text, "unauthenticated")) {
    return denied(server, "it wants a password (NOAUTH)");
  }
  if (text.starts_with("DENIED")) return denied(server, "it is in protected mode (DENIED)");
  if (has(text, "max number of clients")) {
    return not_ready(server, "it has no room for another client (maxclients)");
  }
  return std::nullopt;
}

bool starting_up(std::string_view text) {
  return text.starts_with("LOADING") || text.starts_with("MASTERDOWN") || text.starts_with("BUSY");
}

bool starting_up(const redisReply& reply) {
  return reply.type == REDIS_REPLY_ERROR &&
         starting_up(std::string_view(reply.str, static_cast<size_t>(reply.len)));
}

Error auth_refused(std::string_view text, const Server& server) {
  if (text.starts_with("WRONGPASS") || has(text, "invalid password")) {
    return denied(server, "wrong user name or password (WRONGPASS)");
  }
  if (has(text, "without any password configured") || has(text, "no password is set")) {
    return denied(server, "a password was given, but its default user has none");
  }
  return denied(server, "AUTH was answered with " + code_of(text));
}

Error select_refused(std::string_view text, const Server& server) {
  if (text.starts_with("NOPERM")) return denied(server, "this user may not SELECT (NOPERM)");
  const std::string db = std::to_string(server.db);
  if (has(text, "unknown command") || has(text, "not allowed in cluster mode")) {
    return {ErrorKind::config,
            server.label() + ": it has one database alone: leave /" + db + " out of the URL"};
  }
  constexpr size_t kLongest = 300;
  bool secret = !server.password.empty() && has(text, server.password);
  std::string words = secret ? code_of(text) : std::string(text.substr(0, kLongest));
  return {ErrorKind::unavailable, server.label() + ": no such database " + db + " (" + words + ")"};
}

bool is_master(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements == 0) return false;
  const redisReply& role = *reply.element[0];
  return role.type == REDIS_REPLY_STRING &&
         std::string_view(role.str, static_cast<size_t>(role.len)) == "master";
}

}  // namespace

const char* word(SetUp step) {
  switch (step) {
    case SetUp::auth:
      return "AUTH";
    case SetUp::select:
      return "SELECT";
    case SetUp::role:
      return "ROLE";
    case SetUp::set_name:
      return "CLIENT SETNAME";
    case SetUp::ping:
      return "PING";
    case SetUp::durability:
      return "CONFIG GET";
    case SetUp::uptime:
      return "INFO";
  }
  return "set-up";
}

std::vector<SetUp> set_up_steps(const Server& server, Naming naming) {
  std::vector<SetUp> steps;
  if (!server.user.empty() || !server.password.empty()) steps.push_back(SetUp::auth);
  if (server.db != 0) steps.push_back(SetUp::select);
  if (server.role == Role::master) steps.push_back(SetUp::role);
  steps.push_back(naming == Naming::wanted ? SetUp::set_name : SetUp::ping);
  if (server.members != nullptr) {
    steps.push_back(SetUp::durability);
    steps.push_back(SetUp::uptime);
  }
  return steps;
}

std::string encode(SetUp step, const Server& server) {
  switch (step) {
    case SetUp::auth:
      if (server.user.empty()) return encode({"AUTH", server.password});
      return encode({"AUTH", server.user, server.password});
    case SetUp::select:
      return encode({"SELECT", std::to_string(server.db)});
    case SetUp::role:
      return encode({"ROLE"});
    case SetUp::durability:
      return encode({"CONFIG", "GET", "append*"});
    case SetUp::uptime:
      return encode({"INFO", "server"});
    case SetUp::ping:
      return encode({"PING"});
    case SetUp::set_name:
      break;
  }
  return encode({"CLIENT", "SETNAME", "rlock"});
}

std::optional<Error> verdict(SetUp step, const redisReply& reply, const Server& server,
                             SetUpNotes& notes) {
  if (step == SetUp::durability) notes.synchronous = writes_synchronously(reply);
  if (step == SetUp::uptime && !starting_up(reply)) {
    return vote_refused(reply, notes.synchronous, server);
  }
  if (reply.type != REDIS_REPLY_ERROR) {
    if (step != SetUp::role || is_master(reply)) return std::nullopt;
    return not_ready(server, "it is a replica, not the master");
  }
  std::string_view text(reply.str, static_cast<size_t>(reply.len));
  if (auto error = turned_away(text, server)) return error;
  // A user may lack CLIENT or ROLE; what is not ready, or a replica, refuses the real command too.
  if (step != SetUp::auth && step != SetUp::select && step != SetUp::uptime) return std::nullopt;
  if (starting_up(text)) return not_ready(server, code_of(text));
  return step == SetUp::auth ? auth_refused(text, server) : select_refused(text, server);
}

}  // namespace rlock::redis
