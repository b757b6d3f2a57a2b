#include "cli_config.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "cli/settings/config.hpp"
#include "cli_fixture.hpp"
#include "util/text.hpp"

using namespace rlock;
using namespace rlock::cli;
using namespace rlock::test;

namespace fs = std::filesystem;

TEST_CASE("characters beyond ASCII are read in comments and strings, and refused elsewhere") {
  for (const char* value : {"\"\u00e9~7e\" # \u00e9", "'\u00e9~7e'", "\"\"\"\\\n  \u00e9~7e\"\"\"",
                            "\"\\u00e9\\u007e7e\" # \u00e9"}) {
    CAPTURE(value);
    auto settings = parse_config("f", "\xEF\xBB\xBF# \u00e9\nuser = " + std::string(value));
    REQUIRE(settings);
    CHECK(settings->front().second.words == Words{"\u00e9~7e"});
    CHECK(settings->front().second.place == "f:2");
  }
  for (const char* text :
       {"\n\u00e9 = 1", "\nuser = \u00e9", "\nuser = \"\\\u00e9\"", "\nuser = 'a' \u00e9",
        "#\n\u00e9", "\n\"\u00e9\" = 1", "\nuser = 12='\u00e9'", "\nuser = '\xff'"}) {
    CAPTURE(text);
    auto settings = parse_config("f", text);
    REQUIRE_FALSE(settings);
    CHECK(contains(settings.error().text, "f:2: "));
  }
  auto unknown = parse_config("f", "'\u00e9' = 1");
  REQUIRE_FALSE(unknown);
  CHECK(contains(unknown.error().text, "unknown key \"\u00e9\""));
}

