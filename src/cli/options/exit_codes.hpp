#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

// The only description of rlock's own exit codes. rlock help, run --help and EXIT STATUS of
// rlock(1) are made from it.
namespace rlock::cli {

struct ExitCodeRow {
  int code;
  std::string_view name;     // a phrase, for a list
  std::string_view meaning;  // sentences
  std::string_view next;     // sentences that say what to do
};

std::span<const ExitCodeRow> exit_codes();

// The number in `word`, if a process can exit with it.
std::optional<int> parse_exit_code(std::string_view word);

}  // namespace rlock::cli
