#include "redis/link/handshake.hpp"

#include <string_view>

#include "redis/link/voting.hpp"

namespace rlock::redis {
namespace {

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
std::optional<Error> connection_refusal(std::string_view text, const Server& server) {
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

const char* to_string(HandshakeStep step) {
  switch (step) {
    case HandshakeStep::auth:
      return "AUTH";
    case HandshakeStep::select:
      return "SELECT";
    case HandshakeStep::role:
      return "ROLE";
    case HandshakeStep::set_name:
      return "CLIENT SETNAME";
    case HandshakeStep::ping:
      return "PING";
    case HandshakeStep::durability:
      return "CONFIG GET";
    case HandshakeStep::uptime:
      return "INFO";
  }
  return "set-up";
}

std::vector<HandshakeStep> handshake_steps(const Server& server, ClientNaming naming) {
  std::vector<HandshakeStep> steps;
  if (!server.user.empty() || !server.password.empty()) steps.push_back(HandshakeStep::auth);
  if (server.db != 0) steps.push_back(HandshakeStep::select);
  if (server.role == Role::master) steps.push_back(HandshakeStep::role);
  steps.push_back(naming == ClientNaming::wanted ? HandshakeStep::set_name : HandshakeStep::ping);
  if (server.members != nullptr) {
    steps.push_back(HandshakeStep::durability);
    steps.push_back(HandshakeStep::uptime);
  }
  return steps;
}

std::string encode(HandshakeStep step, const Server& server) {
  switch (step) {
    case HandshakeStep::auth:
      if (server.user.empty()) return encode({"AUTH", server.password});
      return encode({"AUTH", server.user, server.password});
    case HandshakeStep::select:
      return encode({"SELECT", std::to_string(server.db)});
    case HandshakeStep::role:
      return encode({"ROLE"});
    case HandshakeStep::durability:
      return encode({"CONFIG", "GET", "append*"});
    case HandshakeStep::uptime:
      return encode({"INFO", "server"});
    case HandshakeStep::ping:
      return encode({"PING"});
    case HandshakeStep::set_name:
      break;
  }
  return encode({"CLIENT", "SETNAME", "rlock"});
}

std::optional<Error> check_step(HandshakeStep step, const redisReply& reply, const Server& server,
                                HandshakeState& notes) {
  if (step == HandshakeStep::durability) notes.synchronous = writes_synchronously(reply);
  if (step == HandshakeStep::uptime && !starting_up(reply)) {
    return check_vote(reply, notes.synchronous, server);
  }
  if (reply.type != REDIS_REPLY_ERROR) {
    if (step != HandshakeStep::role || is_master(reply)) return std::nullopt;
    return not_ready(server, "it is a replica, not the master");
  }
  std::string_view text(reply.str, static_cast<size_t>(reply.len));
  if (auto error = connection_refusal(text, server)) return error;
  // A user may lack CLIENT or ROLE; what is not ready, or a replica, refuses the real command too.
  if (step != HandshakeStep::auth && step != HandshakeStep::select && step != HandshakeStep::uptime)
    return std::nullopt;
  if (starting_up(text)) return not_ready(server, code_of(text));
  return step == HandshakeStep::auth ? auth_refused(text, server) : select_refused(text, server);
}

}  // namespace rlock::redis
