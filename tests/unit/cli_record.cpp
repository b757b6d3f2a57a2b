#include "cli/output/record.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/output/messages.hpp"
#include "util/text.hpp"

using namespace rlock;
using namespace rlock::cli;

TEST_CASE("a record comes back as it was written") {
  Record record{"web1", "alice", 4711, "make deploy", "release 7 \xC3\xA4 \"x\"", std::nullopt};
  Record back = decode_record(encode_record(record));
  CHECK(back.host == record.host);
  CHECK(back.user == record.user);
  CHECK(back.pid == record.pid);
  CHECK(back.command == record.command);
  CHECK(back.reason == record.reason);
  CHECK_FALSE(back.at);
  CHECK_FALSE(back.ending);
  record.ending = "cannot stop pid 4711 of root";
  CHECK(decode_record(encode_record(record)).ending == record.ending);
  record.holds = {{"a", "one"}, {"b", "two"}};
  CHECK(decode_record(encode_record(record)).holds == record.holds);
  CHECK(decode_record(R"({"holds":[{"name":"a","owner":"one"},{"name":5},7]})").holds ==
        std::vector<Hold>{{"a", "one"}});
  record.holds.assign(20, {"a", "one"});
  CHECK(decode_record(encode_record(record)).holds.size() == 8);
}

