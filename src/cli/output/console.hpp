#pragma once

#include <string>
#include <string_view>

#include "util/clock.hpp"
#include "util/result.hpp"

// The one place that writes to the caller's descriptors.
namespace rlock::cli {

// Writes to stderr for at most `bound`, then gives up: a full pipe or a stopped terminal must hold
// up neither a kill nor a release. Returns how much was written. Never raises SIGTTOU (`stty
// tostop`).
size_t write_stderr(std::string_view text, Millis bound);

// For what is said when nothing is held any more.
inline constexpr Millis kFinalPrintTimeout{1000};

// One line `rlock: …` on stderr, within kLastWords.
void print_message(std::string_view message);
std::string message_line(std::string_view message);  // that line

// All of `text` to stdout, waiting as long as the reader takes. ErrorKind::system when it cannot be
// written (a full disk), Done for a reader that has gone.
Status print(std::string_view text);

// As print(), for what must not get lost: ErrorKind::system also for a reader that has gone, and
// where stdout was closed when rlock started.
Status print_or_fail(std::string_view text);

bool is_terminal(int fd);

// Whether we may draw on this terminal now: it is one, and we are in its foreground.
bool is_foreground_terminal(int fd);

// Columns of the terminal at fd, at least 20; `otherwise` where it is none or does not tell.
size_t columns(int fd, size_t otherwise);

// Characters a line of a listing may have there: elsewhere than on a terminal it is for grep and
// cut, and has room for all but hostile text.
size_t line_width(int fd);

}  // namespace rlock::cli
