// redis://… and the lists of URLs in RLOCK_URL.
#include <cstdint>
#include "cli/options/values.hpp"

#include "fuzz/property.hpp"
#include "redis/net/url.hpp"
#include "util/text.hpp"

using namespace rlock;
using fuzz::require;

namespace {

std::string encoded(const std::string& text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

void check_message(const Error& error) {
  require(error.kind == ErrorKind::usage, "a bad URL is a usage error");
  require(fuzz::harmless_line(error.text), "the message about a URL is harmless");
  require(error.text.size() < 300, "the message about a URL is short");
}

void check_host(const std::string& host, int port) {
  require(!host.empty() && host.find('\0') == host.npos, "a host is a name");
  require(port >= 1 && port <= 65535, "a port is a port");
}

struct Check {
  void operator()(const redis::Server& server) const {
    if (server.is_unix()) {
      require(server.path.starts_with('/') && server.path.find('\0') == server.path.npos,
              "a socket's path is absolute");
      return;
    }
    check_host(server.host, server.port);
    if (server.user.empty() && server.password.empty()) return;
    bool bracketed = server.host.find(':') != server.host.npos;
    std::string host = bracketed ? "[" + server.host + "]" : encoded(server.host);
    auto again = redis::parse_url("redis://" + encoded(server.user) + ":" +
                                  encoded(server.password) + "@" + host + ":" +
                                  std::to_string(server.port) + "/" + std::to_string(server.db));
    if (bracketed && !again) return;  // what brackets held was encoded
    require(bool(again), "what was understood can be written");
    const auto& same = std::get<redis::Server>(*again);
    require(same.user == server.user && same.password == server.password &&
                same.host == server.host && same.port == server.port && same.db == server.db,
            "a URL survives a round trip");
  }
  void operator()(const redis::SentinelGroup& group) const {
    require(!group.sentinels.empty() && !group.name.empty(),
            "a Sentinel group has a name and members");
    for (const auto& at : group.sentinels) check_host(at.host, at.port);
  }
  void operator()(const redis::ClusterSeeds& cluster) const {
    require(!cluster.seeds.empty(), "a cluster has nodes");
    for (const auto& at : cluster.seeds) check_host(at.host, at.port);
  }
  void operator()(const redis::LocalUrl& url) const {
    require(!url.folder.starts_with("//") && url.folder.find('\0') == url.folder.npos,
            "a folder is a folder");
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  auto url = redis::parse_url(text);
  if (url) {
    std::visit(Check{}, *url);
  } else {
    check_message(url.error());
  }
  auto secret = redis::parse_url("redis://u:canary" + std::string(text));
  if (!secret) {
    check_message(secret.error());
    require(secret.error().text.find("canary") == std::string::npos, "no message shows a password");
  }
  for (const std::string& one : cli::split_urls(text)) {
    require(!one.empty(), "no URL of several is empty");
  }
  return 0;
}
