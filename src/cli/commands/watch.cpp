// `rlock watch`: shows a screen on a terminal, and prints a line of JSON for each change elsewhere.
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "cli/commands/commands.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/json.hpp"
#include "cli/output/messages.hpp"
#include "cli/settings/connect.hpp"
#include "cli/settings/resolve.hpp"
#include "cli/watch/client.hpp"
#include "cli/watch/frame.hpp"
#include "cli/watch/screen.hpp"
#include "run/signals.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

Result<Selection> watched_locks(const Invocation& invocation) {
  TRY(auto watched, selection_of(invocation));
  const auto format = format_choice(invocation.choices);
  if (watched.is_listing() && format != redis::Format::native) {
    return usage(
        util::format("watch --format {} needs a NAME: locks of this format cannot be listed",
                     to_string(format)));
  }
  return watched;
}

// Drives the request in flight, or waits for the next request, until `most` at the latest. Returns
// the changes if a request has ended.
std::optional<std::vector<Change>> advance(WatchClient& client, lock::Poller& poller,
                                           TimePoint most = TimePoint::max()) {
  const TimePoint until = std::min(client.due(), most);
  lock::Request* request = client.in_flight();
  if (request == nullptr) {
    poller.pause(until);
    return std::nullopt;
  }
  const bool done = poller.drive(*request, until) == lock::PollResult::done;
  if (!done && poller.now() < client.due()) return std::nullopt;
  return client.finish(poller.now());
}

std::vector<Change> next_changes(WatchClient& client, lock::Poller& poller) {
  client.start_due(poller.now(), {});
  return advance(client, poller).value_or(std::vector<Change>{});
}

bool has_reader_to_lose(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

// Whether no process reads stdout any more.
bool is_reader_gone() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return has_reader_to_lose(STDOUT_FILENO) && poll(&out, 1, 0) > 0 &&
         (out.revents & (POLLERR | POLLHUP)) != 0;
}

// Prints one line for each difference, until a signal comes or the reader has gone.
int report_changes(WatchClient& client, const std::string& server, std::vector<Change> changes) {
  signal(SIGPIPE, SIG_IGN);
  auto poller = lock::SystemPoller::until_reader_is_gone(
      has_reader_to_lose(STDOUT_FILENO) ? STDOUT_FILENO : -1);
  bool lost = false;
  while (!is_reader_gone()) {
    const bool is_lost = client.server().outage.has_value();
    std::string text;
    if (is_lost != lost) {
      const auto why = is_lost ? std::optional(client.server().outage->why) : std::nullopt;
      text = server_change_json(server, why, wall_clock());
    }
    for (const Change& change : changes) text += change_json(change, wall_clock());
    lost = is_lost;
    if (const int code = print_result(text); code != kSuccess) return code;
    changes = next_changes(client, poller);
  }
  return kSuccess;
}

// Awaits the first reply within the connect timeout; later failures do not end the command.
Result<std::vector<Change>> first_contact(WatchClient& client, Millis connect_timeout) {
  lock::SystemPoller poller;
  const TimePoint give_up = poller.now() + connect_timeout;
  while (true) {
    auto changes = next_changes(client, poller);
    if (client.server().last_answer) return changes;
    if (!client.server().outage) continue;
    const Error& why = client.server().outage->why;
    if (why.retry == Retry::never || client.server().outage->next_try > give_up) return why;
  }
}

constexpr Millis kTick{1000};       // ages are shown in seconds
constexpr Millis kReplyTime{200};   // while the server answers, the next drawing shows its reply
constexpr Millis kEscapePause{50};  // the rest of a key's sequence follows immediately
constexpr uint64_t kWaitersRead = 128;

// `watch` on a terminal: draws what the client has read, and handles the keys.
class WatchScreen {
 public:
  WatchScreen(WatchClient& client, WatchModel& model, std::string server, TerminalKind kind,
              Screen& screen)
      : client_(client), model_(model), server_(std::move(server)), kind_(kind), screen_(screen) {}

  // Runs until q is typed (0), a signal comes, which is returned, or the terminal is gone.
  int loop() {
    lock::SystemPoller poller(screen_.signal_fd(), screen_.key_fd());
    while (true) {
      client_.start_due(poller.now(), on_screen(poller.now()));
      draw(poller.now());
      step(poller);
      if (const int signal = screen_.handle_signals(); signal != 0) return signal;
      if (screen_.is_blank()) news_ = true;
      if (const auto end = follow_keys(poller.now())) return *end;
    }
  }

