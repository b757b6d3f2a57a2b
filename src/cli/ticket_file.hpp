#pragma once

#include <optional>
#include <string>

#include "cli/output/console.hpp"
#include "cli/session.hpp"
#include "cli/settings/run_settings.hpp"
#include "lock/store.hpp"
#include "redis/open.hpp"
#include "run/run_end.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::cli {

// What a ticket is for: it counts for no other lock, and for no other kind of waiter.
struct TicketPurpose {
  std::string name;
  std::string prefix;
  std::string databases;      // of the URLs
  bool while_closed = false;  // such a waiter stands before all others while the lock is closed
  bool operator==(const TicketPurpose&) const = default;
};
TicketPurpose ticket_purpose(const lock::AcquireCall& call, const redis::OpenOptions& options);

// The file of --ticket, which carries the position in the queue from a call whose wait ended to the
// next one. It is emptied when it is opened, so that a position counts once, whatever becomes of
// this call. A destroyed TicketFile lets another call use it.
class TicketFile {
 public:
  // ErrorKind::config: the file cannot be used, belongs to another user, or is no such file.
  static Result<TicketFile> open(const std::string& path, TicketPurpose purpose);

  // The ticket of an earlier call on this host, for at most 15 minutes after its end; 0: none.
  lock::Ticket ticket() const { return ticket_; }
  // Why the file has no ticket for this call; empty if it was empty.
  const std::string& remark() const { return remark_; }

  // Stores the ticket for the next call. ErrorKind::config: it cannot be stored.
  Status keep(lock::Ticket ticket) const;

 private:
  TicketFile(std::string path, TicketPurpose purpose)
      : path_(std::move(path)), purpose_(std::move(purpose)) {}
  Status take();

  std::string path_;
  TicketPurpose purpose_;
  util::Fd lock_;
  util::Fd file_;  // none: another call uses the file
  lock::Ticket ticket_{};
  std::string remark_;
};

// For how long a ticket counts.
inline constexpr Millis kTicketLife{15 * 60 * 1000};

// The file of --ticket, if given; prints why it has no ticket.
Result<std::optional<TicketFile>> open_ticket(const RunSettings& settings, const Session& session,
                                              Verbosity verbosity);

// Whether `outcome` is a wait that ended, and its ticket is stored; prints why it is not.
bool keep_position(const std::optional<TicketFile>& file, const run::RunOutcome& outcome,
                   Verbosity verbosity);

}  // namespace rlock::cli
