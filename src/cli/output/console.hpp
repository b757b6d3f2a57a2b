#pragma once

#include <string>
#include <string_view>

#include "util/clock.hpp"
#include "util/result.hpp"

// What the caller gets: text on its descriptors, and an exit code.
namespace rlock::cli {

// Writes to stderr for at most `bound`, then gives up: a full pipe or a stopped terminal must not
// delay a kill or a release. Returns how much was written. Never raises SIGTTOU (`stty tostop`).
size_t write_stderr(std::string_view text, Millis bound);

// As write_stderr(), to stdout: for a terminal that is drawn on again and again.
size_t write_screen(std::string_view text, Millis bound);

// For messages that are printed when no lock is held any more.
inline constexpr Millis kFinalPrintTimeout{1000};

// How much a message matters, if stderr is systemd's journal: its priority. One that begins with
// `warning: ` is a warning in any case.
enum class Weight { notice, warning, error };

// One line `rlock: …` on stderr, within kFinalPrintTimeout.
void print_message(std::string_view message, Weight weight = Weight::error);
std::string message_line(std::string_view message, Weight weight);  // that line

enum class WithoutReader { ignored, error };  // the reader of a pipe has gone

// Writes all of `text` to stdout, for as long as the reader takes. ErrorKind::system when it cannot
// be written: a full disk, or stdout was closed at the start of rlock.
Status print(std::string_view text, WithoutReader without_reader = WithoutReader::ignored);

bool is_terminal(int fd);

// Whether fd is a terminal and rlock is in its foreground, so that it may draw there now.
bool is_foreground_terminal(int fd);

// Columns of the terminal at fd, at least 20; 80 where fd is no terminal or its size is unknown.
size_t columns(int fd);

// How many characters a line of a listing may have: the columns of a terminal; elsewhere, for grep
// and cut, enough for all but hostile text.
size_t line_width(int fd);

// Asks on the controlling terminal and reads a line there. ErrorKind::busy for anything but y or
// yes. ErrorKind::usage where stdin or stderr is no terminal, since a script must not hang on a
// question: it names --yes, with which `what` is done.
Status confirm(const std::string& question, const std::string& what);

enum ExitCode : int {
  kSuccess = 0,
  kNotHeld = 1,  // of `status -q`
  kUsage = 64,
  kInternal = 70,
  kBusy = 75,
  kLost = 76,
  kRunLimit = 124,
};

inline int exit_code(ErrorKind kind) {
  return static_cast<int>(kind);
}

// What makes rlock try for longer to reach a server.
inline constexpr std::string_view kLongerConnect = "--connect-timeout 1m";
inline constexpr std::string_view kLongerWait = "a longer --wait";
inline constexpr std::string_view kSomeWait = "--wait 10m";

// The end of a message: for how long rlock has tried, and which command helps further. Empty where
// none does.
std::string next_step(const Error& error, std::string_view longer = kLongerConnect);

}  // namespace rlock::cli
