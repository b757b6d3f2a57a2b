#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cli/options/parse.hpp"

namespace rlock::cli {

// Texts by the names of the holes that they fill.
using Holes = std::map<std::string, std::string, std::less<>>;

// `source` with each `@NAME@` replaced by the text of that hole, without the text's last newline; a
// NAME is made of letters and spaces. Nothing when a hole has no text.
std::optional<std::string> fill_template(std::string_view source, const Holes& holes);

// The texts of --help, made from the options table: at most 80 columns, with a newline at the end.
// The commands; with HelpLength::full, also the connection options.
std::string general_help(HelpLength length);
// brief: the examples and the common options.
std::string command_help(CommandId command, HelpLength length);

// The help for a terminal: each heading, a line alone that ends in a colon, is bold.
std::string with_bold_headings(std::string_view help);

// What an exit code means and what to do next; without a code, the list of those of rlock itself.
std::string exit_code_help(std::optional<int> code);

// rlock(1) from its template: `@options COMMAND@` and `@general options@` become lists of options
// from the table, `@exit status@` that of the exit codes, `@least ACL rule@` becomes `acl_rule`.
// rlock-stability(7) in the same way: `@option users@` becomes the rows of a table of all options.
// Nothing when the template has another hole.
std::optional<std::string> manual_page(std::string_view source, std::string_view acl_rule);

}  // namespace rlock::cli
