#include "redis/net/url.hpp"

#include <doctest/doctest.h>

#include "redis/open.hpp"

using namespace rlock;
using redis::parse_url;
using redis::parse_urls;
using redis::Security;

namespace {

redis::Server single(std::string_view text) {
  auto url = parse_url(text);
  REQUIRE_MESSAGE(url, text);
  REQUIRE(std::holds_alternative<redis::Server>(*url));
  return std::get<redis::Server>(*url);
}

bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a TCP URL gives host, port, user, password and database") {
  struct Row {
    const char* url;
    const char* host;
    int port;
    const char* user;
    const char* password;
    int db;
    const char* label;
  };
  const Row rows[] = {
      {"redis://db1", "db1", 6379, "", "", 0, "db1:6379"},
      {"redis://db1/", "db1", 6379, "", "", 0, "db1:6379"},
      {"redis://db1:7000/3", "db1", 7000, "", "", 3, "db1:7000/3"},
      {"redis://DB1", "db1", 6379, "", "", 0, "db1:6379"},
      {"redis://:secret@db1", "db1", 6379, "", "secret", 0, "db1:6379"},
      {"redis://bob:secret@db1", "db1", 6379, "bob", "secret", 0, "db1:6379"},
      {"redis://bob:@db1", "db1", 6379, "bob", "", 0, "db1:6379"},
      {"REDIS://db1", "db1", 6379, "", "", 0, "db1:6379"},
      {"redis://b%40b:p%2Fs%3as%25@db1/0", "db1", 6379, "b@b", "p/s:s%", 0, "db1:6379"},
      {"redis://[::1]", "::1", 6379, "", "", 0, "[::1]:6379"},
      {"redis://[::1]:7000/2", "::1", 7000, "", "", 2, "[::1]:7000/2"},
      {"redis://[fe80::1%25eth0]", "fe80::1%eth0", 6379, "", "", 0, "[fe80::1%eth0]:6379"},
      {"redis://127.0.0.1:65535", "127.0.0.1", 65535, "", "", 0, "127.0.0.1:65535"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.url);
    redis::Server server = single(row.url);
    CHECK(server.security == Security::plain);
    CHECK(server.host == row.host);
    CHECK(server.port == row.port);
    CHECK(server.user == row.user);
    CHECK(server.password == row.password);
    CHECK(server.db == row.db);
    CHECK(server.label() == row.label);
  }
  CHECK(single("rediss://db1").security == Security::tls);
}

TEST_CASE("a unix URL gives the path of the socket and the database") {
  for (const char* scheme : {"unix", "redis+unix"}) {
    redis::Server server = single(scheme + std::string("://:pw@/run/a%20b/redis.sock?db=2"));
    CHECK(server.is_unix());
    CHECK(server.path == "/run/a b/redis.sock");
    CHECK(server.password == "pw");
    CHECK(server.db == 2);
    CHECK(server.label() == "/run/a b/redis.sock?db=2");
  }
  CHECK(single("unix:///run/at@home.sock").path == "/run/at@home.sock");
}

TEST_CASE("a Sentinel URL gives its hosts, the master's name and both credentials") {
  auto url = parse_url(
      "rediss+sentinel://u:p@s1,s2:7,[::1]:9/my%2Dmaster/"
      "4?sentinel_username=su&sentinel_password=s%26p");
  REQUIRE(url);
  auto group = std::get<redis::SentinelGroup>(*url);
  CHECK(group.master.security == Security::tls);
  CHECK(group.master.user == "u");
  CHECK(group.master.password == "p");
  CHECK(group.master.db == 4);
  CHECK(group.name == "my-master");
  CHECK(redis::joined_labels(group.sentinels) == "s1:26379,s2:7,[::1]:9");
  for (const redis::Server& sentinel : group.sentinels) {
    CHECK(sentinel.user == "su");
    CHECK(sentinel.password == "s&p");
  }
  CHECK_FALSE(parse_url("redis+sentinel://s1/bad%20master%0a"));
}

