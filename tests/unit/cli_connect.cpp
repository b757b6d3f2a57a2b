#include "cli/settings/connect.hpp"

#include <doctest/doctest.h>

#include "cli/options/values.hpp"
#include "cli/settings/config.hpp"
#include "unit/cli_config.hpp"

using namespace rlock;
using namespace rlock::cli;
using test::fake_getenv;
using test::variables;

namespace {

using Urls = std::vector<std::string>;

Choices with_url() {
  Choices choices;
  choices.set(Opt::url, {"redis://a"});
  return choices;
}

}  // namespace

TEST_CASE("URLs are separated by white space or a comma where a scheme follows") {
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
  for (const char* prefix : {"a{b", "}", "\x1b", "\xff"}) {
    Choices choices = with_url();
    choices.set(Opt::prefix, {prefix});
    auto options = connection_options(choices, fake_getenv);
    REQUIRE_FALSE(options);
    CHECK(options.error().kind == ErrorKind::usage);
  }
}

TEST_CASE(
    "a URL given as a flag rules out the user and password of the environment where either has "
    "its own server") {
  using Who = std::pair<std::optional<std::string>, std::optional<std::string>>;
  auto who = [](const Choices& choices) {
    auto options = connection_options(choices, fake_getenv);
    REQUIRE(options);
    return Who{options->user, options->password};
  };
  const Who of_environment{"cache", "secret"};
  for (const char* password : {"RLOCK_PASSWORD", "REDISCLI_AUTH"}) {
    variables = {{"RLOCK_USER", "cache"}, {password, "secret"}};
    for (const char* url : {"redis://u:right@a", "redis://:right@a", "unix://:right@/s",
                            "redis+sentinel://:right@a/m", "redis+cluster://:right@a,b"}) {
      CAPTURE(url);
      Choices flag;
      flag.set(Opt::url, {url});
      CHECK(who(flag) == Who{});
      flag.set(Opt::user, {"flag"});
      CHECK(who(flag) == Who{"flag", std::nullopt});
      Choices file;
      file.set_from_file(Opt::url, {url}, "rlock.toml:1");
      CHECK(who(file) == of_environment);
      variables["RLOCK_URL"] = url;
      CHECK(who({}) == of_environment);
    }
    for (const char* url : {"redis://a", "redis+sentinel://a/m?sentinel_password=other"}) {
      CAPTURE(url);
      Choices flag;
      flag.set(Opt::url, {url});
      variables["RLOCK_URL"] = "redis://b";
      CHECK(who(flag) == Who{});
      variables.erase("RLOCK_URL");
      CHECK(who(flag) == of_environment);
    }
  }
  variables.clear();
}

TEST_CASE("the effective settings have no login that a URL given as a flag rules out") {
  variables = {{"RLOCK_USER", "cache"}, {"RLOCK_PASSWORD", "secret"}};
  auto shown = [](const Choices& choices) {
    return std::pair(effective_setting(Opt::user, choices, fake_getenv).source,
                     effective_setting(Opt::password_file, choices, fake_getenv).source);
  };
  using Sources = std::pair<Source, Source>;
  CHECK(shown(with_url()) == Sources{Source::environment, Source::environment});
  Choices flag;
  flag.set(Opt::url, {"redis://u:right@a"});
  CHECK(shown(flag) == Sources{Source::fallback, Source::fallback});
  variables["RLOCK_URL"] = "redis://b";
  CHECK(shown(with_url()) == Sources{Source::fallback, Source::fallback});
  CHECK(shown({}) == Sources{Source::environment, Source::environment});
  variables.clear();
}

TEST_CASE("the effective settings have no password of the environment beside --password-command") {
  variables = {{"RLOCK_PASSWORD", "secret"}};
  CHECK(effective_setting(Opt::password_file, {}, fake_getenv).name == "password");
  Choices choices;
  choices.set(Opt::password_command, {"pass show redis"});
  const EffectiveSetting file = effective_setting(Opt::password_file, choices, fake_getenv);
  CHECK(file.source == Source::fallback);
  CHECK(file.name == "password-file");
  CHECK(effective_setting(Opt::password_command, choices, fake_getenv).value == "pass show redis");
  variables.clear();
}

TEST_CASE("a password file that cannot be read is a configuration error") {
  const test::Folder folder;
  for (const std::string& path : {std::string("/nonexistent/secret"), std::string("/tmp"),
                                  std::string("/dev/zero"), folder.write("secret", "\n")}) {
    CAPTURE(path);
    Choices choices = with_url();
    choices.set(Opt::password_file, {path});
    auto options = connection_options(choices, fake_getenv);
    REQUIRE_FALSE(options);
    CHECK(options.error().kind == ErrorKind::config);
    CHECK(options.error().text.find(path) != std::string::npos);
  }
}
