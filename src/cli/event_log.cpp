#include "cli/event_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/json.hpp"
#include "util/text.hpp"

namespace rlock::cli {

using run::EventKind;

std::string_view word_of(EventKind kind) {
  switch (kind) {
    case EventKind::enqueued:
      return "enqueued";
    case EventKind::acquired:
      return "acquired";
    case EventKind::entered:
      return "entered";
    case EventKind::unlocked:
      return "unlocked";
    case EventKind::renewed:
      return "renewed";
    case EventKind::renew_failed:
      return "renew-failed";
    case EventKind::lost:
      return "lost";
    case EventKind::terminating:
      return "terminating";
    case EventKind::killed:
      return "killed";
    case EventKind::exited:
      return "exited";
    case EventKind::released:
      return "released";
  }
  return "unknown";
}

util::Result<EventLog> EventLog::open(const std::string& path, const lock::AcquireCall& claim) {
  // Non-blocking: a named pipe that nobody reads must neither hang the start nor a renewal.
  util::Fd file(::open(path.c_str(),
                       O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
  if (!file) {
    return util::Error{
        util::ErrorKind::config,
        "cannot open the event log \"" + util::printable(path) + "\": " + std::strerror(errno)};
  }
  return EventLog(std::move(file), claim.name.text(), claim.owner.text());
}

void EventLog::append(const run::Event& event) {
  if (event.as) owner_ = event.as->text();
  std::string line = event_json({word_of(event.kind), event.at.time_since_epoch().count(), name_,
                                 owner_, event.token, event.detail});
  while (write(file_.get(), line.data(), line.size()) < 0 && errno == EINTR) {
  }
}

}  // namespace rlock::cli
