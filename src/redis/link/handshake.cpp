#include "redis/link/handshake.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "lock/quorum/quorum.hpp"
#include "lock/timing.hpp"
#include "redis/link/reply.hpp"
#include "util/clock.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::redis {

static_assert(std::chrono::seconds(kRestartGuardSeconds) == timing::kLongestQuorumLease,
              "a shorter time lets a server count that lost a lease, a longer one helps nobody");

namespace {

// A server measures its uptime by its wall clock: negative where that was set back since it
// started.
std::optional<uint64_t> uptime_in(const InfoFields& info) {
  auto seconds = util::parse_number<int64_t>(info_field(info, "uptime_in_seconds"));
  if (!seconds) return std::nullopt;
  return static_cast<uint64_t>(std::max<int64_t>(0, *seconds));
}

std::optional<Error> check_duplicate(const InfoFields& info, const Server& server) {
  const std::string run_id = info_field(info, "run_id");
  if (run_id.empty() || server.members == nullptr) return std::nullopt;
  auto other = server.members->add_member(server.label(), run_id);
  if (!other) return std::nullopt;
  return Error{ErrorKind::usage, server.label() + " is the same server as " + *other +
                                     "; a quorum needs independent servers"};
}

std::optional<Error> check_uptime(const InfoFields& info, const Server& server) {
  auto uptime = uptime_in(info);
  if (!uptime) {
    return Error{
        ErrorKind::denied,
        server.label() + " is not counted: its uptime is unknown (INFO denied or incomplete)"};
  }
  if (*uptime >= kRestartGuardSeconds) return std::nullopt;
  // The uptime is rounded down to whole seconds, so this is late enough. Rounded up again, servers
  // that started together have the same text.
  const int64_t counted = wall_seconds() + static_cast<int64_t>(kRestartGuardSeconds - *uptime);
  const std::string latest = util::format_utc((counted + 9) / 10 * 10);
  return Error{ErrorKind::unavailable,
               server.label() + ": not counted until it has run for " +
                   std::to_string(kRestartGuardSeconds) + " s, at the latest by " + latest +
                   ", because it may have lost locks",
               Retry::later};
}

}  // namespace

std::optional<std::string> MemberRegistry::add_member(const std::string& label,
                                                      const std::string& run_id) {
  std::lock_guard lock(mutex_);
  for (const auto& [other, its_id] : run_ids_) {
    if (other != label && its_id == run_id) return other;
  }
  run_ids_[label] = run_id;
  return std::nullopt;
}

void AppendOnly::read(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY) return;
  for (size_t i = 0; i + 1 < reply.elements; i += 2) {
    std::string_view key = text_of(*reply.element[i]);
    std::string_view value = text_of(*reply.element[i + 1]);
    if (key == "appendonly") enabled = value == "yes";
    if (key == "appendfsync") syncs_always = value == "always";
  }
}

std::optional<Error> check_member(const redisReply& reply, Durability durability,
                                  const Server& server) {
  const InfoFields info = read_info(text_of(reply));
  if (auto duplicate = check_duplicate(info, server)) return duplicate;
  if (durability == Durability::every_write) return std::nullopt;
  return check_uptime(info, server);
}

namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// `WRONGPASS`: the only word of a refused AUTH that is safe to show.
std::string code_of(std::string_view text) {
  std::string_view code = text.substr(0, text.find(' '));
  return code.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos
             ? std::string(code)
             : "an error";
}

Error denied(const Server& server, std::string_view why) {
  return {ErrorKind::denied, server.label() + " denied access: " + std::string(why)};
}

Error not_ready(const Server& server, std::string_view why) {
  return {ErrorKind::unavailable, server.label() + ": " + std::string(why), Retry::later};
}

// Errors that may answer any command that is sent first.
std::optional<Error> connection_refusal(std::string_view text, const Server& server) {
  // "unauthenticated" answers a command of more than ten words before AUTH.
  if (text.starts_with("NOAUTH") || has(text, "unauthenticated")) {
    return denied(server, "it requires a password (NOAUTH)");
  }
  if (text.starts_with("DENIED")) return denied(server, "it is in protected mode (DENIED)");
  if (has(text, "max number of clients")) {
    return not_ready(server, "it has too many clients (maxclients)");
  }
  return std::nullopt;
}

bool starting_up(std::string_view text) {
  return text.starts_with("LOADING") || text.starts_with("MASTERDOWN") || text.starts_with("BUSY");
}

bool starting_up(const redisReply& reply) {
  return is_error(reply) && starting_up(text_of(reply));
}

Error auth_refused(std::string_view text, const Server& server) {
  if (text.starts_with("WRONGPASS") || has(text, "invalid password")) {
    return denied(server, "wrong user name or password (WRONGPASS)");
  }
  if (has(text, "without any password configured") || has(text, "no password is set")) {
    return denied(server, "a password was given, but the default user has no password");
  }
  return denied(server, "AUTH failed with " + code_of(text));
}