TEST_CASE("strings, numbers and booleans become what the command line would say") {
  Choices choices = of_text(
      "url = ['redis://a', 'redis://b', 'redis://c']\nconnect-timeout = 1.5\n"
      "[run]\nttl = 60\nwait = '1h'\nhistory = 7\nhide-command = true\nreport = false");
  CHECK(choices.all(Opt::url) == Words{"redis://a", "redis://b", "redis://c"});
  CHECK(connection_options(choices)->connect_timeout == Millis(1500));
  CHECK(choices.duration(Opt::ttl) == Millis(60'000));
  CHECK(choices.duration(Opt::wait) == Millis(3'600'000));
  CHECK(choices.number(Opt::history_rows) == 7U);
  CHECK(choices.has(Opt::hide_command));
  CHECK_FALSE(choices.has(Opt::report));
  CHECK(choices[Opt::report].source == Source::file);
  CHECK(of_text("run.ttl = '5s'").duration(Opt::ttl) == Millis(5'000));
  CHECK(of_text("").all(Opt::url).empty());
}

TEST_CASE("an option whose value is optional may be true, false or its value") {
  CHECK(of_text("[run]\ncontain = true").last(Opt::contain) == kFlagValue);
  CHECK(of_text("[run]\ncontain = 'user'").last(Opt::contain) == "user");
  CHECK_FALSE(of_text("[run]\ncontain = false").has(Opt::contain));
  CHECK(contains(error_of_text("[run]\ncontain = 1"), "true, false or \"user\""));
  CHECK(contains(error_of_text("[run]\ncontain = 'x'"), "the only value of --contain is user"));
}

TEST_CASE("a file may set only what cannot change which runs exclude each other") {
  const Words allowed{"wait",         "ttl",       "kill-after", "contain", "fail-open",
                      "hide-command", "event-log", "report",     "history", "reason"};
  for (const OptionRow& row : options()) {
    if (row.section != Section::command || row.name.empty()) continue;
    CAPTURE(row.name);
    const bool may = std::find(allowed.begin(), allowed.end(), row.name) != allowed.end();
    CHECK(row.in_file == may);
    if (may) continue;
    CHECK(contains(error_of_text("[run]\n" + std::string(row.name) + " = true"),
                   ":2: \"" + std::string(row.name) + "\" cannot be a setting of all runs"));
  }
}

TEST_CASE("if options exclude each other, the one from the source with higher precedence applies") {
  Folder folder;
  std::string while_5m = folder.write("wait", "[run]\nwait = '5m'");
  CHECK(configured(run_call({"-w", "5"}), {while_5m}).duration(Opt::wait) == Millis(5'000));
  CHECK_FALSE(configured(run_call({"-n"}), {while_5m}).has(Opt::wait));
  std::string history = folder.write("history", "[run]\nhistory = 5");
  CHECK_FALSE(configured(run_call({"--format", "plain"}), {history}).has(Opt::history_rows));
}

TEST_CASE("an unknown key names file and line, and the key that was meant") {
  CHECK(error_of_text("\nurll = 'x'") == ":2: unknown key \"urll\" (did you mean url?)");
  CHECK(error_of_text("[run]\ntll = 5") == ":2: unknown key \"tll\" in [run] (did you mean ttl?)");
  CHECK(contains(error_of_text("pasword = 'x'"), "did you mean password?"));
  CHECK(contains(error_of_text("[rn]\nttl = 5"), "did you mean run?"));
  CHECK(contains(error_of_text("xyzzy = 1"), "unknown key \"xyzzy\""));
  CHECK(contains(error_of_text("ttl = 5"), "put it in the table [run]"));
  CHECK(contains(error_of_text("[run]\nurl = 'x'"), "put it at the top"));
  CHECK(contains(error_of_text("[run]\npassword = 'x'"), "put it at the top"));
  for (const char* key :
       {"quiet", "verbose", "json", "help", "version", "config", "yes", "token"}) {
    CAPTURE(key);
    CHECK(contains(error_of_text(std::string(key) + " = true"), "give it on the command line"));
    CHECK(contains(error_of_text("[run]\n" + std::string(key) + " = true"),
                   "give it on the command line"));
  }
  CHECK(contains(error_of_text("\"\\u001b[31m\" = 1"), "\\x1b"));
  CHECK(contains(error_of_text("\"\" = 1"), "unknown key \"\""));
}

TEST_CASE("a value of the wrong type is refused, and the right one is named") {
  CHECK(error_of_text("\n\nurl = 5") == ":3: url must be a string or an array of strings");
  CHECK(contains(error_of_text("url = []"), "array of strings"));
  CHECK(contains(error_of_text("url = ['a', 5]"), "array of strings"));
  CHECK(contains(error_of_text("prefix = true"), "prefix must be a string"));
  CHECK(contains(error_of_text("prefix = ['a']"), "prefix must be a string"));
  CHECK(contains(error_of_text("connect-timeout = true"), "seconds"));
  CHECK(contains(error_of_text("password = 5"), "password must be a string"));
  CHECK(contains(error_of_text("password = ''"), "password is empty"));
  CHECK(contains(error_of_text("user = \"a\\u0000b\""), "NUL"));
  CHECK(contains(error_of_text("[run]\nreport = 'yes'"), "true or false"));
  CHECK(contains(error_of_text("[run]\nhistory = '7'"), "whole number"));
  CHECK(contains(error_of_text("[run]\nhistory = 7.5"), "whole number"));
  CHECK(contains(error_of_text("[run]\nttl = 1979-05-27"), "duration"));
  CHECK(contains(error_of_text("run = 5"), "must be a table"));
  CHECK(contains(error_of_text("[[run]]\nttl = 5"), "must be a table"));
  CHECK(contains(error_of_text("[run.ttl]\na = 5"), "duration"));
}

TEST_CASE("a bad value is reported with its line, whichever command runs") {
  CHECK(contains(error_of_text("[run]\nttl = '5 parsecs'"), ":2: --ttl: not a duration"));
  CHECK(contains(error_of_text("[run]\nttl = -5"), ":2: --ttl: not a duration"));
  CHECK(contains(error_of_text("[run]\nttl = inf"), ":2: --ttl: not a duration"));
  CHECK(contains(error_of_text("[run]\nttl = 0.5"), ":2: --ttl must be at least 1s"));
  CHECK(contains(error_of_text("[run]\nhistory = 1001"), ":2: --history"));
  CHECK(contains(error_of_text("connect-timeout = 0"), ":1: --connect-timeout"));
  CHECK(contains(error_of_text("prefix = 'a{b'"), ":1: bad prefix"));
  CHECK(contains(error_of_text("url = 'http://h'"), ":1: bad URL"));
  CHECK(contains(error_of_text("url = ['redis://a', 'redis://b']"), ":1: "));
}

TEST_CASE("a syntax error is reported with its line, but never with a part of a password") {
  CHECK(contains(error_of_text("\nprefix = 'a"), ":2: invalid TOML: "));
  CHECK(contains(error_of_text("prefix = 'a'\nprefix = 'b'"), ":2: invalid TOML: "));
  CHECK(contains(error_of_text("url = 'redis://a'\nurl = 'redis://b'"),
                 ": check its quotes, and whether the file has the key twice"));
  CHECK(contains(error_of_text("= 5"), ":1: invalid TOML"));
  CHECK(contains(error_of_text("url = redis://db1"),
                 ":1: invalid TOML: write the value of url in quotes: url = \"...\""));
  CHECK(contains(error_of_text("[run]\nwait = 10m"),
                 ":2: invalid TOML: write the value of wait in quotes: wait = \"...\""));
  // The library itself would abort on these.
  for (const char* text :
       {"[#", "[=", "[[[1]]]", "[[[", "[", "[[", "a.#", "a = [#", "a = {#", "\"a\nb"}) {
    CAPTURE(text);
    CHECK(contains(error_of_text(text), ": invalid TOML"));
  }
  CHECK(contains(error_of_text("\xff\xfe"), "invalid TOML"));
  for (const char* line :
       {"password = canary", "password = falcanary", "password = 0canary", "password = 'canary",
        "password = \"\\canary\"", "url = redis://:canary@h", "url = 'redis://:canary@h:x'",
        "password = ['canary']"}) {
    CAPTURE(line);
    std::string said = error_of_text(line);
    CHECK_FALSE(contains(said, "can"));
    CHECK_FALSE(contains(said, "nary"));
  }
}

TEST_CASE("a file with a password must be closed to others, wherever it holds it") {
  Folder folder;
  for (const char* text :
       {"password = 's'", "url = 'redis://:s@h'", "url = 'unix://u:s@/s'",
        "url = 'redis+sentinel://:s@h/m'", "url = 'redis+sentinel://h/m?sentinel_password=s'",
        "url = 'redis+cluster://:s@h'"}) {
    CAPTURE(text);
    for (mode_t mode : {0604, 0644, 0620, 0601}) {
      std::string path = folder.write("rlock.toml", text, mode);
      const char* closed = geteuid() == 0 ? "chmod 640 " : "chmod 600 ";
      CHECK(contains(error_of({}, run_call({"--config", path})), closed + path));
    }
    std::string of_group = folder.write("rlock.toml", text, 0640);
    auto read = run_call();
    CHECK(bool(resolve(read, fake_getenv, Words{of_group})) == (geteuid() == 0));
    configured(run_call(), {folder.write("rlock.toml", text, 0600)});
    configured(run_call(), {folder.write("rlock.toml", text, 0400)});
  }
  configured(run_call(),
             {folder.write("rlock.toml", "url = 'redis://h'\npassword-file = 'f'", 0644)});
}

TEST_CASE("a file of another user is refused if it has to be trusted") {
  if (geteuid() != 0) {
    MESSAGE("skipped: only root can give a file away");
    return;
  }
  Folder folder;
  std::string plain = folder.write("plain", "prefix = 'p:'");
  std::string secret = folder.write("secret", "password = 's'");
  REQUIRE(chown(plain.c_str(), 65534, 65534) == 0);
  REQUIRE(chown(secret.c_str(), 65534, 65534) == 0);
  CHECK(contains(error_of({plain}), "another user"));
  CHECK(contains(error_of({}, run_call({"--config", secret})), "another user"));
  configured(run_call({"--config", plain}), {});
}

TEST_CASE(
    "a password comes from a flag's file, the environment or a file of settings, in this order") {
  Folder folder;
  folder.write("secret", "of password-file\n");
  std::string literal = folder.write("literal", "password = 'of the file'");
  std::string named = folder.write("named", "password-file = 'secret'");
  auto password_of = [](const Choices& choices) {
    Choices with_url = choices;
    if (!with_url.has(Opt::url)) choose(with_url, Opt::url, {"redis://a"});
    auto options = connection_options(with_url);
    REQUIRE(options);
    return options->password;
  };
  CHECK(password_of(configured(run_call(), {literal})) == "of the file");
  CHECK(password_of(configured(run_call(), {named})) == "of password-file");
  CHECK(password_of(configured(run_call(), {literal, named})) == "of the file");
  CHECK(password_of(configured(run_call(), {named, literal})) == "of password-file");
  std::string flag = folder.path() + "/secret";
  CHECK(password_of(configured(run_call({"--password-file", flag}), {literal})) ==
        "of password-file");
  variables = {{"REDISCLI_AUTH", "of the environment"}};
  CHECK(password_of(configured(run_call(), {literal})) == "of the environment");
  CHECK(password_of(configured(run_call(), {named})) == "of the environment");
  CHECK(contains(error_of_text("password = 'a'\npassword-file = 'b'"), "cannot be used together"));
}

TEST_CASE("the password in a URL wins over a password from a source of lower precedence") {
  Folder folder;
  std::string machine = folder.write("machine", "user = 'u'\npassword = 's'\nurl = 'redis://db'");
  CHECK(configured(run_call(), {machine}).last(Opt::password) == "s");
  Choices flag = configured(run_call({"-u", "redis://:own@h"}), {machine});
  CHECK_FALSE(flag.has(Opt::password));
  CHECK_FALSE(flag.has(Opt::user));
  std::string user = folder.write("user", "url = 'redis://:own@h'");
  CHECK_FALSE(configured(run_call(), {user, machine}).has(Opt::password));
  variables = {{"RLOCK_URL", "redis://:own@h"}};
  CHECK_FALSE(configured(run_call(), {machine}).has(Opt::password));
}

TEST_CASE("user and password of a file that names a server are for that one alone") {
  Folder folder;
  folder.write("secret", "s");
  for (const char* login :
       {"password = 's'", "password-file = 'secret'", "password-command = 'x'"}) {
    CAPTURE(login);
    auto has_login = [](const Choices& choices) {
      return choices.has(Opt::user) || choices.has(Opt::password_file) ||
             choices.has(Opt::password_command) || choices.has(Opt::password);
    };
    const std::string text = std::string("user = 'u'\n") + login;
    std::string with_url = folder.write("with_url", text + "\nurl = 'redis://db'");
    std::string without = folder.write("without", text);
    std::string other = folder.write("other", "url = 'redis://h'");
    variables.clear();
    CHECK(has_login(configured(run_call(), {with_url})));
    CHECK_FALSE(has_login(configured(run_call({"-u", "redis://h"}), {with_url})));
    CHECK_FALSE(has_login(configured(run_call(), {other, with_url})));
    CHECK(has_login(configured(run_call({"-u", "redis://h"}), {without})));
    CHECK(has_login(configured(run_call({"-u", "redis://h"}), {with_url, without})));
    variables = {{"RLOCK_URL", "redis://h"}};
    CHECK_FALSE(has_login(configured(run_call(), {with_url})));
    CHECK(has_login(configured(run_call(), {other, without})));
  }
  variables.clear();
}

TEST_CASE(
    "the password of a file is used with RLOCK_URL only if it names the same servers in the same "
    "way") {
  Folder folder;
  folder.write("secret", "s");
  struct Pair {
    const char* environment;
    const char* file;
    bool same;
  };
  const Pair pairs[] = {
      {"redis://db", "redis://db", true},
      {"redis://db:6379/3", "redis://db", true},
      {"rediss://db", "redis://db", false},
      {"redis://db:6380", "redis://db", false},
      {"redis://db2", "redis://db", false},
      {"redis://u:p@db", "redis://db", false},
      {"unix:///s", "unix:///s", true},
      {"unix:///s", "unix:///t", false},
      {"redis+sentinel://a,b/m", "redis+sentinel://a,b/m", true},
      {"redis+sentinel://a,b/m", "redis+sentinel://a/m", false},
      {"redis+sentinel://a,b/m", "redis+sentinel://a,b/n", false},
      {"redis+cluster://a,b", "redis+cluster://a,b", true},
      {"redis+cluster://a,b", "redis+cluster://a,c", false},
      {"redis://a redis://b redis://c", "redis://a redis://b redis://c", true},
      {"redis://a redis://b redis://c", "redis://a redis://b redis://d", false},
      {"redis://a", "redis://a redis://b redis://c", false},
  };
  for (const Pair& pair : pairs) {
    CAPTURE(pair.environment);
    CAPTURE(pair.file);
    variables = {{"RLOCK_URL", pair.environment}};
    const Choices choices = configured(
        run_call(),
        {folder.write("f", util::format("url = '{}'\npassword-file = 'secret'", pair.file))});
    CHECK(choices.has(Opt::password_file) == pair.same);
    CHECK(choices.all(Opt::url) == split_urls(pair.environment));
  }
  const std::string plain = "url = 'rediss://db'\npassword-file = 'secret'\n";
  auto used = [&](const char* name, const char* value, const std::string& more) {
    variables = {{"RLOCK_URL", "rediss://db"}, {name, value}};
    return configured(run_call(), {folder.write("f", plain + more)}).has(Opt::password_file);
  };
  CHECK(used("RLOCK_PREFIX", "p:", ""));
  for (const char* name : {"RLOCK_CACERT", "RLOCK_SNI"}) {
    const std::string key = name == std::string("RLOCK_SNI") ? "sni" : "cacert";
    CHECK_FALSE(used(name, "/x", ""));
    CHECK_FALSE(used(name, "/x", key + " = '/y'"));
    CHECK(used(name, "/x", key + " = '/x'"));
  }
  CHECK_FALSE(used("RLOCK_INSECURE", "1", ""));
  CHECK(used("RLOCK_INSECURE", "1", "insecure = true"));
  CHECK(used("RLOCK_INSECURE", "0", ""));
  variables.clear();
}

TEST_CASE("a variable that begins with RLOCK_ and that no setting reads causes a warning") {
  using rlock::cli::variable_warnings;
  CHECK(variable_warnings(Words{"RLOCK_URI"}) ==
        Words{"warning: rlock does not know RLOCK_URI; ENVIRONMENT in rlock(1) lists what it "
              "reads, such as RLOCK_URL for the server"});
  CHECK(variable_warnings(Words{"RLOCK_SERVER", "RLOCK_WAIT"}).size() == 2);
  CHECK(variable_warnings(Words{"RLOCK_URI", "RLOCK_HELD"}).empty());
  CHECK(unknown_variables(Words{"PATH", "LOCK_URL_OF_ANOTHER", "RLCOK_PASSWORD"}).empty());
  CHECK(unknown_variables(Words{"RLOCK_PREFIXX", "RLOCK_PREFIX"}) == Words{"RLOCK_PREFIXX"});
  const Words of_rlock{"RLOCK_NAME",          "RLOCK_OWNER",    "RLOCK_TOKEN", "RLOCK_SLOT",
                       "RLOCK_WAITED_MS",     "RLOCK_UNLOCKED", "RLOCK_USER",  "REDISCLI_AUTH",
                       "RLOCK_PASSWORD_FILE", "RLOCK_UNSTABLE"};
  CHECK(unknown_variables(of_rlock).empty());
  const Words of_platforms{"RLOCK_SERVICE_HOST",
                           "RLOCK_SERVICE_PORT_REDIS",
                           "RLOCK_PORT",
                           "RLOCK_PORT_6379_TCP_ADDR",
                           "RLOCK_DB_SERVICE_HOST",
                           "RLOCK_DB_PORT",
                           "RLOCK_CI_NAME"};
  CHECK(unknown_variables(of_platforms).empty());
}

TEST_CASE("relative paths in a file start at its folder") {
  Folder folder;
  auto of = [&](const std::string& text) {
    return configured(run_call(), {folder.write("rlock.toml", text)});
  };
  CHECK(of("password-file = 'secret'").last(Opt::password_file) == folder.path() + "/secret");
  CHECK(of("password-file = '/secret'").last(Opt::password_file) == "/secret");
  CHECK(of("[run]\nevent-log = 'log'").last(Opt::event_log) == folder.path() + "/log");
  CHECK(of("url = 'local:locks'").last(Opt::url) == "local:" + folder.path() + "/locks");
  CHECK(of("url = 'local:/locks'").last(Opt::url) == "local:/locks");
  CHECK(of("url = 'local:'").last(Opt::url) == "local:");
}

TEST_CASE("the example is accepted as it is, and with each of its keys") {
  const std::string example = example_text();
  of_text(example);
  std::istringstream lines(example);
  std::string table;
  int keys = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('[')) table = line + "\n";
    if (line.size() < 2 || line[0] != '#' || line[1] == ' ') continue;
    CAPTURE(line);
    Choices choices = of_text(table + line.substr(1));
    CHECK(example.find(line) == example.rfind(line));
    const OptionRow* row = find_option(line.substr(1, line.find(' ') - 1));
    CHECK((row != nullptr && choices.has(row->id)));
    ++keys;
  }
  CHECK(keys > 10);
}

TEST_CASE("the example names every key") {
  const std::string example = example_text();
  for (const OptionRow& row : options()) {
    CAPTURE(row.name);
    CHECK(row.in_file == contains(example, "\n#" + std::string(row.name) + " = "));
  }
}

TEST_CASE("several URLs in one text are read alike from --url, RLOCK_URL and a file") {
  Folder folder;
  const Words urls{"redis://a", "redis://b", "valkey://c"};
  const char* blanks = "redis://a redis://b\tvalkey://c";
  auto of = [&](const std::string& text) {
    return configured(run_call(), {folder.write("rlock.toml", text)}).all(Opt::url);
  };
  CHECK(of("url = 'redis://a redis://b valkey://c'") == urls);
  CHECK(of("url = 'redis://a,redis://b,valkey://c'") == urls);
  CHECK(of("url = ['redis://a redis://b', 'valkey://c']") == urls);
  CHECK(run_call({"--url", blanks}).choices.all(Opt::url) == urls);
  CHECK(run_call({"-u", "redis://a, redis://b", "-u", "valkey://c"}).choices.all(Opt::url) == urls);
  variables["RLOCK_URL"] = blanks;
  CHECK(test::labels(*connection_options(configured(run_call(), {}))) ==
        Words{"a:6379", "b:6379", "c:6379"});
}
