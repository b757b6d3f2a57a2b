#pragma once

#include <termios.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/watch/frame.hpp"
#include "run/signals.hpp"
#include "util/result.hpp"

namespace rlock::cli {

// The abilities of the terminal, from its environment: TERM, NO_COLOR, and LC_ALL, LC_CTYPE or
// LANG.
struct TerminalKind {
  bool moves = true;  // the cursor can move; a dumb terminal only prints line after line
  bool colours = true;
  bool utf8 = true;
};
TerminalKind terminal_kind(const char* (*environment)(const char*));

// The bytes that turn the lines `before` into `after`; all of `after` if `before` is empty.
std::string redrawn(const std::vector<Line>& before, const std::vector<Line>& after,
                    const TerminalKind& kind);

// The terminal at stdout and stdin: modes, signals, size. Its destruction restores the terminal.
class Screen {
 public:
  // Takes over the signals that end or stop the program, or resize the terminal.
  static Result<Screen> open(const TerminalKind& kind);
  Screen(Screen&&) noexcept = default;
  Screen& operator=(Screen&&) = delete;
  ~Screen();

  // Readable if signals or keys have come; -1: there are no keys.
  int signal_fd() const { return signals_.fd(); }
  int key_fd() const { return key_fd_; }
  // Handles what has come: a stop, a resumption, a new size. Returns the signal by which to end; 0:
  // none.
  int handle_signals();
  // The typed bytes; nullopt if the terminal is gone.
  std::optional<std::string> read_keys();

  size_t columns() const;
  size_t rows() const;
  // Shows the lines. What the terminal does not accept immediately is shown at the next call.
  void draw(std::vector<Line> lines);
  void forget() { drawn_.clear(); }  // the next draw() is complete
  bool is_blank() const { return drawn_.empty(); }
  void leave();

 private:
  Screen(const TerminalKind& kind, run::Signals signals, int key_fd);
  void enter();
  void stop();

  TerminalKind kind_;
  run::Signals signals_;
  int key_fd_;
  bool entered_ = false;
  std::optional<termios> before_{};
  std::vector<Line> drawn_{};
};

}  // namespace rlock::cli