Error select_refused(std::string_view text, const Server& server) {
  if (text.starts_with("NOPERM")) return denied(server, "this user may not run SELECT (NOPERM)");
  const std::string db = std::to_string(server.db);
  if (has(text, "unknown command") || has(text, "not allowed in cluster mode")) {
    return {ErrorKind::config, server.label() +
                                   ": the server has only one database; remove database " + db +
                                   " from the URL"};
  }
  constexpr size_t kLongest = 300;
  bool secret = !server.password.empty() && has(text, server.password);
  std::string reason = secret ? code_of(text) : std::string(text.substr(0, kLongest));
  return {ErrorKind::unavailable,
          server.label() + ": cannot select database " + db + " (" + reason + ")"};
}

bool is_master(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements == 0) return false;
  return text_of(*reply.element[0]) == "master";
}

std::string encode(HandshakeStep step, const Server& server) {
  switch (step) {
    case HandshakeStep::auth:
      if (server.user.empty()) return redis::encode({"AUTH", server.password});
      return redis::encode({"AUTH", server.user, server.password});
    case HandshakeStep::select:
      return redis::encode({"SELECT", std::to_string(server.db)});
    case HandshakeStep::role:
      return redis::encode({"ROLE"});
    case HandshakeStep::script:
      return redis::encode({"SCRIPT", "EXISTS", server.final_script});
    case HandshakeStep::append_only:
      return redis::encode({"CONFIG", "GET", "appendonly"});
    case HandshakeStep::sync:
      return redis::encode({"CONFIG", "GET", "appendfsync"});
    case HandshakeStep::uptime:
      return redis::encode({"INFO", "server"});
    case HandshakeStep::ping:
      return redis::encode({"PING"});
    case HandshakeStep::set_name:
      break;
  }
  return redis::encode({"CLIENT", "SETNAME", "rlock"});
}

// The answer to SCRIPT EXISTS of one script; unknown where that was refused.
bool is_known(const redisReply& reply) {
  return reply.type == REDIS_REPLY_ARRAY && reply.elements == 1 && reply.element[0]->integer == 1;
}

// The answer to any step but the checks of a quorum member.
std::optional<Error> check_answer(HandshakeStep step, const redisReply& reply,
                                  const Server& server) {
  if (!is_error(reply)) {
    if (step != HandshakeStep::role || is_master(reply)) return std::nullopt;
    return not_ready(server, "it is a replica, not the master");
  }
  const std::string_view text = text_of(reply);
  if (auto error = connection_refusal(text, server)) return error;
  // A user may lack CLIENT or ROLE; a server that is not ready, or a replica, refuses the command
  // that follows, too.
  const bool required =
      step == HandshakeStep::auth || step == HandshakeStep::select || step == HandshakeStep::uptime;
  if (!required) return std::nullopt;
  if (starting_up(text)) return not_ready(server, code_of(text));
  return step == HandshakeStep::auth ? auth_refused(text, server) : select_refused(text, server);
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
    case HandshakeStep::script:
      return "SCRIPT EXISTS";
    case HandshakeStep::append_only:
    case HandshakeStep::sync:
      return "CONFIG GET";
    case HandshakeStep::uptime:
      return "INFO";
  }
  return "set-up";
}

Handshake::Handshake(const Server& server, ClientNaming naming) {
  if (!server.user.empty() || !server.password.empty()) steps_.push_back(HandshakeStep::auth);
  if (server.db != 0) steps_.push_back(HandshakeStep::select);
  if (server.role == Role::master) steps_.push_back(HandshakeStep::role);
  steps_.push_back(naming == ClientNaming::send ? HandshakeStep::set_name : HandshakeStep::ping);
  if (server.members != nullptr) {
    if (!server.final_script.empty()) steps_.push_back(HandshakeStep::script);
    steps_.push_back(HandshakeStep::append_only);
    steps_.push_back(HandshakeStep::sync);
    steps_.push_back(HandshakeStep::uptime);
  }
}

std::string Handshake::request(const Server& server) const {
  std::string text;
  for (HandshakeStep step : steps_) text += encode(step, server);
  return text;
}

// A server carries out what follows a refused step all the same: as another user, in another
// database, on a replica, or as a member of a quorum that lost its leases.
bool Handshake::precedes(FirstCommand command) const {
  return std::any_of(steps_.begin(), steps_.end(), [command](HandshakeStep step) {
    switch (step) {
      case HandshakeStep::uptime:
        return command == FirstCommand::normal;
      case HandshakeStep::auth:
      case HandshakeStep::select:
      case HandshakeStep::role:
        return true;
      default:
        return false;
    }
  });
}

std::optional<Error> Handshake::read(const redisReply& reply, const Server& server) {
  const HandshakeStep step = steps_[next_++];
  if (step == HandshakeStep::append_only || step == HandshakeStep::sync) append_only_.read(reply);
  if (step == HandshakeStep::script) knows_final_script_ = is_known(reply);
  if (step == HandshakeStep::uptime && !starting_up(reply)) {
    return check_member(reply, append_only_.durability(), server);
  }
  return check_answer(step, reply, server);
}

}  // namespace rlock::redis
