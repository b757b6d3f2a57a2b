#include "redis/net/server.hpp"

#include "redis/net/secret.hpp"

namespace rlock::redis {

std::string Server::label() const {
  std::string text = path;
  if (transport == Transport::tcp) {
    bool v6 = host.find(':') != std::string::npos;
    text = (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
  }
  if (db == 0) return text;
  // After a path a bare `/2` would read as part of it.
  return text + (transport == Transport::tcp ? "/" : "?db=") + std::to_string(db);
}

bool contains_password(const Server& server, std::string_view text) {
  const auto has = [&](const std::string& password) {
    return !password.empty() && text.find(password) != text.npos;
  };
  return has(server.password) || (server.secret != nullptr && has(server.secret->current()));
}

std::string joined_labels(const std::vector<Server>& servers) {
  std::string text;
  for (const Server& server : servers) {
    if (!text.empty()) text += ',';
    text += server.label();
  }
  return text;
}

}  // namespace rlock::redis
