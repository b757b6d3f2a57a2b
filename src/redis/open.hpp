#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lock/inspector.hpp"
#include "redis/link/server_target.hpp"
#include "redis/local/local.hpp"
#include "redis/net/secret.hpp"
#include "redis/net/tls.hpp"

namespace rlock::redis {

// Whose lock it is, and so how it is stored.
enum class Format { native, plain, redisson };

struct OpenOptions {
  std::vector<std::string> urls;        // one: a server; three or more: a quorum
  std::optional<std::string> user;      // over the URL's
  std::optional<std::string> password;  // over the URL's
  std::shared_ptr<Secret> secret;       // over both
  std::string prefix = "rlock:";
  Format format = Format::native;
  Millis connect_timeout{2000};  // to reach one server: resolution, connect and set-up
  TlsOptions tls;                // for rediss://
  LocalStart local_start = LocalStart::allowed;
};

// What the URLs name, as open() would use them, one for each.
Result<std::vector<ServerTarget>> targets(const OpenOptions& options);

// Checks the URLs and gives a maker of connections; connects to nothing yet, but starts the server
// of a `local:` URL where none runs. ErrorKind::usage: a bad URL, or one that cannot be part of a
// quorum; ErrorKind::config: TLS is asked for and cannot be had.
Result<lock::MakeServer> open(const OpenOptions& options);

// Whether anybody between us and a server could take its place: TLS is asked for, but verifies
// nothing.
bool is_unverified(const OpenOptions& options);

}  // namespace rlock::redis