TEST_CASE("a waiter that is moved keeps what another version wrote into its record") {
  const std::string moved = moved_record(R"({"host":"db1","later":[1,2]})", "by ann@ops1");
  CHECK(moved == R"({"host":"db1","later":[1,2],"moved":"by ann@ops1"})");
  CHECK(moved_record("\xff{", "by ann") == R"({"moved":"by ann"})");
  const std::string deep = std::string(15'000, '[') + std::string(15'000, ']');
  CHECK(moved_record("{\"a\":" + deep + "}", "by ann").size() < 100);
}

TEST_CASE("a trace is kept if it has the form of the W3C, and not otherwise") {
  const std::string good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  CHECK(parse_traceparent(good) == good);
  const std::string newer = "cc" + good.substr(2);
  CHECK(parse_traceparent(newer) == newer);
  CHECK(parse_traceparent(newer + "-what the future brings") == newer);
  for (const std::string& bad :
       {std::string(), good.substr(1), good.substr(0, 54), good + "-", good + " ", newer + "x",
        "ff" + good.substr(2), "0x" + good.substr(2), "00+" + good.substr(3),
        std::string("00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        std::string("00-00000000000000000000000000000000-b7ad6b7169203331-01"),
        std::string("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"),
        std::string("00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01"),
        std::string("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0\n")}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_traceparent(bad));
  }
  Record record;
  record.traceparent = good;
  CHECK(decode_record(encode_record(record)).traceparent == good);
  CHECK_FALSE(decode_record("{\"traceparent\":\"x\"}").traceparent);
}

TEST_CASE("a hostile record leaves fields unknown and breaks nothing") {
  const std::string deep = std::string(20'000, '[');
  const std::string huge = "{\"host\":\"" + std::string(100'000, 'x') + "\"}";
  for (const std::string& bytes :
       {std::string(), std::string("not json"), std::string("null"), std::string("[1,2]"),
        std::string("\"host\""), std::string("{\"host\":"),
        std::string("{\"host\":5,\"pid\":\"1\"}"), std::string("{\"pid\":-1}"),
        std::string("{\"pid\":1e300}"), std::string("{\"pid\":1.5}"),
        std::string("{\"pid\":18446744073709551615}"), std::string("{\"host\":{\"host\":\"x\"}}"),
        std::string("\0\0", 2), deep, huge}) {
    CAPTURE(bytes.substr(0, 40));
    Record record = decode_record(bytes);
    CHECK_FALSE(record.host);
    CHECK_FALSE(record.pid);
    CHECK(who_text(record).empty());
    CHECK(note_text(bytes).empty());
  }
}

TEST_CASE("broken UTF-8 in a record is repaired, and control characters are never shown") {
  Record record = decode_record("{\"host\":\"a\xff\",\"user\":\"\\u001b[31mroot\\u202e\"}");
  REQUIRE(record.host);
  CHECK(util::is_utf8(*record.host));
  std::string who = who_text(record);
  CHECK(who.find('\x1b') == std::string::npos);
  CHECK(who.find("\xE2\x80\xAE") == std::string::npos);
  CHECK(who == "\\x1b[31mroot\\u{202e}@a\xEF\xBF\xBD");
}

TEST_CASE("the command line is quoted as a shell reads it") {
  CHECK(command_text({"make", "-j2", "deploy"}) == "make -j2 deploy");
  CHECK(command_text({"sh", "-c", "echo 'a b'"}) == "sh -c 'echo '\\''a b'\\'''");
  CHECK(command_text({"x", ""}) == "x ''");
  CHECK(command_text({"x", "$(rm)", "*"}) == "x '$(rm)' '*'");
}

TEST_CASE("passwords, tokens and keys in the command line are not shown") {
  auto shown = [](const std::string& word) { return command_text({word}); };
  CHECK(shown("--db=pg://me:secret@db/x") == "'--db=pg://me:***@db/x'");
  CHECK(shown("redis://:canary@h") == "'redis://:***@h'");
  CHECK(shown("https://canary@github.com/x") == "'https://***@github.com/x'");
  CHECK(shown("https://canary:x-oauth-basic@github.com/x") == "'https://***@github.com/x'");
  CHECK(shown("https://canary:@h") == "'https://***@h'");
  CHECK(shown("git+https://canary@h/x@v1") == "'git+https://***@v1'");
  CHECK(shown("https://canary@h/a:b@c") == "'https://***@c'");
  for (const char* password : {"ca/nary", "ca?nary", "ca#nary", "ca@nary", "ca'nary", "ca:nary"}) {
    CHECK(shown("redis://me:" + std::string(password) + "@h/1") == "'redis://me:***@h/1'");
  }
  CHECK(shown("redis://:canary@a,redis://:canary@b") == "'redis://:***@b'");
  CHECK(shown("curl http://:canary@a http://:canary@b; mail x@y") ==
        "'curl http://:***@a http://:***@b; mail x@y'");
  CHECK(shown("ssh://git@h/x") == "ssh://git@h/x");
  CHECK(shown("ssh://git:canary@h/x") == "'ssh://git:***@h/x'");
  CHECK(shown("http://h:80/x") == "http://h:80/x");
  CHECK(shown("redis+sentinel://h/m?sentinel_password=canary&db=1") ==
        "'redis+sentinel://h/m?sentinel_password=***&db=1'");
  CHECK(shown("https://h/?old_password=canary&new_password=canary") ==
        "'https://h/?old_password=***&new_password=***'");
  CHECK(shown("https://" + std::string(5'000, 'c') + "@h") == "'https://***@h'");
  CHECK(command_text({"dump", "--password=canary nary", "x"}) == "dump '--password=***' x");
  CHECK(shown("dump --password=canary --all") == "'dump --password=*** --all'");
  CHECK(shown("dump --password=\"ca nary\" --all") == "'dump --password=*** --all'");
  CHECK(command_text({"api", "--token=canary nary", "--secret=canary nary", "x"}) ==
        "api '--token=***' '--secret=***' x");
  CHECK(command_text({"env", "PGPASSWORD=canary", "GITHUB_TOKEN=canary", "pg_dump", "shop"}) ==
        "env 'PGPASSWORD=***' 'GITHUB_TOKEN=***' pg_dump shop");
  CHECK(shown("CLIENT_SECRET='ca nary' AWS_SECRET_ACCESS_KEY=canary aws s3 ls") ==
        "'CLIENT_SECRET=*** AWS_SECRET_ACCESS_KEY=*** aws s3 ls'");
  CHECK(command_text({"dump", "--password", "canary nary", "--all", "--token"}) ==
        "dump --password '***' --all --token");
  CHECK(shown("dump --password canary --all") == "'dump --password *** --all'");
  CHECK(command_text({"git", "clone", "ghp_canary", "glpat-canary"}) ==
        "git clone 'ghp_***' 'glpat-***'");
  CHECK(shown("dump --token-file=f --keys=2 -p x TOKENS=3 KEY=a") ==
        "'dump --token-file=f --keys=2 -p x TOKENS=3 KEY=a'");
  CHECK(shown("Authorization: Bearer canary") == "'Authorization: Bearer ***'");
  CHECK(shown("curl -H \"Authorization: bearer canary\" h") ==
        "'curl -H \"Authorization: bearer ***\" h'");
  CHECK(shown(std::string(190, 'x') + " --password=canary").find("canary") == std::string::npos);
  CHECK(shown(std::string(190, 'x') + "://:canary@h").find("canary") == std::string::npos);
}

TEST_CASE("the command line is cut at 200 bytes between two characters") {
  std::string text = command_text({"echo", std::string(1'000'000, 'x')});
  CHECK(text.size() == 200);
  std::string umlauts;
  for (int i = 0; i < 300; ++i) umlauts += "\xC3\xA4";
  for (const char* lead : {"a", "ab"}) {
    std::string cut = command_text({lead, umlauts});
    CHECK(cut.size() <= 200);
    CHECK(cut.size() >= 199);
    CHECK(util::is_utf8(cut));
  }
  CHECK(util::is_utf8(command_text({"x", "\xff\xfe"})));
}

TEST_CASE("times are RFC 3339 in UTC with milliseconds, or nothing") {
  CHECK(rfc3339({1'000}) == "1970-01-01T00:00:01.000Z");
  CHECK(rfc3339({951'782'400'123}) == "2000-02-29T00:00:00.123Z");
  CHECK(rfc3339({1'795'229'580'007}) == "2026-11-21T02:53:00.007Z");
  CHECK(rfc3339({253'402'300'799'999}) == "9999-12-31T23:59:59.999Z");
  CHECK(rfc3339({253'402'300'800'000}).empty());
  CHECK(rfc3339({0}).empty());
  CHECK(rfc3339({-5}).empty());
  CHECK(rfc3339({INT64_MAX}).empty());
}

TEST_CASE("people read a time with its age, in UTC") {
  const lock::ServerTime at{1'795'229'580'007};
  CHECK(age_and_time(at, {at.ms + 2'410'000}) == "40m ago, at 2026-11-21T02:53:00Z");
  CHECK(age_and_time(at, {at.ms + 12'000}) == "12s ago, at 2026-11-21T02:53:00Z");
  CHECK(age_and_time(at, {at.ms - 12'000}) == "just now, at 2026-11-21T02:53:00Z");
  CHECK(age_and_time(at, {0}) == "at 2026-11-21T02:53:00Z");
  CHECK(age_and_time({0}, at).empty());
}
