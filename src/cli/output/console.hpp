#pragma once

#include <string>
#include <string_view>

#include "util/clock.hpp"
#include "util/result.hpp"

// The output for the caller: text on its descriptors, and an exit code.
namespace rlock::cli {

// Writes to stderr for at most `bound`, then gives up, because a full pipe or a stopped terminal
// must not delay a kill or a release. Returns the number of bytes written. Raises no signal,
// because a message that no process reads must not prevent the run.
size_t write_stderr(std::string_view text, Millis bound);

// Like write_stderr(), for stdout, for a terminal that is redrawn repeatedly.
size_t write_screen(std::string_view text, Millis bound);

// The limit for messages that are printed when no lock is held any more.
inline constexpr Millis kFinalPrintTimeout{1000};

// The importance of a message, used as its priority if stderr is systemd's journal. A message that
// begins with `warning: ` is always a warning.
enum class Weight { notice, warning, error };

// Prints one line `rlock: …` on stderr, within kFinalPrintTimeout.
void print_message(std::string_view message, Weight weight = Weight::error);
std::string message_line(std::string_view message, Weight weight);  // that line

enum class WithoutReader { ignored, error };  // what to do if a pipe has no reader any more

// Writes all of `text` to stdout, however long the reader takes. ErrorKind::system if that fails:
// the disk is full, or stdout was closed when rlock started.
Status print(std::string_view text, WithoutReader without_reader = WithoutReader::ignored);

bool is_terminal(int fd);

// Whether fd is a terminal and rlock is in its foreground, so that rlock may draw on it.
bool is_foreground_terminal(int fd);

// The columns of the terminal at fd, at least 20; 80 if fd is not a terminal or its size is
// unknown.
size_t columns(int fd);

// The maximum number of characters in a line of a listing: the columns of a terminal; elsewhere,
// for grep and cut, enough for all but hostile text.
size_t line_width(int fd);

// Asks on the controlling terminal and reads a line there. ErrorKind::busy for any answer but y or
// yes. ErrorKind::usage if stdin or stderr is not a terminal, because a script must not hang on a
// question: the error tells the user to add --yes to do `what`.
Status confirm(const std::string& question, const std::string& what);

enum ExitCode : int {
  kSuccess = 0,
  kNotHeld = 1,  // only from `status -q`
  kUsage = 64,
  kInternal = 70,
  kBusy = 75,
  kLost = 76,
  kRunLimit = 124,
};

inline int exit_code(ErrorKind kind) {
  return static_cast<int>(kind);
}

// The option that makes rlock try for longer to reach a server.
inline constexpr std::string_view kLongerConnect = "--connect-timeout 1m";
inline constexpr std::string_view kLongerWait = "a longer --wait";
inline constexpr std::string_view kSomeWait = "--wait 10m";

// The end of a message: for how long rlock has tried, and which command helps. Empty if no command
// does.
std::string next_step(const Error& error, std::string_view longer = kLongerConnect);

}  // namespace rlock::cli
