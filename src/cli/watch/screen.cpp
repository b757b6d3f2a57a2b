#include "cli/watch/screen.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <utility>

#include "cli/output/console.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// The alternate screen, without a cursor and without wrapping.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr std::string_view kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";

std::string_view colour_of(LineStyle style) {
  return util::to_string<LineStyle::alarm>(style,
                                           {"", "\x1b[1m", "\x1b[7m", "\x1b[2m", "\x1b[31m"});
}

// Replaces the ellipsis by a tilde, and each other character outside ASCII by a question mark.
std::string to_ascii(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, std::max<size_t>(1, util::utf8_length(text)));
    const bool ascii = character.size() == 1 && static_cast<uint8_t>(character.front()) < 0x80;
    out += ascii ? character.front() : character == "\xE2\x80\xA6" ? '~' : '?';
    text.remove_prefix(character.size());
  }
  return out;
}

std::string painted(const Line& line, const TerminalKind& kind) {
  const std::string text = kind.utf8 ? line.text : to_ascii(line.text);
  const std::string_view colour = kind.colours ? colour_of(line.style) : "";
  return colour.empty() || text.empty() ? text : util::format("{}{}\x1b[0m", colour, text);
}

// A terminal other than the controlling one has no foreground process group of ours.
bool may_draw() {
  const pid_t foreground = tcgetpgrp(STDOUT_FILENO);
  return foreground < 0 || foreground == getpgrp();
}

// Undoes a ^S, with which the terminal would stay as it is. TCOON undoes only TCOOFF.
void resume_output() {
  if (!may_draw()) return;
  tcflow(STDOUT_FILENO, TCOOFF);
  tcflow(STDOUT_FILENO, TCOON);
}

}  // namespace

TerminalKind terminal_kind(const char* (*environment)(const char*)) {
  auto text = [&](const char* name) {
    const char* value = environment(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  std::string_view locale = text("LC_ALL");
  if (locale.empty()) locale = text("LC_CTYPE");
  if (locale.empty()) locale = text("LANG");
  const std::string lower = util::lower_case(locale);
  TerminalKind kind;
  kind.moves = !text("TERM").empty() && text("TERM") != "dumb";
  kind.colours = kind.moves && text("NO_COLOR").empty();
  kind.utf8 = lower.find("utf-8") != lower.npos || lower.find("utf8") != lower.npos;
  return kind;
}

std::string redrawn(const std::vector<Line>& before, const std::vector<Line>& after,
                    const TerminalKind& kind) {
  std::string out;
  if (!kind.moves) {
    const auto last = std::find_if(after.rbegin(), after.rend(),
                                   [](const Line& line) { return !line.text.empty(); });
    for (auto line = after.begin(); line != last.base(); ++line) out += painted(*line, kind) + "\n";
    return out;
  }
  if (before.size() != after.size()) out = "\x1b[H\x1b[2J";
  for (size_t i = 0; i < after.size(); ++i) {
    if (before.size() == after.size() && before[i] == after[i]) continue;
    out += util::format("\x1b[{};1H{}\x1b[K", i + 1, painted(after[i], kind));
  }
  return out;
}

Result<Screen> Screen::open(const TerminalKind& kind) {
  TRY(auto signals, run::Signals::take());
  TRY_STATUS(signals.watch_command());  // for SIGWINCH
  TRY_STATUS(signals.watch_stops());
  return Screen(kind, std::move(signals), is_terminal(STDIN_FILENO) ? STDIN_FILENO : -1);
}

Screen::Screen(const TerminalKind& kind, run::Signals signals, int key_fd)
    : kind_(kind), signals_(std::move(signals)), key_fd_(key_fd) {
  enter();
}

Screen::~Screen() {
  if (signals_.fd() >= 0) leave();
}

// In the background the kernel stops rlock here, until it is in the foreground.
void Screen::enter() {
  termios modes{};
  if (key_fd_ >= 0 && tcgetattr(key_fd_, &modes) == 0) {
    if (!entered_) before_ = modes;
    modes.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    modes.c_cc[VMIN] = 1;
    modes.c_cc[VTIME] = 0;
    while (tcsetattr(key_fd_, TCSADRAIN, &modes) != 0 && errno == EINTR) {
    }
  }
  if (kind_.moves) write_screen(kEnter, kFinalPrintTimeout);
  entered_ = true;
  drawn_.clear();
}

void Screen::leave() {
  if (!std::exchange(entered_, false)) return;
  resume_output();
  if (kind_.moves) write_screen(kLeave, kFinalPrintTimeout);
  if (before_) tcsetattr(key_fd_, TCSADRAIN, &*before_);
}

// Stops as usual: in an orphaned process group, which no process would resume, the kernel does
// nothing.
void Screen::stop() {
  leave();
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  sigprocmask(SIG_BLOCK, &only, nullptr);
  enter();
}

int Screen::handle_signals() {
  while (const int signal = signals_.next_number()) {
    switch (signal) {
      case SIGTSTP:
        stop();
        break;
      case SIGCONT:
        enter();
        break;
      case SIGWINCH:
        forget();
        break;
      case SIGCHLD:  // of what printed a password
        break;
      default:
        return signal;
    }
  }
  return 0;
}

std::optional<std::string> Screen::read_keys() {
  std::array<char, 256> bytes;
  pollfd waited{key_fd_, POLLIN, 0};
  if (key_fd_ < 0 || poll(&waited, 1, 0) <= 0) return std::string();
  const ssize_t n = read(key_fd_, bytes.data(), bytes.size());
  if (n > 0) return std::string(bytes.data(), static_cast<size_t>(n));
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return std::string();
  return std::nullopt;
}

size_t Screen::columns() const {
  return cli::columns(STDOUT_FILENO);
}

size_t Screen::rows() const {
  constexpr size_t kStandard = 24;
  constexpr size_t kMost = 1000;
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
  return known ? std::min<size_t>(size.ws_row, kMost) : kStandard;
}

void Screen::draw(std::vector<Line> lines) {
  const std::string bytes = redrawn(drawn_, lines, kind_);
  if (bytes.empty() || !may_draw()) return;
  constexpr Millis kPatience{100};
  const bool complete = write_screen(bytes, kPatience) == bytes.size();
  drawn_ = complete ? std::move(lines) : std::vector<Line>{};
}

}  // namespace rlock::cli
