#include "lock/types.hpp"

#include "util/text.hpp"

namespace rlock::lock {

namespace {

bool has_control(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    bool c1 = c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (c < 0x20 || c == 0x7F || c1) return true;
  }
  return false;
}

constexpr const char* kEmpty = "it is empty; is its variable set?";
constexpr const char* kNoControl = "control characters are not allowed";

Error bad_name(std::string_view text, const char* why) {
  return {ErrorKind::usage, util::format("bad lock name \"{}\": {}",
                                         util::printable(util::shortened(text, 60)), why)};
}

}  // namespace

const char* why_bad_name(std::string_view text) {
  if (text.empty()) return kEmpty;
  if (text.size() > 200) return "it is longer than 200 bytes; use a shorter one";
  if (!util::is_utf8(text)) return "it is not UTF-8";
  if (has_control(text)) return kNoControl;
  for (char c : text) {
    if (c == '{' || c == '}') return "{ and } are not allowed";
    if (c == '*' || c == '?' || c == '[') return "*, ? and [ are not allowed, they make a pattern";
  }
  return nullptr;
}

Result<LockName> LockName::parse(std::string_view text) {
  const char* why = why_bad_name(text);
  if (why == nullptr) return LockName(text);
  return bad_name(text, why);
}

Result<LockName> LockName::parse_key(std::string_view text) {
  if (text.empty()) return bad_name(text, kEmpty);
  if (has_control(text)) return bad_name(text, kNoControl);
  return LockName(text);
}

Result<Owner> Owner::parse(std::string_view text) {
  if (text.empty()) {
    return Error{ErrorKind::usage,
                 "the owner id is empty: is its variable set, and did rlock acquire succeed?"};
  }
  if (text.size() != 32 || text.find_first_not_of("0123456789abcdef") != text.npos) {
    return Error{ErrorKind::usage,
                 util::format("bad owner \"{}\": an owner id has 32 hexadecimal digits; "
                              "`rlock status --json` prints it",
                              util::printable(util::shortened(text, 60)))};
  }
  return Owner(std::string(text));
}

}  // namespace rlock::lock