TEST_CASE("a Cluster URL gives its nodes") {
  auto url = parse_url("redis+cluster://n1,n2:7001/");
  REQUIRE(url);
  CHECK(redis::joined_labels(std::get<redis::ClusterSeeds>(*url).seeds) == "n1:6379,n2:7001");
}

TEST_CASE("valkey:// and valkeys:// are redis:// and rediss:// under other names") {
  auto plain = single("valkey://u:p@db1:7000/2");
  CHECK(plain.security == redis::Security::plain);
  CHECK(plain.label() == "db1:7000/2");
  auto secure = single("valkeys://db1");
  CHECK(secure.security == redis::Security::tls);
  CHECK(secure.port == 6379);
}

TEST_CASE("local: takes a folder or none") {
  CHECK(std::get<redis::LocalUrl>(*parse_url("local:")).folder.empty());
  CHECK(std::get<redis::LocalUrl>(*parse_url("local:/srv/locks")).folder == "/srv/locks");
  CHECK(std::get<redis::LocalUrl>(*parse_url("local:/a%20b")).folder == "/a b");
}

struct MalformedUrl {
  const char* url;
  const char* reason;
};
const MalformedUrl kMalformed[] = {
    {"", "must begin with"},
    {"db1:6379", "did you mean redis://db1:6379?"},
    {"canary@db1", "must begin with"},
    {"http://canary@db1", "must begin with"},
    {"redis:/db1", "must begin with"},
    {"redis+sentine://db1", "must begin with"},
    {"redis://", "host is missing"},
    {"redis:///2", "host is missing"},
    {"redis://:6379", "host is missing"},
    {"rediss://./", "begin with a dot"},
    {"rediss://.example.com", "begin with a dot"},
    {"rediss+cluster://n1,%2e:7", "begin with a dot"},
    {"redis://canary@db1", "redis://USER:PASSWORD@"},
    {"redis://canary@db1", "redis://:PASSWORD@"},
    {"redis://@db1", "redis://:PASSWORD@"},
    {"redis://user:canary", "port must be"},
    {"redis://db1:", "port must be"},
    {"redis://db1:0", "port must be"},
    {"redis://db1:65536", "port must be"},
    {"redis://db1:-1", "port must be"},
    {"redis://db1:+1", "port must be"},
    {"redis://db1:6379x", "port must be"},
    {"redis://db1:99999999999999999999", "port must be"},
    {"redis://db1/two", "database must be"},
    {"redis://db1/-1", "database must be"},
    {"redis://db1/1/", "database must be"},
    {"redis://db1/99999999999999999999", "database must be"},
    {"redis://u:can/ary@db1", "%2F"},
    {"redis://u:can?ary@db1", "%3F"},
    {"redis://u:can#ary@db1", "%23"},
    {"redis://u:can@ary@db1", "%40"},
    {"redis://u:can:ary@db1", "%3A"},
    {"redis://u:can%zzary@db1", "%25"},
    {"redis://u:canary%@db1", "%25"},
    {"redis://u:canary%00@db1", "%25"},
    {"redis://u:can ary@db1", "percent-encoded"},
    {"redis://db1\n", "percent-encoded"},
    {"redis://db%201", "host name"},
    {"redis://::1", "brackets"},
    {"redis://::1:6379", "brackets"},
    {"redis://[::1", "without ']'"},
    {"redis://[::1]6379", "may follow ']'"},
    {"redis://[db1]", "IPv6"},
    {"redis://a[::1]", "brackets"},
    {"redis://db1,db2", "one host only"},
    {"redis://db1?db=2", "unknown query key"},
    {"redis://db1/?timeout=1", "unknown query key"},
    {"unix://run/redis.sock", "absolute"},
    {"unix://", "absolute"},
    {"unix:///", "absolute"},
    {"unix://user:canary", "absolute"},
    {"unix://canary@/run/redis.sock", "unix://USER:PASSWORD@"},
    {"unix:///run/redis.sock?dbb=2", "db is the only one"},
    {"unix:///run/redis.sock?db", "KEY=VALUE"},
    {"unix:///run/redis.sock?db=x", "database must be"},
    {"unix:///run/redis.sock?db=1&db=2", "twice"},
    {"unix:///run/%zz", "%25"},
    {"redis+sentinel://s1", "master's name"},
    {"redis+sentinel://s1/", "master's name"},
    {"redis+sentinel://s1,/m", "host is missing"},
    {"redis+sentinel://s1,s1/m", "twice"},
    {"redis+sentinel://s1/m/x", "database must be"},
    {"redis+sentinel://s1/m?password=canary", "unknown query key"},
    {"redis+sentinel://s1/m?sentinel_password=%zzcanary", "%25"},
    {"redis+sentinel://canary@s1/m", "redis+sentinel://:PASSWORD@"},
    {"redis+cluster://n1/2", "no databases"},
    {"redis+cluster://", "host is missing"},
    {"redis+cluster://n1?x=1", "unknown query key"},
    {"local://tmp/x", "without '//'"},
    {"local:%zz", "%25"},
    {"REDIZ://h", "did you mean redis://h?"},
    {"LOCAL:", "must begin with redis://"},
    {"local:locks", "absolute"},
};

