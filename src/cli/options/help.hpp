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
// NAME consists of letters and spaces. nullopt if a hole has no text.
std::optional<std::string> fill_template(std::string_view source, const Holes& holes);

// The texts of --help, made from the options table: at most 80 columns, with a newline at the end.
// general_help() lists the commands, and with HelpLength::full also the connection options. Its end
// names `project`, the project's address; empty if the build does not know it.
std::string general_help(HelpLength length, std::string_view project);
// brief: the examples and the common options.
std::string command_help(CommandId command, HelpLength length);

// The help for a terminal: each heading, a line that ends in a colon and begins a paragraph, is
// bold.
std::string with_bold_headings(std::string_view help);

// Explains an exit code and what to do next; without a code, lists rlock's own codes.
std::string exit_code_help(std::optional<int> code);

// Says in short what rlock promises, and under which conditions.
std::string guarantees_help();

// A manual page from its template. The holes, which are filled from the tables of commands, options
// and exit codes: for the page of a command `@summary COMMAND@`, `@synopsis COMMAND@`,
// `@about COMMAND@`, `@options COMMAND@`, `@exit status COMMAND@`, `@examples COMMAND@` and
// `@related COMMAND@`; for rlock(1) `@commands@`, `@general options@`, `@exit status@` and
// `@least ACL rule@`, which becomes `acl_rule`; for docs/options.tsv
// `@option users@`. nullopt if the template has another hole.
std::optional<std::string> manual_page(std::string_view source, std::string_view acl_rule);

}  // namespace rlock::cli
