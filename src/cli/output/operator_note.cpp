#include "cli/output/operator_note.hpp"

#include "cli/output/record.hpp"
#include "cli/output/timestamp.hpp"
#include "util/text.hpp"

namespace rlock::cli {

std::string operator_note(const Choices& choices) {
  Record note = own_record();
  note.pid.reset();
  note.at = rfc3339(wall_clock());
  if (auto reason = choices.last(Opt::reason)) note.reason = util::to_utf8(*reason);
  return encode_record(note);
}

}  // namespace rlock::cli
