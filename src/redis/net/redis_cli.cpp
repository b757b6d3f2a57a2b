#include "redis/net/redis_cli.hpp"

#include "redis/net/tls.hpp"
#include "util/text.hpp"

namespace rlock::redis {

bool is_default_user(const Login& login) {
  return login.user.empty() || login.user == "default";
}

std::string redis_cli(const Server& server, const std::string& words) {
  std::string text = "redis-cli";
  auto add = [&text](const char* option, const std::string& value) {
    if (!value.empty()) text.append(option).append(util::shell_quoted(value));
  };
  if (server.is_unix()) {
    add(" -s ", server.path);
  } else {
    add(" -h ", server.host);
    add(" -p ", std::to_string(server.port));
  }
  if (server.tls != nullptr) {
    const TlsOptions& tls = server.tls->options();
    text += tls.verify == Verify::nothing ? " --tls --insecure" : " --tls";
    add(" --cacert ", tls.cacert);
    add(" --cert ", tls.cert);
    add(" --key ", tls.key.empty() ? tls.cert : tls.key);
    add(" --sni ", tls.sni);
  }
  if (!is_default_user(server)) add(" --user ", server.user);
  if (!server.password.empty()) text += " --askpass";
  if (server.db != 0) add(" -n ", std::to_string(server.db));
  return text + " " + words;
}

}  // namespace rlock::redis
