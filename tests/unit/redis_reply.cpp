#include "redis/link/reply.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "redis/store/acl.hpp"
#include "redis/store/decode.hpp"
#include "redis/store/versions.hpp"

using rlock::redis::encode;
using rlock::redis::ReplyPtr;
using rlock::redis::ReplyReader;

namespace {

// Feeds in pieces of `step` until something comes out; true when it was an Error.
bool refuses(const std::string& bytes, size_t step = 16 * 1024) {
  ReplyReader reader;
  for (size_t at = 0; at < bytes.size(); at += step) {
    reader.feed(bytes.data() + at, std::min(step, bytes.size() - at));
    auto reply = reader.next();
    if (!reply) return true;
    if (*reply != nullptr) return false;
  }
  return false;
}

std::string many(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace

TEST_CASE("a command may hold any bytes") {
  CHECK(encode({"GET", std::string("a\0\r\n", 4)}) ==
        std::string("*2\r\n$3\r\nGET\r\n$4\r\na\0\r\n\r\n", 23));
}

TEST_CASE("replies come out whole however the bytes were cut") {
  const std::string bytes = "+OK\r\n*2\r\n$3\r\nabc\r\n*1\r\n:7\r\n$-1\r\n-ERR x\r\n";
  for (size_t step = 1; step <= bytes.size(); ++step) {
    ReplyReader reader;
    std::string types;
    for (size_t at = 0; at < bytes.size(); at += step) {
      reader.feed(bytes.data() + at, std::min(step, bytes.size() - at));
      while (true) {
        auto reply = reader.next();
        REQUIRE(reply);
        if (*reply == nullptr) break;
        types += std::to_string((*reply)->type);
      }
    }
    CHECK(types == std::to_string(REDIS_REPLY_STATUS) + std::to_string(REDIS_REPLY_ARRAY) +
                       std::to_string(REDIS_REPLY_NIL) + std::to_string(REDIS_REPLY_ERROR));
    CHECK(reader.empty());
  }
}

TEST_CASE("a reply of more bytes than the cap is refused") {
  CHECK(refuses("$4000000000\r\n" + std::string(ReplyReader::kMostBytes + 1, 'x')));
  CHECK(refuses("+" + std::string(ReplyReader::kMostBytes + 1, 'x'), 1 << 20));
  CHECK_FALSE(refuses("$1000000\r\n" + std::string(1'000'000, 'x') + "\r\n"));
}

TEST_CASE("the cap counts one reply, not the life of a connection") {
  ReplyReader reader;
  const std::string reply = "$1000000\r\n" + std::string(1'000'000, 'x') + "\r\n";
  for (int i = 0; i < 40; ++i) {
    reader.feed(reply.data(), reply.size());
    auto got = reader.next();
    REQUIRE(got);
    CHECK(*got != nullptr);
  }
}

TEST_CASE("array lengths are refused before a table is allocated") {
  CHECK(refuses("*100000000\r\n"));
  CHECK(refuses("*2147483647\r\n"));
  CHECK(refuses("*4294967297\r\n"));
  CHECK(refuses("*9223372036854775807\r\n"));
  CHECK(refuses("*-2\r\n"));
  CHECK(refuses("*3\r\n" + many("*30000\r\n", 1) + many(":1\r\n", 30'000) + "*30000\r\n" +
                many(":1\r\n", 30'000) + "*30000\r\n"));
  CHECK_FALSE(refuses("*30000\r\n" + many(":1\r\n", 30'000)));
}

TEST_CASE("nesting is refused beyond what any script of ours returns") {
  CHECK_FALSE(refuses(many("*1\r\n", ReplyReader::kDeepest) + ":1\r\n"));
  CHECK(refuses(many("*1\r\n", ReplyReader::kDeepest + 1) + ":1\r\n"));
  CHECK(refuses(many("*1\r\n", 100'000)));
}

TEST_CASE("replies that break the protocol are refused") {
  CHECK(refuses("HTTP/1.1 400 Bad Request\r\n"));
  CHECK(refuses("SSH-2.0-OpenSSH_9.2\r\n"));
  CHECK(refuses(":abc\r\n"));
  CHECK(refuses("$-5\r\n"));
}

TEST_CASE(
    "an ACL's denial in a script is one, as Redis and as Valkey word it; where in the script is "
    "left out") {
  const std::string position =
      " script: 7f138bd2666846b291aee65b69a1da3e85a3c9ba, on @user_script:1.";
  for (const std::string words :
       {"ERR The user executing the script can't run this command or subcommand",
        "ERR ACL failure in script: User u has no permissions to run the 'exists' command"}) {
    for (const std::string& text : {words, words + position}) {
      rlock::Error error = rlock::redis::decode_error(text);
      CHECK(error.kind == rlock::ErrorKind::denied);
      CHECK(error.text == words);
    }
  }
}

TEST_CASE("an error in a script names the file and the line of its source") {
  const std::string script =
      "--!df flags=\n--@ release.lua 1\n--@ begin.lua 1\nlocal a\nlocal b\n--@ release.lua 7\n"
      "fail()\nfail()\n";
  const auto named = [&](const char* error) { return rlock::redis::with_sources(error, script); };
  CHECK(named("ERR user_script:4: attempt to call") == "ERR begin.lua:1: attempt to call");
  CHECK(named("ERR user_script:5: a") == "ERR begin.lua:2: a");
  CHECK(named("call to f_0: @user_script:7: user_script:8: a") ==
        "call to f_0: @release.lua:7: release.lua:8: a");
  // Of none of these lines is it known.
  for (const char* error : {"ERR user_script:1: a", "ERR user_script:99: a", "ERR user_script: a",
                            "ERR user_script:0: a", "OOM not allowed"}) {
    CHECK(named(error) == error);
  }
}

TEST_CASE("a lock of another version is reported with what to do") {
  const std::vector<std::string> keys{"ci:{it's}:holders", "ci:{it's}:meta"};
  rlock::redis::Server server;
  server.host = "db1";
  server.db = 2;
  const std::string known = std::to_string(rlock::redis::stored_form());
  const std::string deletion =
      "delete its keys: redis-cli -h db1 -p 6379 -n 2 DEL "
      R"('ci:{it'\''s}:holders' 'ci:{it'\''s}:meta')";
  const std::pair<const char*, std::string> forms[] = {
      {"FORM 7", "\"it's\" is stored by a newer rlock (form 7; this one knows form " + known +
                     "): upgrade rlock on this host"},
      {"FORM 0", "\"it's\" is stored by an older rlock (form 0; this one knows form " + known +
                     "): when no such rlock runs any more, " + deletion},
      {"FORM new one",
       "\"it's\" is stored in an unknown form (\"new one\"; this rlock knows form " + known +
           "): when all its runs have ended on all hosts, " + deletion}};
  for (const auto& [reply, text] : forms) {
    const auto form = rlock::redis::other_version(reply, keys, server);
    REQUIRE(form);
    CHECK(form->kind == rlock::ErrorKind::config);
    CHECK(form->text == text);
    CHECK(form->cause == rlock::Cause::other_version);
  }
  const auto rule = rlock::redis::other_version("UNKNOWN !calendar 1.4", keys, server);
  REQUIRE(rule);
  CHECK(rule->text.find("rlock 1.4 or later") != std::string::npos);
  CHECK(rule->text.find("!calendar") != std::string::npos);
  CHECK(rule->cause == rlock::Cause::other_version);
  const auto rules =
      rlock::redis::other_version("UNKNOWN !weights 1.10 !calendar 1.9", keys, server);
  REQUIRE(rules);
  CHECK(
      rules->text ==
      "\"it's\" can only be acquired by rlock 1.10 or later, because an rlock of that version uses "
      "it in a way that this one does not know (!calendar, !weights): upgrade rlock on this host");
  CHECK_FALSE(rlock::redis::other_version("OOM FORM 1", keys, server));
  CHECK_FALSE(rlock::redis::other_version("FORM 1", {}, server));
}

TEST_CASE("commands that a service refuses are reported with advice, without keys and arguments") {
  using rlock::ErrorKind;
  struct Row {
    const char* reply;
    ErrorKind kind;
    const char* advice;
  };
  const Row rows[] = {
      {"ERR Could not find scripting engine 'lua'", ErrorKind::config, "valkey-lua"},
      {"ERR This instance has Lua scripting support disabled", ErrorKind::config, "--lua"},
      {"ERR This instance has cluster support disabled", ErrorKind::config, "no node of a cluster"},
      {"ERR unknown command 'EVALSHA', with args beginning with: 'f00' '9' 'rlock:{x}:holders' ",
       ErrorKind::config, "another server"},
      {"ERR unknown command `eval`, with args beginning with: `return 1` `1` `rlock:{x}:a`, ",
       ErrorKind::config, "another server"},
      {"ERR unknown command 'LRANGE', with args beginning with: 'rlock:{x}:history' '0' ",
       ErrorKind::config, "LRANGE"},
      {"ERR unknown command 'SCAN', with args beginning with: '0' 'MATCH' 'rlock:{*}:*' ",
       ErrorKind::config, "status NAME"},
      {"ERR bad lua script for redis cluster, all the keys that the script uses should be passed "
       "using the KEYS array, and KEYS should not be in expression",
       ErrorKind::config, "script_check_enable"},
      {"ERR Unknown Redis command called from script script: f00, on @user_script:7.",
       ErrorKind::config, "lacks a command"},
      {"ERR this server has no command ZADD", ErrorKind::config, "ZADD"},
      {"NOPERM User u has no permissions to run the 'evalsha' command", ErrorKind::denied,
       "evalsha"},
      {"NOPERM No permissions to access database", ErrorKind::denied, "db="},
      {"ERR odd, with args beginning with: 'rlock:{x}:holders'", ErrorKind::unavailable, "odd"}};
  for (const Row& row : rows) {
    CAPTURE(row.reply);
    rlock::Error error = rlock::redis::decode_error(row.reply);
    CHECK(error.kind == row.kind);
    CHECK(error.text.find(row.advice) != std::string::npos);
    CHECK(error.text.find("rlock:{") == std::string::npos);
  }
}

TEST_CASE("a proxy that does not reach its server is tried again, and no other unknown text") {
  using rlock::Retry;
  const std::pair<const char*, Retry> kRows[] = {
      {"no upstream host", Retry::later},       {"upstream failure", Retry::later},
      {"ERR Connection refused", Retry::later}, {"ERR Connection timed out", Retry::later},
      {"ERR Host unreachable", Retry::never},   {"ERR something else", Retry::never}};
  for (const auto& [text, retry] : kRows) {
    CAPTURE(text);
    const rlock::Error error = rlock::redis::decode_error(text);
    CHECK(error.kind == rlock::ErrorKind::unavailable);
    CHECK(error.retry == retry);
    CHECK(error.text == text);
  }
}

TEST_CASE("an error reply says its cause") {
  using rlock::Cause;
  const std::pair<const char*, Cause> kRows[] = {
      {"NOPERM this user has no permissions to run the 'zadd' command", Cause::command_denied},
      {"ERR The user executing the script can't run this command", Cause::command_denied},
      {"NOPERM No permissions to access a key", Cause::keys_denied},
      {"NOPERM this user has no permissions to access one of the keys used as arguments",
       Cause::keys_denied},
      {"ERR unknown command `ZADD`, with args beginning with: ", Cause::missing_command},
      {"ERR unknown command `SCAN`", Cause::missing_command},
      {"ERR unknown command `EVALSHA`", Cause::other},
      {"ERR Unknown Redis command called from script", Cause::missing_command},
      {"MOVED 7 10.0.0.1:6379", Cause::other_node},
      {"ERR max number of clients reached", Cause::too_many_clients},
      {"OOM command not allowed when used memory > 'maxmemory'.", Cause::out_of_memory},
      {"MISCONF Redis is configured to save RDB snapshots", Cause::cannot_save},
      {"LOADING Redis is loading the dataset in memory", Cause::loading},
      {"BUSY Redis is busy running a script.", Cause::busy_script},
      {"ERR syntax error", Cause::other}};
  for (const auto& [text, cause] : kRows) {
    CAPTURE(text);
    CHECK(rlock::redis::decode_error(text).cause == cause);
  }
}

TEST_CASE("names that look like codes of errors do not change what an error reply means") {
  using rlock::Cause;
  using rlock::ErrorKind;
  struct Row {
    const char* reply;
    ErrorKind kind;
    Cause cause;
  };
  const Row rows[] = {
      // names of locks and values
      {"ERR unknown command 'EVALSHA', with args beginning with: 'f0' '9' 'rlock:{NOPERM-x}:who' ",
       ErrorKind::config, Cause::other},
      {"ERR unknown command 'ZADD', with args beginning with: 'rlock:{READONLY-x}:queue' 'OOM 1' ",
       ErrorKind::config, Cause::missing_command},
      {"ERR odd, with args beginning with: 'WRONGTYPE' 'LOADING ' 'BUSY ' 'max number of clients'",
       ErrorKind::unavailable, Cause::other},
      // names of users
      {"NOPERM User WRONGTYPE has no permissions to run the 'zadd' command", ErrorKind::denied,
       Cause::command_denied},
      {"NOPERM User READONLY has no permissions to access the 'rlock:{OOM }:who' key",
       ErrorKind::denied, Cause::keys_denied},
      {"ERR ACL failure in script: User LOADING has no permissions to run the 'zadd' command",
       ErrorKind::denied, Cause::command_denied},
      {"OOM NOPERM", ErrorKind::unavailable, Cause::out_of_memory},
      // Redis 6 quotes what failed in a script.
      {"ERR Error running script (call to f_0): @user_script:7: -READONLY You can't write",
       ErrorKind::unavailable, Cause::read_only},
      {"ERR Error running script (call to f_0): @user_script:7: WRONGTYPE Operation against a key",
       ErrorKind::wrong_type, Cause::other}};
  for (const Row& row : rows) {
    CAPTURE(row.reply);
    const rlock::Error error = rlock::redis::decode_error(row.reply);
    CHECK(error.kind == row.kind);
    CHECK(error.cause == row.cause);
  }
}

TEST_CASE("numbers that a server gives as text are read whole, and cursors are any text") {
  const auto token_of = [](const std::string& number) {
    ReplyReader reader;
    const std::string bytes = "*3\r\n$7\r\ngranted\r\n$5\r\ntoken\r\n" + number;
    reader.feed(bytes.data(), bytes.size());
    auto reply = reader.next();
    auto granted = rlock::redis::decode_acquire(**reply, {});
    return std::get<rlock::lock::Granted>(*granted).token.value;
  };
  CHECK(token_of(":1763690000123456\r\n") == 1763690000123456);
  CHECK(token_of("$16\r\n1763690000123456\r\n") == 1763690000123456);
  CHECK(token_of("$18\r\n1763690000123456.0\r\n") == 1763690000123456);
  CHECK(token_of("$20\r\n1.763690000123456e15\r\n") == 1763690000123456);
  for (const std::string cursor : {"_0e1f", "18446744073709551615"}) {
    ReplyReader reader;
    const std::string bytes =
        "*2\r\n$" + std::to_string(cursor.size()) + "\r\n" + cursor + "\r\n*0\r\n";
    reader.feed(bytes.data(), bytes.size());
    auto page = rlock::redis::decode_names(**reader.next(), "rlock:");
    REQUIRE(page);
    CHECK(page->cursor == cursor);
  }
}

TEST_CASE("a listing names the locks under its prefix, and skips every other key") {
  const std::vector<std::string> keys{"rlock:{a}:meta",  "rlock:{a b}:holders", "rlock:{c}:queue",
                                      "rlock:{d}:alive", "other:{e}:meta",      "x:rlock:{f}:meta",
                                      "rlock:g:meta",    "rlock:}:{h",          "rlock:{}:meta"};
  std::string bytes = "*2\r\n$1\r\n0\r\n*" + std::to_string(keys.size()) + "\r\n";
  for (const std::string& key : keys) {
    bytes += "$" + std::to_string(key.size()) + "\r\n" + key + "\r\n";
  }
  ReplyReader reader;
  reader.feed(bytes.data(), bytes.size());
  const auto page = rlock::redis::decode_names(**reader.next(), "rlock:");
  REQUIRE(page);
  CHECK(page->names == std::vector<std::string>{"a", "a b", "c"});
  CHECK(page->in_use == std::vector<std::string>{"a b", "c"});
}

TEST_CASE("a grant without a token, and an outcome that nobody asked for, are no replies") {
  auto decoded = [](const std::string& words, rlock::redis::Verdicts possible) {
    ReplyReader reader;
    reader.feed(words.data(), words.size());
    auto reply = reader.next();
    REQUIRE(reply);
    return rlock::redis::decode_acquire(**reply, possible).has_value();
  };
  CHECK(decoded("*3\r\n+granted\r\n+token\r\n:7\r\n", {}));
  CHECK(decoded("*5\r\n+granted\r\n+slot\r\n:2\r\n+token\r\n:7\r\n", {}));
  for (const char* grant :
       {"*1\r\n+granted\r\n", "*3\r\n+granted\r\n+token\r\n+y\r\n", "*2\r\n+granted\r\n:7\r\n",
        "*3\r\n+granted\r\n+token\r\n+nan\r\n", "*3\r\n+granted\r\n+token\r\n:-1\r\n",
        "*3\r\n+granted\r\n+token\r\n:0\r\n", "*3\r\n+granted\r\n+slot\r\n:7\r\n",
        "*2\r\n+granted\r\n+token\r\n"}) {
    CHECK_FALSE(decoded(grant, {true, true}));
  }
  for (const char* done : {"*3\r\n+done\r\n+ended\r\n:1\r\n", "*3\r\n+failed\r\n+times\r\n:3\r\n",
                           "*5\r\n+gone\r\n+kind\r\n+done\r\n+note\r\n+\r\n"}) {
    CHECK(decoded(done, {.done = true}));
    CHECK_FALSE(decoded(done, {.superseded = true}));
  }
  for (const char* superseded : {"*3\r\n+superseded\r\n+record\r\n+x\r\n",
                                 "*5\r\n+gone\r\n+kind\r\n+superseded\r\n+note\r\n+x\r\n"}) {
    CHECK(decoded(superseded, {.superseded = true}));
    CHECK_FALSE(decoded(superseded, {.done = true}));
  }
}

TEST_CASE("times that a server makes up have differences that do not overflow") {
  const std::string most = ":9223372036854775807\r\n", least = ":-9223372036854775808\r\n";
  const std::string bytes = "*8\r\n+holders\r\n*0\r\n+now\r\n" + least + "+succeeded_at\r\n" +
                            most + "+succeeded_from\r\n" + least;
  ReplyReader reader;
  reader.feed(bytes.data(), bytes.size());
  auto reply = reader.next();
  REQUIRE(reply);
  const auto seen = rlock::redis::decode_snapshot(**reply);
  REQUIRE((seen && seen->last_success));
  CHECK(seen->last_success->took.count() == seen->last_success->at.ms - seen->now.ms);
  CHECK(seen->last_success->took.count() > 0);
}

TEST_CASE("a note in the history that is not percent-encoded is shown as it is") {
  const auto note_of = [](const std::string& note) {
    ReplyReader reader;
    const std::string bytes =
        "*3\r\n$7\r\nhistory\r\n$4\r\nrows\r\n*1\r\n*4\r\n$4\r\nkind\r\n$3\r\nrun\r\n$"
        "4\r\nnote\r\n$" +
        std::to_string(note.size()) + "\r\n" + note + "\r\n";
    reader.feed(bytes.data(), bytes.size());
    auto reply = reader.next();
    auto rows = rlock::redis::decode_history(**reply);
    REQUIRE(rows);
    return std::get<rlock::lock::Run>(rows->at(0)).note;
  };
  CHECK(note_of("by%20alice") == "by alice");
  CHECK(note_of("50%20off%") == "50%20off%");
  CHECK(note_of("%zz") == "%zz");
}
