#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

enum class Transport { tcp, unix_socket };
enum class Role { any, master };

class AddressMemory;
class MemberRegistry;
class Secret;
class Tls;

// The address of one server, and how to log in there.
struct Server {
  Transport transport = Transport::tcp;
  std::string host;  // name or numeric address; IPv6 without brackets
  int port = 6379;
  std::string path;  // of the unix socket
  std::string user;  // empty: the default user
  std::string password;
  std::shared_ptr<Secret> secret;  // a password that may change, read at each connect; may be null
  int db = 0;
  // Checked at each connect: a former master must not be taken for the master.
  Role role = Role::any;
  Millis connect_timeout{2000};
  std::shared_ptr<const Tls> tls;  // null: plain
  // Shared by the copies, so that a further connection survives a silent name server; may be null.
  std::shared_ptr<AddressMemory> addresses;
  // Shared by all servers of a quorum, which are checked as members (redis/link/connection.hpp).
  // Null for a server that is not part of a quorum.
  std::shared_ptr<MemberRegistry> members;
  // Of `local:`: called before each connect, starts the server if none is running, and may take a
  // connect timeout. Null for a server elsewhere.
  std::function<Status(const Server&)> revive;
  // The SHA-1 of the script that a member's connection is asked about when it is made: the one that
  // releases. Empty: none.
  std::string final_script;

  // `db1:6379`, `[::1]:6379`, `/run/redis.sock`, with `/2` for another database: never a password.
  std::string label() const;
};

struct SentinelGroup {
  std::vector<Server> sentinels;
  std::string name;  // of the master
  Server master;     // all but its address
};

struct ClusterSeeds {
  std::vector<Server> seeds;
};

// What a URL names.
using ServerTarget = std::variant<Server, SentinelGroup, ClusterSeeds>;

// Whether `text` contains the server's password.
bool contains_password(const Server& server, std::string_view text);

// `h1:26379,h2:26379`.
std::string joined_labels(const std::vector<Server>& servers);

}  // namespace rlock::redis
