#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "util/clock.hpp"

namespace rlock::redis {

enum class Transport { tcp, unix_socket };
enum class Role { any, master };

class AddressMemory;
class MemberRegistry;
class Secret;
class Tls;

// Where one server is and how we introduce ourselves there.
struct Server {
  Transport transport = Transport::tcp;
  std::string host;  // name or numeric address; IPv6 without brackets
  int port = 6379;
  std::string path;  // of the unix socket
  std::string user;  // empty: the default user
  std::string password;
  std::shared_ptr<Secret> secret;  // where the password may change: it is asked at each connect
  int db = 0;
  // What it must be, asked at each connect: a master that was deposed must not be taken for one.
  Role role = Role::any;
  Millis connect_timeout{2000};
  std::shared_ptr<const Tls> tls;  // null: plain
  // Shared by the copies, so that a further connection survives a silent name server; may be null.
  std::shared_ptr<AddressMemory> addresses;
  // Of a quorum, shared by all of its servers: each votes once, and only when it is known to
  // remember [restart_guard]. Null for a server that stands alone.
  std::shared_ptr<MemberRegistry> members;

  // `db1:6379`, `[::1]:6379`, `/run/redis.sock`, with `/2` for another database: never a password.
  std::string label() const;
};

// Whether `text` has its password in it.
bool contains_password(const Server& server, std::string_view text);

// `h1:26379,h2:26379`.
std::string joined_labels(const std::vector<Server>& servers);

}  // namespace rlock::redis
