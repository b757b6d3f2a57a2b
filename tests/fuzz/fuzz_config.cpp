// rlock.toml
#include <cstdint>
#include "cli/settings/config.hpp"

#include "fuzz/property.hpp"
#include "util/text.hpp"

using namespace rlock;
using fuzz::require;

namespace {

constexpr const char* kPath = "/etc/rlock/rlock.toml";

void check(const Result<std::vector<cli::Setting>>& settings) {
  if (settings) {
    for (const cli::Setting& setting : *settings) {
      require(setting.line > 0, "a setting has a line");
      for (const std::string& value : setting.values) {
        require(value.find('\0') == value.npos, "no value holds a NUL");
      }
    }
    return;
  }
  const Error& error = settings.error();
  require(error.kind == ErrorKind::config, "a bad file is a configuration error");
  require(error.text.starts_with(std::string(kPath) + ":"), "the message names the file");
  require(fuzz::harmless_line(util::printable(error.text)), "the message about a file is harmless");
  require(error.text.find("canary") == error.text.npos, "no message shows a password");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(fuzz::text_of(data, size));
  bool quoted = text.find("canary") != text.npos;  // then it may be anything's name
  if (!quoted) {
    check(cli::parse_config(kPath, text));
    check(cli::parse_config(kPath, "password = \"canary" + text));
    check(cli::parse_config(kPath, text + "\npassword = canary"));
  }
  return 0;
}
