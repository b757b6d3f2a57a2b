// Lock names, owners, and what becomes of any text that people see.
#include <cstdint>
#include "cli/output/messages.hpp"

#include "fuzz/property.hpp"
#include "lock/types.hpp"
#include "util/text.hpp"

using namespace rlock;
using fuzz::require;

namespace {

void check_text(std::string_view text) {
  std::string shown = util::printable(text);
  require(fuzz::harmless_line(shown), "printable text is harmless");
  require(util::printable(shown) == shown, "printable text stays as it is");
  require(shown.size() <= 10 * text.size(), "printable text is bounded");
  std::string valid = util::to_utf8(text);
  require(util::is_utf8(valid), "to_utf8 gives UTF-8");
  require(!util::is_utf8(text) || valid == text, "to_utf8 leaves UTF-8 alone");
  size_t width = text.size() % 17;
  std::string cut = util::shortened(valid, width);
  require(util::is_utf8(cut) && util::display_width(cut) <= width, "shortened text fits");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  check_text(text);
  require(fuzz::harmless_line(cli::in_quotes(text)), "quoted text is harmless");
  auto name = lock::LockName::parse(text);
  if (name) {
    require(name->text() == text, "a name is the text that it was read from");
    require(!text.empty() && size <= 200 && util::is_utf8(text), "a name is short UTF-8");
    require(text.find_first_of("{}\n\t\x1b") == text.npos, "a name holds no brace and no control");
  } else {
    require(name.error().kind == ErrorKind::usage, "a bad name is a usage error");
    require(fuzz::harmless_line(name.error().text), "its message is harmless");
  }
  auto owner = lock::Owner::parse(text);
  require(!owner || owner->text() == text, "an owner is the text that it was read from");
  require(owner || fuzz::harmless_line(owner.error().text),
          "the message about an owner is harmless");
  return 0;
}
