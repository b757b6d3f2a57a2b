#pragma once

#include <cstdint>

#include "lock/store.hpp"

// What operators ask of a server: how a lock looks, and that a holder is removed.
namespace rlock::lock {

// ---- force-unlock ----

// A holder as it was listed. Token 0: it is not checked, since the server may have another one for
// this owner, or none.
struct ForceTarget {
  Owner owner;
  Token token{};
};
// confirmed: a holder that receives its revocation counts until it has confirmed.
enum class ForceWhen { confirmed, now };

struct ForceCall {
  LockName name;
  std::vector<ForceTarget> targets;  // in one step; those that do not hold the lock are left out
  ForceWhen when = ForceWhen::confirmed;
  std::string note{};  // opaque: who does it and why; the holder reads it
};
struct Forced {
  std::vector<Holder> broken;
  std::vector<std::string> unconfirmed;  // of those, the owners that still count until they confirm
  std::optional<std::string> next;       // granted by this call
  std::vector<std::string> broken_before{};  // by this very call, whose reply was lost: the owners
};
struct NotHeld {};
struct NoMatch {};
using ForceReply = std::variant<Forced, NotHeld, NoMatch, RetryNow>;

// ---- close, open ----

// While a lock is closed, only AcquireCall::while_closed is granted it. Holders keep running.
// Changes nothing if the closure differs from what the caller has seen.
struct ClosureCall {
  LockName name;
  std::optional<std::string> id{};    // of the new closure; none: opens the lock
  std::optional<std::string> seen{};  // the id of the present one
  ServerTime looked{};                // when that was
  Millis length{0};                   // of the new one, from then on
  std::string record{};               // opaque: who does it and why
};
// changed: by somebody else since the caller looked, or the end of the new closure has come.
enum class ClosureReply { done, changed };

// ---- queue --first ----

// Moves a waiter to the head of the queue.
struct MoveCall {
  LockName name;
  Owner owner;
  std::string record;  // of the waiter, with who moved it
};
enum class MoveReply { moved, holds, not_found };

// ---- inspect ----

struct InspectCall {
  LockName name;
  uint64_t holders_from = 0;
  uint64_t waiters_from = 0;
  uint64_t holders_page = 128;
  uint64_t waiters_page = 128;  // 0 where only a status is wanted
};
// A server of a quorum that gave no usable reply.
struct SilentServer {
  std::string server;
  std::string why;
};
// How the runs of a lock ended, as the scripts count them; the history may list fewer.
// A loss is a failure, too; a release that brought no result is neither a success nor a failure.
struct Counters {
  uint64_t runs = 0;
  uint64_t failures = 0;
  uint64_t losses = 0;      // the lease ended or was broken before the run ended
  uint64_t skips = 0;       // refused, or waited in vain
  uint64_t done = 0;        // nothing was left to do
  uint64_t superseded = 0;  // of the skips: a newer one replaced them
};
struct Success {
  ServerTime at{};
  Millis took{0};
  std::string record{};  // empty where it was too long
};
struct Failure {
  ServerTime at{};
  Millis took{0};
  // `exit:7`, `signal:9`, max-run, lost, no-guard, no-renewal, expired or forced
  std::string result{};
  std::string record{};  // empty where the newest rows of the history do not show it
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
  Token last_grant{};  // 0 where nothing is remembered
  ServerTime now{};    // of the reply; 0 where it does not say it
  Counters counters{};
  std::optional<Success> last_success{};
  std::optional<Failure> last_failure{};
  uint64_t failures_in_a_row = 0;  // since the last success
  std::optional<Closure> closure{};
  std::optional<NewestNumber> newest{};
  // Of a quorum: the number of servers, those that gave no usable reply, and the owners with leases
  // on too few servers to hold the lock.
  uint64_t servers = 1;
  std::vector<SilentServer> silent{};
  std::vector<Holder> partial{};
};

// ---- forget: what was marked as done ----

struct ForgetCall {
  LockName name;
  std::optional<std::string> key{};  // this --once KEY alone; else everything
  Token through{};  // marks of runs with later tokens stay; 0: those of runs that have not ended
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
  std::string result;  // as the release gave it; `-`: unknown
  std::string record{};
  std::string note{};    // of the operator who broke the lock, or its cool-down
  ServerTime renewed{};  // the last renewal of a run whose lease expired at `until`; else 0
};
// Acquisitions that were refused or timed out between two runs.
struct Skips {
  uint64_t count = 0;
  ServerTime first;
  ServerTime last;
  std::string record{};     // of the last one
  uint64_t done = 0;        // of them, those that ended since the work was done
  uint64_t superseded = 0;  // of them, those that ended since a newer one replaced them
};
// The lock was closed, or opened before the closure's end.
struct Closing {
  ServerTime at;
  ServerTime until;  // 0: it was opened
  std::string record{};
};
using HistoryRow = std::variant<Run, Skips, Closing>;
using HistoryRows = std::vector<HistoryRow>;

struct NamesPage {
  std::vector<std::string> names;  // may repeat between pages
  std::string cursor{};            // empty: that was the last page
  // Of the names: those with a holder or waiters, and those of another version of rlock, which
  // cannot be read. Some free ones are among them: their last run died.
  std::vector<std::string> in_use{};
  // Of a quorum, on the first page: the servers that gave no usable reply.
  std::vector<SilentServer> silent{};
};

// Of several locks, each with its own failure.
using Snapshots = std::vector<Result<Snapshot>>;
using Histories = std::vector<Result<HistoryRows>>;

// Each call may be sent again with the same arguments when its reply was lost.
class LockInspector {
 public:
  virtual ~LockInspector() = default;
  virtual InFlight<ForceReply> force_unlock(const ForceCall& call) = 0;
  virtual InFlight<Snapshot> inspect(const InspectCall& call) = 0;
  // Inspects several locks by one batch of commands; the results are in the order of the calls. The
  // whole is an Error if no server could be asked.
  virtual InFlight<Snapshots> inspect_all(const std::vector<InspectCall>& calls) = 0;
  // A usage error where the format knows no closures.
  virtual InFlight<ClosureReply> set_closure(const ClosureCall&) {
    return ready<ClosureReply>(Error{ErrorKind::usage, "a lock of this format cannot be closed"});
  }
  // A usage error where the format has no queue, or several servers have one each.
  virtual InFlight<MoveReply> move_first(const MoveCall&) {
    return ready<MoveReply>(Error{ErrorKind::usage, "no queue that a single server orders"});
  }
  // Removes marks, so that no member of a quorum that was down brings them back. A usage error
  // where the format keeps none.
  virtual InFlight<Forgotten> forget(const ForgetCall&) {
    return ready<Forgotten>(
        Error{ErrorKind::usage, "this format keeps no record of what was done"});
  }
  // The newest `rows` of the history.
  virtual InFlight<HistoryRows> history(const LockName& name, uint64_t rows) = 0;
  // The same of several locks at once, as inspect_all(). A usage error where there is no list of
  // all locks.
  virtual InFlight<Histories> histories(const std::vector<LockName>&, uint64_t) {
    return ready<Histories>(Error{ErrorKind::usage, "locks of this format cannot be listed"});
  }
  // Names of the locks under the prefix, a page at a time; cursor empty for the first.
  virtual InFlight<NamesPage> list_names(const std::string& cursor) = 0;
  // Returns the cursor at which list_names() continues if the server of the page at `cursor` is
  // not reachable; empty if there is no other server.
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
