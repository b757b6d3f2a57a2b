#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/parse.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

// Parses the values of options.
namespace rlock::cli {

// An ErrorKind::usage with this text.
Error usage(std::string text);

// `--wait`, or `-c` for an option that has only a letter.
std::string shown_name(Opt id);

// A word from the user for an error message: in double quotes, shortened, printable.
std::string quoted_word(std::string_view word);

bool is_blank(std::string_view text);

// Whether the quotes around a value belong to the text itself, as docker --env-file leaves them.
bool is_quoted(std::string_view text);
inline constexpr std::string_view kRemoveQuotes =
    "it is in quotes; remove them, because not every program removes the quotes of a setting";

// Whether a template or a shell has left a variable in the text. Kubernetes, for example, leaves
// $(NAME) as it is: all hosts and runs would then mean the same thing by it.
bool has_variable(std::string_view text);
inline constexpr std::string_view kDefineVariable =
    "a shell or a template left the variable in it as it is; use double quotes in a shell, and "
    "check elsewhere that the variable is defined";

// Makes a setting of the command's option from the words. The word that help shows as the default,
// such as `forever`, keeps the option unset, even if a weaker source sets it.
// ErrorKind::usage names the option and the values that it accepts.
Result<Setting> make_setting(const OptionRow& row, std::vector<std::string> words, Source source,
                             std::string place, CommandId command = CommandId::run);

// The time from `now`, in ms since 1970, until the TIME of an option: `18:00`, which means its next
// occurrence, or `2026-11-24T06:00`, with seconds or without; with a Z at the end in UTC.
Result<Millis> time_left(Opt id, const std::string& text, int64_t now);

// Splits several URLs in one text of --url, RLOCK_URL or a file's url. White space or a comma
// separates two URLs if a scheme follows. Other commas separate the hosts of one URL; other blanks
// are part of the path of local:.
std::vector<std::string> split_urls(std::string_view text);

// All URLs of several texts. Keeps a text without a URL, so that it is later rejected as a URL.
std::vector<std::string> split_urls(const std::vector<std::string>& texts);

}  // namespace rlock::cli
