#include "cli/settings/format.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "cli/output/messages.hpp"
#include "cli/output/view.hpp"

namespace rlock::cli {
namespace {

using redis::Format;

// What the locks of other clients cannot store.
struct NativeOnlyOption {
  Opt option;
  const char* why;
};
constexpr const char* kNoMarks = "such locks have no record of what was done";
constexpr NativeOnlyOption kNativeOnlyOptions[] = {
    {Opt::slots, "such locks have one holder"},
    {Opt::shared, "such locks have one holder"},
    {Opt::min_hold, "such locks are free as soon as they are released"},
    {Opt::max_queue, "such locks have no queue"},
    {Opt::once, kNoMarks},
    {Opt::once_per, kNoMarks},
    {Opt::once_within, kNoMarks},
    {Opt::supersede, "such locks have no queue"},
    {Opt::while_closed, "such locks cannot be closed"},
    {Opt::history_rows, "such locks have no history"},
    {Opt::replicas, "rlock has no replica confirm such locks"},
    {Opt::token, "such locks have no fencing tokens"},
    {Opt::reason, "such locks store no text"},
};

}  // namespace

Result<Format> format_choice(const Choices& choices) {
  std::string word = choices.last(Opt::format).value_or("native");
  for (Format format : {Format::native, Format::plain, Format::redisson}) {
    if (word == to_string(format)) return format;
  }
  return Error{ErrorKind::usage,
               "--format must be native, plain or redisson, not " + in_quotes(word)};
}

Status check_format(const Choices& choices) {
  TRY(auto format, format_choice(choices));
  if (format == Format::native) return Done{};
  for (const NativeOnlyOption& native_only : kNativeOnlyOptions) {
    if (!choices.has(native_only.option)) continue;
    return Error{ErrorKind::usage, "--" + std::string(row_of(native_only.option).name) +
                                       " cannot be used with --format " +
                                       std::string(to_string(format)) + ": " + native_only.why};
  }
  return Done{};
}

bool is_native_only(Opt option) {
  return std::any_of(
      std::begin(kNativeOnlyOptions), std::end(kNativeOnlyOptions),
      [&](const NativeOnlyOption& native_only) { return native_only.option == option; });
}

Result<std::optional<lock::Owner>> owner_choice(const Choices& choices) {
  auto text = choices.last(Opt::owner);
  if (!text) return std::optional<lock::Owner>();
  TRY(auto format, format_choice(choices));
  if (text->empty()) return Error{ErrorKind::usage, "--owner is empty"};
  const bool any_text = !choices.has(Opt::format) || format != Format::native;
  if (any_text) return std::optional(lock::Owner::external(*std::move(text)));
  TRY(auto owner, lock::Owner::parse(*text));
  return std::optional(std::move(owner));
}

}  // namespace rlock::cli
