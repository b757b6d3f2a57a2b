// The record of a holder, a waiter or an operator.
#include <cstdint>
#include "cli/output/record.hpp"

#include "fuzz/property.hpp"
#include "util/text.hpp"

using namespace rlock;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes = fuzz::text_of(data, size);
  cli::Record record = cli::decode_record(bytes);
  for (const auto& field : {record.host, record.user, record.command, record.reason, record.at}) {
    require(!field || util::is_utf8(*field), "a field is UTF-8");
  }
  require(!record.pid || *record.pid > 0, "a pid is a pid");
  require(fuzz::harmless_line(cli::who_text(record)), "who it is, is harmless");
  require(fuzz::harmless_line(cli::note_text(bytes)), "a note is harmless");
  require(util::display_width(cli::note_text(bytes)) < 300, "a note is short");

  std::string written = cli::encode_record(record);
  cli::Record again = cli::decode_record(written);
  if (written.size() > 32 * 1024) return 0;  // longer than any that is read
  require(again.host == record.host && again.user == record.user && again.pid == record.pid &&
              again.command == record.command && again.at == record.at,
          "a record survives a round trip");
  return 0;
}
