#include "cli/settings/connect.hpp"

#include <doctest/doctest.h>

#include "cli/options/values.hpp"
#include "cli/settings/config.hpp"
#include "unit/cli_config.hpp"

using namespace rlock;
using namespace rlock::cli;
using test::choose;
using test::fake_getenv;
using test::variables;

namespace {

using Urls = std::vector<std::string>;

Choices with_url() {
  Choices choices;
  choose(choices, Opt::url, {"redis://a"});
  return choices;
}

}  // namespace

TEST_CASE("URLs are separated by white space or a comma if a scheme follows") {
  CHECK(split_urls("") == Urls{});
  CHECK(split_urls("  \n ") == Urls{});
  CHECK(split_urls("redis://a") == Urls{"redis://a"});
  CHECK(split_urls(" redis://a\tredis://b\n") == Urls{"redis://a", "redis://b"});
  CHECK(split_urls("redis://a,rediss://b,unix:///c") ==
        Urls{"redis://a", "rediss://b", "unix:///c"});
  CHECK(split_urls("redis://a, redis://b") == Urls{"redis://a", "redis://b"});
  CHECK(split_urls("redis+sentinel://h1:26379,h2:26379/m") ==
        Urls{"redis+sentinel://h1:26379,h2:26379/m"});
  CHECK(split_urls("redis+cluster://a,b,redis+cluster://c,d") ==
        Urls{"redis+cluster://a,b", "redis+cluster://c,d"});
  CHECK(split_urls("local:,local:/dir") == Urls{"local:", "local:/dir"});
  CHECK(split_urls("local:/my locks/of today  redis://b ") ==
        Urls{"local:/my locks/of today", "redis://b"});
  CHECK(split_urls("redis://u:se cret@db1") == Urls{"redis://u:se cret@db1"});
}

TEST_CASE("a prefix that would break the keys is refused") {
  variables.clear();
  for (const char* prefix : {"a{b", "}", "team$:", "\x1b", "\xff"}) {
    Choices choices = with_url();
    choose(choices, Opt::prefix, {prefix});
    auto options = connection_options(choices);
    REQUIRE_FALSE(options);
    CHECK(options.error().kind == ErrorKind::usage);
  }
}

TEST_CASE("a URL flag excludes a user and password of the environment for another server") {
  const test::Folder folder;
  using Who = std::pair<std::optional<std::string>, std::optional<std::string>>;
  auto who = [](const test::Words& flags, const test::Words& files = {}) {
    auto options = connection_options(test::configured(test::run_call(flags), files));
    REQUIRE(options);
    return Who{options->user, options->password};
  };
  const Who of_environment{"cache", "secret"};
  for (const char* password : {"RLOCK_PASSWORD", "REDISCLI_AUTH"}) {
    for (const char* url : {"redis://u:right@a", "redis://:right@a", "unix://:right@/s",
                            "redis+sentinel://:right@a/m", "redis+cluster://:right@a,b"}) {
      CAPTURE(url);
      variables = {{"RLOCK_USER", "cache"}, {password, "secret"}};
      CHECK(who({"-u", url}) == Who{});
      CHECK(who({"-u", url, "--user", "flag"}) == Who{"flag", std::nullopt});
      CHECK(who({}, {folder.write("rlock.toml", "url = '" + std::string(url) + "'")}) ==
            of_environment);
      variables["RLOCK_URL"] = url;
      CHECK(who({}) == of_environment);
    }
    for (const char* url : {"redis://a", "redis+sentinel://a/m?sentinel_password=other"}) {
      CAPTURE(url);
      variables["RLOCK_URL"] = "redis://b";
      CHECK(who({"-u", url}) == Who{});
      variables.erase("RLOCK_URL");
      CHECK(who({"-u", url}) == of_environment);
    }
  }
  variables.clear();
}

TEST_CASE(
    "a password of the environment is not used with --password-command, and a file's is not with "
    "one of the environment") {
  const test::Folder folder;
  variables = {{"RLOCK_PASSWORD", "secret"}};
  const std::string file = folder.write("rlock.toml", "password-file = 'x'");
  auto choices = [&](const test::Words& flags) {
    return test::configured(test::run_call(flags), {file});
  };
  CHECK(choices({})[Opt::password].place == "RLOCK_PASSWORD");
  CHECK_FALSE(choices({}).has(Opt::password_file));
  const Choices command = choices({"--password-command", "pass show redis"});
  CHECK_FALSE(command.has(Opt::password));
  CHECK_FALSE(command.has(Opt::password_file));
  variables.clear();
}

TEST_CASE("one source names one password, and REDISCLI_AUTH is the weakest of the environment") {
  const test::Folder folder;
  variables = {{"RLOCK_PASSWORD_FILE", "/p"}, {"REDISCLI_AUTH", "secret"}};
  const Choices choices = test::configured(test::run_call(), {});
  CHECK(choices.last(Opt::password_file) == "/p");
  CHECK_FALSE(choices.has(Opt::password));
  variables["RLOCK_PASSWORD"] = "secret";
  Invocation both = test::run_call();
  auto refused = resolve(both, fake_getenv, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::usage);
  CHECK(refused.error().text == "RLOCK_PASSWORD and RLOCK_PASSWORD_FILE cannot be used together");
  CHECK(test::configured(test::run_call({"--password-file", "/q"}), {})[Opt::password_file].place ==
        "--password-file");
  variables.clear();
}

TEST_CASE("a password file that cannot be read is a configuration error") {
  const test::Folder folder;
  for (const std::string& path : {std::string("/nonexistent/secret"), std::string("/tmp"),
                                  std::string("/dev/zero"), folder.write("secret", "\n")}) {
    CAPTURE(path);
    Choices choices = with_url();
    choose(choices, Opt::password_file, {path});
    auto options = connection_options(choices);
    REQUIRE_FALSE(options);
    CHECK(options.error().kind == ErrorKind::config);
    CHECK(options.error().text.find(path) != std::string::npos);
  }
}
