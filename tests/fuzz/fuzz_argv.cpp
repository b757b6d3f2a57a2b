// The words of the command line, a line each.
#include <algorithm>
#include <cstdint>

#include "cli/commands/commands.hpp"
#include "cli/options/parse.hpp"
#include "cli/output/record.hpp"
#include "cli/settings/run_settings.hpp"
#include "fuzz/property.hpp"
#include "util/text.hpp"

using namespace rlock;
using fuzz::require;

namespace {

using Words = std::vector<std::string>;

const char* nothing_set(const char*) {
  return nullptr;
}

Words words_in(std::string_view text) {
  Words words;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    words.emplace_back(text.substr(0, text.substr(0, end).find('\0')));  // as argv has it
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

void check_message(const Error& error) {
  require(error.kind == ErrorKind::usage || error.kind == ErrorKind::config,
          "a bad word is a usage error");
  require(fuzz::harmless_line(util::printable(error.text)),
          "the message about an argument is harmless");
}

// Byte for byte.
void check_command(const cli::Invocation& invocation, const Words& words) {
  auto dashes = std::find(words.begin(), words.end(), "--");
  require(invocation.after_dashes.has_value() == (dashes != words.end()), "-- begins the command");
  if (dashes == words.end()) return;
  require(std::equal(dashes + 1, words.end(), invocation.after_dashes->begin(),
                     invocation.after_dashes->end()),
          "the command's words are left alone");
}

void check_settings(const cli::Invocation& invocation) {
  if (invocation.command == cli::CommandId::run) {
    auto settings = cli::run_settings(invocation, nothing_set);
    if (!settings) return check_message(settings.error());
    require(!settings->plan.argv.empty(), "a run has a command");
    require(settings->plan.claim.ttl >= Millis(1000), "a lease lasts a second at least");
    require(util::is_utf8(settings->plan.claim.record), "a record is UTF-8");
    require(settings->plan.claim.record.size() < 8192, "a record is short");
    require(settings->waiting.codes.busy >= 0 && settings->waiting.codes.busy <= 255,
            "a code is a code");
  }
  if (invocation.command == cli::CommandId::acquire) {
    auto settings = cli::acquire_settings(invocation);
    if (!settings) check_message(settings.error());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Words words = words_in(fuzz::text_of(data, size));
  auto command_line = cli::parse(words);
  (void)cli::asks_for_json(words);
  if (!command_line) {
    check_message(command_line.error());
  } else if (const auto* invocation = std::get_if<cli::Invocation>(&*command_line)) {
    check_command(*invocation, words);
    check_settings(*invocation);
  }
  std::string command = cli::command_text(words);
  require(command.size() <= 200 && util::is_utf8(command), "a shown command line is short UTF-8");
  return 0;
}
