#include "cli/commands/watch_screen.hpp"

#include <signal.h>

#include <algorithm>

#include "cli/output/exit_code.hpp"
#include "cli/settings/connect.hpp"
#include "run/signals.hpp"

namespace rlock::cli {
namespace {

constexpr Millis kTick{1000};       // ages are in seconds
constexpr Millis kReplyTime{200};   // while the server answers, its reply is what is drawn next
constexpr Millis kEscapePause{50};  // the rest of a key's sequence comes at once
constexpr uint64_t kWaitersRead = 128;

}  // namespace

Result<int> WatchScreen::run(WatchClient& client, WatchModel& model, const std::string& server) {
  const TerminalKind kind = terminal_kind(system_getenv);
  TRY(auto screen, Screen::open(kind));
  const int signal = WatchScreen(client, model, server, kind, screen).loop();
  screen.leave();
  if (signal != 0) run::die_by(signal);
  return kSuccess;
}

FrameInput WatchScreen::input(TimePoint now) const {
  FrameInput input{model_, client_.server()};
  input.complete = client_.is_complete();
  input.server = server_;
  input.cursor = cursor_;
  input.columns = screen_.columns();
  input.rows = screen_.rows();
  input.now = now;
  return input;
}

OnScreen WatchScreen::on_screen(TimePoint now) {
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

TimePoint WatchScreen::next_draw() const {
  return drawn_at_ + kTick + (client_.server().outage ? Millis(0) : kReplyTime);
}

void WatchScreen::draw(TimePoint now) {
  if (!news_ && (!kind_.moves || (!fresh_ && now < next_draw()))) return;
  FrameInput drawn = input(now);
  screen_.draw(frame(drawn));
  cursor_.opened_top = drawn.cursor.opened_top;
  news_ = fresh_ = false;
  drawn_at_ = now;
}

// The signal by which to end; 0: the user typed q.
int WatchScreen::loop() {
  lock::SystemPoller poller(screen_.signal_fd(), screen_.key_fd());
  while (true) {
    client_.start_due(poller.now(), on_screen(poller.now()));
    draw(poller.now());
    step(poller);
    if (const int signal = screen_.handle_signals(); signal != 0) return signal;
    if (screen_.is_blank()) news_ = true;
    if (follow_keys(poller.now())) return 0;
    if (gone_) return SIGHUP;
  }
}

void WatchScreen::step(lock::Poller& poller) {
  TimePoint until = std::min(client_.due(), std::max(next_draw(), poller.now()));
  if (keys_.is_pending()) until = std::min(until, escape_ends_);
  lock::Request* request = client_.in_flight();
  if (request == nullptr) {
    poller.pause(until);
    return;
  }
  const bool done = poller.drive(*request, until) == lock::PollResult::done;
  if (!done && poller.now() < client_.due()) return;
  fresh_ = true;
  const bool changed = !client_.finish(poller.now()).empty();
  const bool lost = client_.server().outage.has_value();
  news_ = news_ || changed || lost != was_lost_;
  was_lost_ = lost;
}

bool WatchScreen::follow_keys(TimePoint now) {
  auto bytes = screen_.read_keys();
  if (!bytes) {
    gone_ = true;
    return false;
  }
  if (!bytes->empty()) {
    escape_ends_ = now + kEscapePause;
    return follow(keys_.feed(*bytes), now);
  }
  return keys_.is_pending() && now >= escape_ends_ && follow(keys_.flush(), now);
}

bool WatchScreen::follow(const std::vector<Key>& keys, TimePoint now) {
  for (Key key : keys) {
    if (key == Key::quit) return true;
    if (key == Key::redraw) screen_.forget();
    cursor_ = moved(std::move(cursor_), key, table_names(model_), page_of(input(now)));
    news_ = true;
  }
  return false;
}

}  // namespace rlock::cli
