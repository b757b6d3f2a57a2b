#include "cli/options/values.hpp"

#include "util/duration.hpp"
#include "util/number.hpp"
#include "util/text.hpp"

namespace rlock::cli {

std::string shown_name(Opt id) {
  const OptionRow& row = row_of(id);
  return row.name.empty() ? std::string("-") + row.letter : "--" + std::string(row.name);
}

Result<std::optional<Millis>> duration_choice(const Choices& choices, Opt id) {
  auto text = choices.last(id);
  if (!text) return std::optional<Millis>();
  auto value = util::parse_duration(*text);
  if (!value) {
    return Error{ErrorKind::usage, shown_name(id) + ": " + util::printable(value.error().text)};
  }
  return std::optional(*value);
}

Result<std::optional<uint64_t>> number_choice(const Choices& choices, Opt id, uint64_t most) {
  auto text = choices.last(id);
  if (!text) return std::optional<uint64_t>();
  auto value = util::parse_number<uint64_t>(*text);
  if (!value || *value > most) {
    return Error{ErrorKind::usage, shown_name(id) + ": not a number from 0 to " +
                                       std::to_string(most) + ": \"" +
                                       util::printable(util::shortened(*text, 60)) + "\""};
  }
  return value;
}

}  // namespace rlock::cli
