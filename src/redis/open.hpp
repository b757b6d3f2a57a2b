#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lock/inspector.hpp"
#include "redis/net/secret.hpp"
#include "redis/net/tls.hpp"
#include "redis/net/url.hpp"
#include "redis/store/versions.hpp"

namespace rlock::redis {

// How a lock is stored: in rlock's own format, or in the format of another client.
enum class Format { native, plain, redisson };

// Forbidden for commands that only show locks: they use a running server only.
enum class LocalStart { allowed, forbidden };

struct OpenOptions {
  std::vector<Url> urls;            // from parse_urls(): one server, or three or more for a quorum
  std::optional<std::string> user;  // overrides the URL's
  std::optional<std::string> password;  // overrides the URL's
  std::string unused_login;             // as Login::unused
  std::shared_ptr<Secret> secret;       // overrides both
  std::string prefix = "rlock:";
  Format format = Format::native;
  Millis connect_timeout{2000};  // to reach one server: DNS, connect, TLS and login
  TlsOptions tls;                // for rediss://
  LocalStart local_start = LocalStart::allowed;
  uint64_t replicas = 0;  // how many have to confirm each grant, renewal and release
};

// The targets that the URLs name, one for each URL.
Result<std::vector<ServerTarget>> targets(const OpenOptions& options);

// A maker of connections. Does not connect yet, but starts the server of a `local:` URL if none is
// running. ErrorKind::usage: a URL that cannot be part of a quorum; ErrorKind::config: TLS cannot
// be set up.
Result<lock::MakeServer> open(const OpenOptions& options);

// Whether someone could impersonate a server: a URL asks for TLS, but its certificate is not
// verified.
bool is_unverified(const OpenOptions& options);

// ---- local: ----

// The private server of this machine in `folder` (empty: ~/.local/state/rlock in the home directory
// of passwd, for root /var/lib/rlock). Starts it if it is not running, which takes at most 10 s; it
// keeps running for later runs. ErrorKind::config: the folder is unsafe or there is no server
// program; ErrorKind::system: the server cannot be started; ErrorKind::unavailable: no server is
// running and none may be started.
Result<Server> local_server(const std::string& folder, LocalStart start);

// Stops that server with TERM and waits for its exit, at most 10 s; its data stay in the folder.
// Returns false if no server was running. ErrorKind::config: the folder is unsafe;
// ErrorKind::unavailable: the server does not exit, or runs in another pid namespace.
Result<bool> stop_local_server(const std::string& folder);

}  // namespace rlock::redis
