#include "cli/format.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "cli/describe.hpp"

namespace rlock::cli {
namespace {

using redis::Format;
using util::Error;
using util::ErrorKind;
using util::Result;

// What other clients' locks have no room for.
struct Lack {
  Opt option;
  const char* why;
};
constexpr Lack kLacks[] = {
    {Opt::slots, "they have one holder"},           {Opt::shared, "they have one holder"},
    {Opt::min_hold, "they end with their release"}, {Opt::max_queue, "they have no queue"},
    {Opt::token, "they have no fencing tokens"},    {Opt::reason, "they have no room for a text"},
};

}  // namespace

std::string_view word_of(Format format) {
  switch (format) {
    case Format::native:
      return "native";
    case Format::plain:
      return "plain";
    case Format::redisson:
      return "redisson";
  }
  return "native";
}

Result<Format> format_choice(const Choices& choices) {
  std::string word = choices.last(Opt::format).value_or("native");
  for (Format format : {Format::native, Format::plain, Format::redisson}) {
    if (word == word_of(format)) return format;
  }
  return Error{ErrorKind::usage, "--format is native, plain or redisson, not " + in_quotes(word)};
}

util::Status check_format(const Choices& choices) {
  auto format = format_choice(choices);
  if (!format) return std::move(format).error();
  if (*format == Format::native) return util::Done{};
  for (const Lack& lack : kLacks) {
    if (!choices.has(lack.option)) continue;
    return Error{ErrorKind::usage, "--" + std::string(row_of(lack.option).name) +
                                       " makes no sense with --format " +
                                       std::string(word_of(*format)) + ": " + lack.why};
  }
  return util::Done{};
}

bool is_native_only(Opt option) {
  return std::any_of(std::begin(kLacks), std::end(kLacks),
                     [&](const Lack& lack) { return lack.option == option; });
}

Result<std::optional<lock::Owner>> owner_choice(const Choices& choices) {
  auto text = choices.last(Opt::owner);
  if (!text) return std::optional<lock::Owner>();
  auto format = format_choice(choices);
  if (!format) return std::move(format).error();
  if (text->empty()) return Error{ErrorKind::usage, "--owner is empty"};
  bool any = !choices.has(Opt::format) || *format != Format::native;
  if (any) return std::optional(lock::Owner::foreign(*std::move(text)));
  auto owner = lock::Owner::parse(*text);
  if (!owner) return std::move(owner).error();
  return std::optional(*std::move(owner));
}

}  // namespace rlock::cli
