// rlock.toml
#include <cstdint>
#include "cli/settings/config.hpp"

#include "fuzz/property.hpp"
#include "util/text.hpp"

using namespace rlock;
using fuzz::require;

namespace {

constexpr const char* kPath = "/etc/rlock/rlock.toml";

void check(const Result<cli::Layer>& layer) {
  if (layer) {
    for (const auto& [id, setting] : *layer) {
      require(setting.place.starts_with(std::string(kPath) + ":"), "a setting has its place");
      for (const std::string& word : setting.words) {
        require(word.find('\0') == word.npos, "no value holds a NUL");
      }
    }
    return;
  }
  const Error& error = layer.error();
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
