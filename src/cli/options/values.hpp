#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/parse.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

// The values of options, parsed.
namespace rlock::cli {

// An ErrorKind::usage with this text.
Error usage(std::string text);

// `--wait`, or `-c` for an option that has only a letter.
std::string shown_name(Opt id);

// A word of the user's for an error message: in double quotes, shortened, printable.
std::string quoted_word(std::string_view word);

// The setting that these words make. ErrorKind::usage names the option and what it takes.
Result<Setting> make_setting(const OptionRow& row, std::vector<std::string> words, Source source,
                             std::string place);

// From now on, in ms since 1970, until the TIME of an option: `18:00`, which is the next one,
// `2026-11-24T06:00`, with seconds or without; with a Z at the end in UTC.
Result<Millis> time_left(Opt id, const std::string& text, int64_t now);

// Several URLs in one text of --url, RLOCK_URL or a file's url: they are separated by white space
// or a comma where a scheme follows. Other commas separate the hosts of one URL; other blanks are
// part of the path of local:.
std::vector<std::string> split_urls(std::string_view text);

// All the URLs of several texts. A text without one is kept, so that it is rejected as a URL later.
std::vector<std::string> split_urls(const std::vector<std::string>& texts);

}  // namespace rlock::cli
