#pragma once

#include <string>

#include "cli/watch/client.hpp"
#include "cli/watch/keys.hpp"
#include "cli/watch/screen.hpp"
#include "lock/poller.hpp"

namespace rlock::cli {

// `watch` on a terminal: draws what the client has seen, and follows the keys.
class WatchScreen {
 public:
  // Until q is typed, a signal comes, which then ends the process, or the terminal is gone.
  static Result<int> run(WatchClient& client, WatchModel& model, const std::string& server);

 private:
  WatchScreen(WatchClient& client, WatchModel& model, const std::string& server,
              const TerminalKind& kind, Screen& screen)
      : client_(client), model_(model), server_(server), kind_(kind), screen_(screen) {}

  int loop();
  void step(lock::Poller& poller);
  void draw(TimePoint now);
  TimePoint next_draw() const;
  FrameInput input(TimePoint now) const;
  OnScreen on_screen(TimePoint now);
  // Whether the user wants to leave.
  bool follow_keys(TimePoint now);
  bool follow(const std::vector<Key>& keys, TimePoint now);

  WatchClient& client_;
  WatchModel& model_;
  const std::string& server_;
  TerminalKind kind_;
  Screen& screen_;
  Cursor cursor_{};
  KeyReader keys_{};
  TimePoint escape_ends_{};
  bool news_ = true;   // something has changed since the last lines
  bool fresh_ = true;  // or the server has answered
  TimePoint drawn_at_{};
  bool was_lost_ = false;
  bool gone_ = false;
};

}  // namespace rlock::cli
