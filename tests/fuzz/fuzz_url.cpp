// redis://… and the lists of URLs in RLOCK_URL.
#include "cli/connect.hpp"
#include "fuzz/property.hpp"
#include "redis/url.hpp"
#include "util/text.hpp"

using namespace rlock;
using fuzz::need;

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

void check_message(const util::Error& error) {
  need(error.kind == util::ErrorKind::usage, "a bad URL is a usage error");
  need(fuzz::harmless_line(error.text), "the message about a URL is harmless");
  need(error.text.size() < 300, "the message about a URL is short");
}

void check_host(const std::string& host, int port) {
  need(!host.empty() && host.find('\0') == host.npos, "a host is a name");
  need(port >= 1 && port <= 65535, "a port is a port");
}

struct Check {
  void operator()(const redis::SingleUrl& url) const {
    const redis::Server& server = url.server;
    if (server.transport == redis::Transport::unix_socket) {
      need(server.path.starts_with('/') && server.path.find('\0') == server.path.npos,
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
    need(bool(again), "what was understood can be written");
    const auto& same = std::get<redis::SingleUrl>(*again).server;
    need(same.user == server.user && same.password == server.password && same.host == server.host &&
             same.port == server.port && same.db == server.db,
         "a URL survives a round trip");
  }
  void operator()(const redis::SentinelUrl& url) const {
    need(!url.sentinels.empty() && !url.master.empty(), "a Sentinel group has a name and members");
    for (const auto& at : url.sentinels) check_host(at.host, at.port);
  }
  void operator()(const redis::ClusterUrl& url) const {
    need(!url.nodes.empty(), "a cluster has nodes");
    for (const auto& at : url.nodes) check_host(at.host, at.port);
  }
  void operator()(const redis::LocalUrl& url) const {
    need(!url.folder.starts_with("//") && url.folder.find('\0') == url.folder.npos,
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
    need(secret.error().text.find("canary") == std::string::npos, "no message shows a password");
  }
  for (const std::string& one : cli::split_urls(text)) {
    need(!one.empty(), "no URL of several is empty");
  }
  return 0;
}
