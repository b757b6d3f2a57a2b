#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands/commands.hpp"
#include "cli/commands/session.hpp"
#include "cli/commands/watch_screen.hpp"
#include "cli/output/console.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/output/json.hpp"
#include "cli/output/timestamp.hpp"
#include "cli/settings/connect.hpp"
#include "cli/watch/client.hpp"

namespace rlock::cli {
namespace {

Result<Watched> watched_locks(const Invocation& invocation) {
  TRY(auto locks, selection_of(invocation));
  Watched watched{std::move(locks.names), std::move(locks.patterns)};
  TRY(auto format, format_choice(invocation.choices));
  if (watched.is_listing() && format != redis::Format::native) {
    return Error{ErrorKind::usage, "watch --format " + std::string(to_string(format)) +
                                       " needs a NAME: locks of this format cannot be listed"};
  }
  return watched;
}

// Drives what is in flight, or waits for the next request, and ends it when it is over.
std::vector<Change> next_changes(WatchClient& client, lock::Poller& poller) {
  client.start_due(poller.now(), {});
  lock::Request* request = client.in_flight();
  const TimePoint until = client.due();
  if (request == nullptr) {
    poller.pause(until);
    return {};
  }
  const bool done = poller.drive(*request, until) == lock::PollResult::done;
  return done || poller.now() >= until ? client.finish(poller.now()) : std::vector<Change>{};
}

bool is_pipe(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
}

// Whether nobody reads stdout any more.
bool is_reader_gone() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return is_pipe(STDOUT_FILENO) && poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

std::string json_of(const std::vector<Change>& changes) {
  std::string text;
  for (const Change& change : changes) text += change_json(change, wall_clock());
  return text;
}

// One line for each difference, until a signal ends us or the reader has gone.
int report(WatchClient& client, const std::string& server, std::vector<Change> changes) {
  signal(SIGPIPE, SIG_IGN);
  lock::SystemPoller poller(is_pipe(STDOUT_FILENO) ? STDOUT_FILENO : -1);
  bool lost = false;
  while (!is_reader_gone()) {
    const bool is_lost = client.server().outage.has_value();
    std::string text = json_of(changes);
    if (is_lost != lost) {
      const auto why = is_lost ? std::optional(client.server().outage->why) : std::nullopt;
      text = server_change_json(server, why, wall_clock()) + text;
    }
    lost = is_lost;
    auto written = print(text);
    if (!written) {
      print_message(written.error().text);
      return exit_code(written.error().kind);
    }
    changes = next_changes(client, poller);
  }
  return kSuccess;
}

// The first reply within the connect timeout; later failures end nothing.
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

}  // namespace

int watch_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto watched = watched_locks(invocation);
  if (!watched) return fail(watched.error(), choices);
  auto session = Session::open(choices);
  if (!session) return fail(session.error(), choices);

  constexpr Millis kAnswer{3000};
  constexpr uint64_t kHoldersShown = 128, kHoldersReported = 1024;
  const bool on_screen = is_terminal(STDOUT_FILENO) && !choices.has(Opt::json);
  WatchModel model(*std::move(watched));
  WatchClient client(session->store(), model,
                     {session->connect_timeout() + kAnswer,
                      on_screen ? kHoldersShown : kHoldersReported, session->format()});
  auto first = first_contact(client, session->connect_timeout());
  if (!first) return fail(first.error(), choices);
  if (!on_screen) return report(client, session->server(), *std::move(first));
  auto code = WatchScreen::run(client, model, session->server());
  return code ? *code : fail(code.error(), choices);
}

}  // namespace rlock::cli