 private:
  FrameInput input(TimePoint now) const {
    FrameInput input{model_, client_.server()};
    input.complete = client_.is_complete();
    input.server = server_;
    input.cursor = cursor_;
    input.columns = screen_.columns();
    input.rows = screen_.rows();
    input.now = now;
    return input;
  }

  OnScreen on_screen(TimePoint now) {
    const auto names = table_names(model_);
    const size_t page = page_of(input(now));
    cursor_ = settled(std::move(cursor_), names, page);
    OnScreen out;
    const size_t last = std::min(names.size(), cursor_.top + page);
    for (size_t i = std::min(cursor_.top, last); i < last; ++i) out.visible.push_back(names[i]);
    out.opened = cursor_.opened;
    out.waiters = std::max<uint64_t>(kWaitersRead, cursor_.opened_top + page);
    out.estimates = true;
    return out;
  }

  TimePoint next_draw() const {
    return drawn_at_ + kTick + (client_.server().outage ? Millis(0) : kReplyTime);
  }

  void draw(TimePoint now) {
    if (!news_ && (!kind_.moves || (!fresh_ && now < next_draw()))) return;
    FrameInput drawn = input(now);
    screen_.draw(frame(drawn));
    cursor_.opened_top = drawn.cursor.opened_top;
    news_ = fresh_ = false;
    drawn_at_ = now;
  }

  void step(lock::Poller& poller) {
    TimePoint until = std::max(next_draw(), poller.now());
    if (keys_.is_pending()) until = std::min(until, escape_ends_);
    const auto changes = advance(client_, poller, until);
    if (!changes) return;
    fresh_ = true;
    const bool lost = client_.server().outage.has_value();
    news_ = news_ || !changes->empty() || lost != was_lost_;
    was_lost_ = lost;
  }

  // The exit code if the user quits, as in loop(); SIGHUP if the terminal is gone.
  std::optional<int> follow_keys(TimePoint now) {
    auto bytes = screen_.read_keys();
    if (!bytes) return SIGHUP;
    std::vector<Key> keys;
    if (!bytes->empty()) {
      escape_ends_ = now + kEscapePause;
      keys = keys_.feed(*bytes);
    } else if (keys_.is_pending() && now >= escape_ends_) {
      keys = keys_.flush();
    }
    for (Key key : keys) {
      if (key == Key::quit) return 0;
      if (key == Key::redraw) screen_.forget();
      cursor_ = moved(std::move(cursor_), key, table_names(model_), page_of(input(now)));
      news_ = true;
    }
    return std::nullopt;
  }

  WatchClient& client_;
  WatchModel& model_;
  const std::string server_;
  TerminalKind kind_;
  Screen& screen_;
  Cursor cursor_{};
  KeyReader keys_{};
  TimePoint escape_ends_{};
  bool news_ = true;   // something has changed since the last drawing
  bool fresh_ = true;  // or the server has answered
  TimePoint drawn_at_{};
  bool was_lost_ = false;
};

}  // namespace

Result<Report> watch_command(const Invocation& invocation) {
  constexpr Millis kAnswer{3000};
  constexpr uint64_t kHoldersShown = 128, kHoldersReported = 1024;
  TRY(auto watched, watched_locks(invocation));
  TRY(auto session, Session::open(invocation.choices));
  const bool on_screen = is_terminal(STDOUT_FILENO) && !invocation.choices.has(Opt::json);
  WatchModel model(std::move(watched));
  WatchClient client(session.store(), model,
                     {session.connect_timeout() + kAnswer,
                      on_screen ? kHoldersShown : kHoldersReported, session.format()});
  TRY(auto first, first_contact(client, session.connect_timeout()));
  if (!on_screen) {
    return Report{.code = report_changes(client, session.server(), std::move(first))};
  }
  const TerminalKind kind = terminal_kind(system_getenv);
  TRY(auto screen, Screen::open(kind));
  const int signal = WatchScreen(client, model, session.server(), kind, screen).loop();
  screen.leave();
  if (signal != 0) run::die_by(signal);
  return Report{};
}

}  // namespace rlock::cli
