#include "cli/settings/connect.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>

#include "cli/options/values.hpp"
#include "cli_fixture.hpp"
#include "support/scratch.hpp"

using namespace rlock;
using namespace rlock::cli;

namespace {

using Urls = std::vector<std::string>;

std::map<std::string, std::string> variables;

const char* fake_getenv(const char* name) {
  auto found = variables.find(name);
  return found == variables.end() ? nullptr : found->second.c_str();
}

// A file of this test's own, removed at the end.
class SecretFile {
 public:
  explicit SecretFile(const std::string& text) { std::ofstream(path()) << text; }
  std::string path() const { return scratch_.file("secret"); }

 private:
  test::Scratch scratch_;
};

Choices with_url() {
  Choices choices;
  choices.set(Opt::url, {"redis://a"});
  return choices;
}

std::optional<std::string> password_of(const Choices& choices) {
  auto options = connection_options(choices, fake_getenv);
  REQUIRE(options);
  return options->password;
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

TEST_CASE("without a server the message names every way to give one") {
  variables.clear();
  for (const char* value : {"", " "}) {
    variables["RLOCK_URL"] = value;
    auto options = connection_options({}, fake_getenv);
    REQUIRE_FALSE(options);
    CHECK(options.error().kind == ErrorKind::config);
    for (const char* part : {"--url", "RLOCK_URL", "rlock.toml", "local:"}) {
      CHECK(options.error().text.find(part) != std::string::npos);
    }
  }
}

TEST_CASE("a flag wins over the environment, the environment over the default") {
  variables = {{"RLOCK_URL", "redis://env"}, {"RLOCK_USER", "env"}, {"RLOCK_PREFIX", "env:"}};
  auto from_env = connection_options({}, fake_getenv);
  REQUIRE(from_env);
  CHECK(test::labels(*from_env) == Urls{"env:6379"});
  CHECK(from_env->user == "env");
  CHECK(from_env->prefix == "env:");
  CHECK(from_env->connect_timeout == Millis(2000));
  Choices choices = with_url();
  choices.set(Opt::user, {"flag"});
  choices.set(Opt::prefix, {"flag:"});
  choices.set(Opt::connect_timeout, {"500ms"});
  auto from_flags = connection_options(choices, fake_getenv);
  REQUIRE(from_flags);
  CHECK(test::labels(*from_flags) == Urls{"a:6379"});
  CHECK(from_flags->user == "flag");
  CHECK(from_flags->prefix == "flag:");
  CHECK(from_flags->connect_timeout == Millis(500));
  choices.set(Opt::connect_timeout, {"0"});
  CHECK_FALSE(connection_options(choices, fake_getenv));
}

TEST_CASE("the TLS options: a flag wins over the environment; RLOCK_INSECURE is 1 or 0") {
  variables = {{"RLOCK_CACERT", "env-ca"}, {"RLOCK_CERT", "env-crt"}, {"RLOCK_INSECURE", "1"}};
  Choices choices = with_url();
  choices.set(Opt::cacert, {"ca"});
  choices.set(Opt::cacertdir, {"dir"});
  choices.set(Opt::key, {"key"});
  choices.set(Opt::sni, {"name"});
  auto options = connection_options(choices, fake_getenv);
  REQUIRE(options);
  CHECK(options->tls.cacert == "ca");
  CHECK(options->tls.cacertdir == "dir");
  CHECK(options->tls.cert == "env-crt");
  CHECK(options->tls.key == "key");
  CHECK(options->tls.sni == "name");
  CHECK(options->tls.verify == redis::Verify::nothing);
  variables["RLOCK_INSECURE"] = "0";
  auto secure = connection_options(choices, fake_getenv);
  REQUIRE(secure);
  CHECK(secure->tls.verify == redis::Verify::peer);
  variables["RLOCK_INSECURE"] = "perhaps";
  CHECK_FALSE(connection_options(choices, fake_getenv));
  variables.clear();
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

TEST_CASE("the password comes from the file, RLOCK_PASSWORD or REDISCLI_AUTH, in this order") {
  variables = {{"REDISCLI_AUTH", "cli"}};
  CHECK(password_of(with_url()) == "cli");
  variables["RLOCK_PASSWORD"] = "own";
  CHECK(password_of(with_url()) == "own");
  SecretFile file(" s3cret \n\n");
  Choices choices = with_url();
  choices.set(Opt::password_file, {file.path()});
  CHECK(password_of(choices) == " s3cret \n");
  variables.clear();
  CHECK(password_of(with_url()) == std::nullopt);
}

TEST_CASE("a password file that others may write is refused, one that they may read is not") {
  variables.clear();
  SecretFile file("s");
  Choices choices = with_url();
  choices.set(Opt::password_file, {file.path()});
  for (mode_t mode : {0600, 0440, 0444, 0644}) {
    REQUIRE(chmod(file.path().c_str(), mode) == 0);
    CHECK(password_of(choices) == "s");
  }
  for (mode_t mode : {0620, 0602, 0666}) {
    REQUIRE(chmod(file.path().c_str(), mode) == 0);
    auto refused = connection_options(choices, fake_getenv);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::config);
    CHECK(refused.error().text.find("chmod go-w " + file.path()) != std::string::npos);
  }
}

TEST_CASE(
    "a URL given as a flag that says who we are rules out the user and password of the "
    "environment") {
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
      file.set_from_file(Opt::url, {url});
      CHECK(who(file) == of_environment);
      variables["RLOCK_URL"] = url;
      CHECK(who({}) == of_environment);
    }
    for (const char* url : {"redis://a", "redis+sentinel://a/m?sentinel_password=other"}) {
      CAPTURE(url);
      Choices flag;
      flag.set(Opt::url, {url});
      CHECK(who(flag) == of_environment);
    }
  }
  variables.clear();
}

TEST_CASE("a password file that cannot be read is a configuration error") {
  SecretFile empty("\n");
  for (const std::string& path : {std::string("/nonexistent/secret"), std::string("/tmp"),
                                  std::string("/dev/zero"), empty.path()}) {
    CAPTURE(path);
    Choices choices = with_url();
    choices.set(Opt::password_file, {path});
    auto options = connection_options(choices, fake_getenv);
    REQUIRE_FALSE(options);
    CHECK(options.error().kind == ErrorKind::config);
    CHECK(options.error().text.find(path) != std::string::npos);
  }
}
