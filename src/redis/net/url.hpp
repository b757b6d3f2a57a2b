#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

enum class Security { plain, tls };
enum class Role { any, master };

class AddressMemory;
class Admission;
class MemberRegistry;
class Secret;
class Tls;

// The address of a server in a URL.
struct Endpoint {
  std::string host;  // name or numeric address; IPv6 without brackets
  int port = 6379;
  std::string path;  // of the unix socket; empty for TCP
  Security security = Security::plain;
  int db = 0;

  bool is_unix() const { return !path.empty(); }
  // `db1:6379`, `[::1]:6379`, `/run/redis.sock`, with `/2` for another database: never a password.
  std::string label() const;
};

// The user and password with which rlock logs in.
struct Login {
  std::string user;  // empty: the default user
  std::string password;
  std::shared_ptr<Secret> secret;  // a password that may change, read at each connect; may be null
  std::string unused;              // why a password that the user gave is not sent; may be empty
};

// The words before `://`, for all URLs but local:.
std::vector<std::string_view> url_schemes();

struct Server;

// What a connection does and checks before it is used.
struct Policy {
  // Checked at each connect, because a former master must not pass for the master.
  Role role = Role::any;
  // Shared by all servers of a quorum, which are checked as members (redis/link/connection.hpp).
  // Null for a server outside a quorum.
  std::shared_ptr<MemberRegistry> members;
  // The SHA-1 of the release script; a new connection to a member asks whether the server knows it.
  // Empty if it does not ask.
  std::string final_script;
  // For `local:`: called before each connect, starts the server if none is running, and may take a
  // connect timeout. Null for a server elsewhere.
  std::function<Status(const Server&)> revive;
};

// A server, and how to connect to it.
struct Server : Endpoint, Login, Policy {
  Millis connect_timeout{2000};
  bool is_longest_try = false;     // connect_timeout is less than --connect-timeout
  std::shared_ptr<const Tls> tls;  // null: plain, or not opened yet
  // Shared by the copies, so that a further connection works even if the name server is silent; may
  // be null.
  std::shared_ptr<AddressMemory> addresses;
  std::shared_ptr<Admission> admission;  // likewise
};

struct SentinelGroup {
  std::vector<Server> sentinels;
  std::string name;  // of the master
  Server master;     // all but its address
};

struct ClusterSeeds {
  std::vector<Server> seeds;
};

using ServerTarget = std::variant<Server, SentinelGroup, ClusterSeeds>;

// Whether `text` contains the password.
bool contains_password(const Login& login, std::string_view text);

// The URL of that server as another kind: `redis+sentinel://db1:26379` for `+sentinel`.
std::string url_of_kind(Endpoint server, std::string_view kind);

// `h1:26379,h2:26379`.
std::string joined_labels(const std::vector<Server>& servers);

struct HostPort {
  std::string host;  // IPv6 without brackets
  int port = 0;
  bool operator==(const HostPort&) const = default;
};

// The server at `address` that has all else in common with `like`.
Server server_at(const HostPort& address, Server like);

// 1 to 65535.
std::optional<int> parse_port(std::string_view digits);

// Splits an address as servers write it at the last colon: `10.0.0.1:6381`, `::1:6381`, `:6381`.
std::optional<HostPort> parse_host_port(std::string_view text);

// The URL grammar of rlock(1). An error text contains no part of the URL but its scheme, because a
// part that looks like a host or a port may belong to a password whose '/' or '@' was not encoded.

// local:, local:DIR
struct LocalUrl {
  std::string folder;  // empty: the default folder
};

// A parsed URL: what it names, and the settings that it contains; the options add the rest
// (redis/open.hpp).
using Url = std::variant<Server, SentinelGroup, ClusterSeeds, LocalUrl>;

// ErrorKind::usage: what is wrong, and how to write it.
Result<Url> parse_url(std::string_view text);

// The server that the URL names, or one of several that share user, password and security: the
// master, not a sentinel. Null for `local:`.
const Server* server_in(const Url& url);

// Whether two URLs name the same servers in the same way, whatever the passwords and the database.
bool same_servers(const Url& one, const Url& other);

// Whether the URL contains a user or a password for that server.
bool has_credentials(const Url& url);

// Writes asterisks over every password, and over every text that may be one, in `text`: URLs, which
// may be malformed. Returns false if there is none.
bool mask_passwords(std::span<char> text);

// Parses one URL, or at least three of different servers. ErrorKind::config if there is none,
// ErrorKind::usage for two, for repeated servers and for a malformed URL.
Result<std::vector<Url>> parse_urls(const std::vector<std::string>& texts);

}  // namespace rlock::redis
