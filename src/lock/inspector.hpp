#pragma once

#include <cstdint>

#include "lock/store.hpp"

// What operators ask of a server: the state of locks, and to remove holders.
namespace rlock::lock {

// ---- force-unlock ----

// A holder as the listing showed it. A token of 0 is not checked, because the server may store
// another one for this owner, or none.
struct ForceTarget {
  Owner owner;
  Token token{};
};
// confirmed: a holder that is told of its revocation keeps counting until it has confirmed it.
enum class ForceWhen { confirmed, now };

struct ForceCall {
  LockName name;
  // Broken in one step; targets that do not hold the lock are skipped.
  std::vector<ForceTarget> targets;
  ForceWhen when = ForceWhen::confirmed;
  std::string note{};  // opaque: who breaks the lock and why; the holder reads it
};
struct Forced {
  std::vector<Holder> broken;
  std::vector<std::string> unconfirmed;  // the broken owners that still count until they confirm
  std::optional<std::string> next;       // the owner to which this call granted the lock
  // Owners that this same call broke before, if its reply was lost.
  std::vector<std::string> broken_before{};
};
struct NotHeld {};
struct NoMatch {};
using ForceReply = std::variant<Forced, NotHeld, NoMatch, RetryNow>;

// ---- close, open ----

// While a lock is closed, the server grants it only to AcquireCall::while_closed. Holders keep
// running. The call changes nothing if the closure differs from the one that the caller has seen.
struct ClosureCall {
  LockName name;
  std::optional<std::string> id{};    // of the new closure; nullopt: opens the lock
  std::optional<std::string> seen{};  // the id of the present closure
  ServerTime looked{};                // when the caller saw that
  Millis length{0};                   // of the new closure, from `looked` on
  std::string record{};               // opaque: who closes or opens the lock, and why
};
// changed: someone else changed the closure since the caller looked, or the new closure would
// already be over.
enum class ClosureReply { done, changed };

// ---- queue --first ----

// Moves a waiter to the head of the queue.
struct MoveCall {
  LockName name;
  Owner owner;
  std::string record;  // the waiter's record, with the operator who moved it
};
enum class MoveReply { moved, holds, not_found };

// ---- inspect ----

struct InspectCall {
  LockName name;
  uint64_t holders_from = 0;
  uint64_t waiters_from = 0;
  uint64_t holders_page = 128;
  uint64_t waiters_page = 128;  // 0 if the caller needs only a status
};
// A server of a quorum that did not give a usable reply.
struct SilentServer {
  std::string server;
  std::string why;
};
// How the runs of a lock ended, as the scripts count them; the history may list fewer. A loss is
// also a failure; a release without a result is neither a success nor a failure.
struct Counters {
  uint64_t runs = 0;
  uint64_t failures = 0;
  uint64_t losses = 0;      // the lease expired or was broken before the run ended
  uint64_t skips = 0;       // refused, or waited in vain
  uint64_t done = 0;        // found the work done
  uint64_t superseded = 0;  // skips because a newer run superseded them
  uint64_t held_ms = 0;     // how long runs have held the lock, present holders included
  uint64_t waited_ms = 0;   // how long the runs that have ended had waited
};
struct Success {
  ServerTime at{};
  Millis took{0};
  std::string record{};  // empty if it was too long
};
struct Failure {
  ServerTime at{};
  Millis took{0};
  // `exit:7`, `signal:9`, max-run, lost, no-guard, no-renewal, expired or forced
  std::string result{};
  std::string record{};  // empty if the newest rows of the history do not contain it
};
// The greatest number of Claim::supersede that was granted the lock within 30 days.
struct NewestNumber {
  uint64_t number = 0;
  ServerTime granted{};
  std::string record{};
};
struct Snapshot {
  bool known = false;           // some key of the lock exists
  std::vector<Holder> holders;  // live ones, cool-downs included
  uint64_t live_holders = 0;
  std::vector<Waiter> waiters;  // in order of service, live ones
  uint64_t live_waiters = 0;
  bool more_holders = false;
  bool more_waiters = false;
  Token last_grant{};  // 0 if nothing is remembered
  ServerTime now{};    // of the reply; 0 if the reply does not contain it
  Counters counters{};
  std::optional<Success> last_success{};
  std::optional<Failure> last_failure{};
  uint64_t failures_in_a_row = 0;  // since the last success
  std::optional<Closure> closure{};
  std::optional<NewestNumber> newest{};
  std::optional<NewerRules> needs{};  // to acquire the lock
  // Of a quorum: the number of servers, those that did not give a usable reply, and the owners with
  // leases on too few servers to hold the lock.
  uint64_t servers = 1;
  std::vector<SilentServer> silent{};
  std::vector<Holder> partial{};
};

// ---- forget: what was marked as done ----

struct ForgetCall {
  LockName name;
  std::optional<std::string> key{};  // only this --once KEY; nullopt: everything
  Token through{};  // marks of runs with later tokens stay; 0: marks of runs that have not ended
};
struct Forgotten {
  uint64_t marks = 0;     // of successes
  uint64_t failures = 0;  // KEYs and periods that had failed since
  uint64_t numbers = 0;   // of --supersede
};

// ---- history: the last runs and the skips between them, newest first ----

struct Run {
  Token token;
  ServerTime since;
  ServerTime until;
  std::string how;     // released, expired, forced
  std::string result;  // as the release reported it; `-`: unknown
  std::string record{};
  std::string note{};    // of the operator who broke the lock or its cool-down
  ServerTime renewed{};  // the last renewal of a run whose lease expired at `until`; else 0
};
// Acquisitions that were refused or timed out between two runs.
struct Skips {
  uint64_t count = 0;
  ServerTime first;
  ServerTime last;
  std::string record{};     // of the last of them
  uint64_t done = 0;        // how many ended because the work was done
  uint64_t superseded = 0;  // how many ended because a newer run superseded them
};
// A row for a closure, or for the opening of the lock before the closure's end.
struct Closing {
  ServerTime at;
  ServerTime until;  // 0: the lock was opened
  std::string record{};
};
using HistoryRow = std::variant<Run, Skips, Closing>;
using HistoryRows = std::vector<HistoryRow>;

struct NamesPage {
  std::vector<std::string> names;  // may repeat between pages
  std::string cursor{};            // empty: this is the last page
  // Among the names: those with a holder or waiters, and those stored by another version of rlock,
  // which cannot be read or not be acquired. Some of them are free, because their last run died.
  std::vector<std::string> in_use{};
  // Of a quorum, on the first page: the servers that did not give a usable reply.
  std::vector<SilentServer> silent{};
};

// For each of several locks, its snapshot or its own failure.
using Snapshots = std::vector<Result<Snapshot>>;
using Histories = std::vector<Result<HistoryRows>>;

// If a reply is lost, each call may be sent again with the same arguments.
class LockInspector {
 public:
  virtual ~LockInspector() = default;
  virtual InFlight<ForceReply> force_unlock(const ForceCall& call) = 0;
  virtual InFlight<Snapshot> inspect(const InspectCall& call) = 0;
  // Inspects several locks with one batch of commands. The results are in the order of the calls.
  // Returns an Error as a whole if no server could be asked.
  virtual InFlight<Snapshots> inspect_all(const std::vector<InspectCall>& calls) = 0;
  // ErrorKind::usage if the format has no closures.
  virtual InFlight<ClosureReply> set_closure(const ClosureCall&) {
    return ready<ClosureReply>(Error{ErrorKind::usage, "a lock of this format cannot be closed"});
  }
  // ErrorKind::usage if the format has no queue, or if each of several servers has its own.
  virtual InFlight<MoveReply> move_first(const MoveCall&) {
    return ready<MoveReply>(Error{ErrorKind::usage, "no queue that a single server orders"});
  }
  // Removes marks in such a way that a member of a quorum that was down does not restore them.
  // ErrorKind::usage if the format keeps no marks.
  virtual InFlight<Forgotten> forget(const ForgetCall&) {
    return ready<Forgotten>(
        Error{ErrorKind::usage, "this format keeps no record of what was done"});
  }
  // The newest `rows` of the history.
  virtual InFlight<HistoryRows> history(const LockName& name, uint64_t rows) = 0;
  // The same for several locks in one batch, like inspect_all(). ErrorKind::usage if there is no
  // list of all locks.
  virtual InFlight<Histories> histories(const std::vector<LockName>&, uint64_t) {
    return ready<Histories>(Error{ErrorKind::usage, "locks of this format cannot be listed"});
  }
  // Lists the names of the locks under the prefix, a page at a time; the cursor is empty for the
  // first page.
  virtual InFlight<NamesPage> list_names(const std::string& cursor) = 0;
  // Returns the cursor at which list_names() continues if the server of the page at `cursor` cannot
  // be reached; empty if there is no other server.
  virtual std::string cursor_past_server(const std::string& /*cursor*/) const { return {}; }
  // The address for messages, without a password.
  virtual std::string server() const = 0;
};

// One connection for both interfaces.
class LockServer : public LockStore, public LockInspector {
 public:
  std::string server() const override = 0;
};

using MakeInspector = std::function<std::unique_ptr<LockInspector>()>;
using MakeServer = std::function<std::unique_ptr<LockServer>()>;

}  // namespace rlock::lock