TEST_CASE("a malformed URL is refused with the reason, and no text quotes it") {
  for (const MalformedUrl& row : kMalformed) {
    CAPTURE(row.url);
    auto url = parse_url(row.url);
    REQUIRE_FALSE(url);
    CHECK(url.error().kind == ErrorKind::usage);
    CAPTURE(url.error().text);
    CHECK(says(url.error().text, row.reason));
    CHECK_FALSE(says(url.error().text, "canary"));
    CHECK_FALSE(says(url.error().text, "ary"));
    CHECK_FALSE(says(url.error().text, "can"));
  }
}

TEST_CASE("two URLs and repeated servers make no quorum") {
  CHECK(parse_urls({"redis://a"}));
  CHECK_FALSE(parse_urls({"redis://a", "redis://b"}));
  CHECK(parse_urls({"redis://a", "redis://b", "redis://c"}));
  CHECK_FALSE(parse_urls({"redis://a", "redis://b", "redis://A:6379/2"}));
  CHECK_FALSE(parse_urls({"redis://localhost", "redis://b", "redis://u:p@127.0.0.1"}));
  CHECK_FALSE(parse_urls({"unix:///a", "redis://b", "redis+unix:///a?db=1"}));
  CHECK_FALSE(parse_urls({"redis://a", "redis://b", "redis://c:x"}));
}

TEST_CASE("three URLs are a quorum") {
  redis::OpenOptions options;
  options.urls = *parse_urls({"redis://a", "redis://b:7", "redis://c"});
  auto opened = redis::open(options);
  REQUIRE(opened);
  CHECK((*opened)()->server() == "a:6379,b:7,c:6379");
}

TEST_CASE(
    "passwords are masked, also in malformed and in several URLs; a URL without one stays as it "
    "is") {
  const std::pair<std::string, std::string> rows[] = {
      {"redis://user:secret@db1/2", "redis://user:******@db1/2"},
      {"redis://:a@h1 rediss://u:b@h2", "redis://:*@h1 rediss://u:*@h2"},
      {"redis://secret@db1", "redis://******@db1"},
      {"redis://:se@cr/et@db1", "redis://:********@db1"},
      {"--url=redis+sentinel://s1/m?sentinel_password=secret&x=1",
       "--url=redis+sentinel://s1/m?sentinel_password=******&x=1"},
      {"redis://user:@db1", "redis://user:@db1"},
      {"redis://db1:6379/2", "redis://db1:6379/2"},
      {"local:/tmp/a@b", "local:/tmp/a@b"}};
  for (auto [text, masked] : rows) {
    CAPTURE(masked);
    const bool has_one = text != masked;
    CHECK(redis::mask_passwords(text) == has_one);
    CHECK(text == masked);
  }
}
