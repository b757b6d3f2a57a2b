// Renewer::loop() runs on the renewal thread, SharedLease on both threads, everything else on the
// main thread.
#pragma once

#include <pthread.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lock/held_lock.hpp"
#include "lock/lease.hpp"
#include "lock/store.hpp"
#include "run/observer.hpp"
#include "run/shared_state.hpp"
#include "util/fd.hpp"
#include "util/mutex.hpp"
#include "util/result.hpp"

namespace rlock::run {

// The lease as both threads of rlock see it, and the guard through the shared state: the renewal
// thread extends it, the main thread acts on it. Every call is one short critical section.
class SharedLease {
 public:
  // What the main thread needs for its decisions.
  struct View {
    TimePoint terminate_at;
    TimePoint kill_at;
    TimePoint deadline;
    std::optional<lock::Lost> lost;
    std::optional<Error> last_error;  // of the last renewal, if it failed
  };

  // `granted_at`: before the granted request was sent, whose answer has just come. `guard_state`
  // receives the guard's kill time; null if a lost lease does not stop the command.
  SharedLease(const lock::LeaseMonitor::Settings& settings, TimePoint granted_at,
              SharedState* guard_state);

  void renewed(TimePoint sent_at, TimePoint answered_at);
  void failed(TimePoint sent_at, TimePoint now, Error why);
  void lost(lock::Lost how);
  void complete_grant(TimePoint first);

  TimePoint next_attempt() const;
  TimePoint attempt_deadline(TimePoint sent_at) const;
  View view() const;
  // Whether the command is stopped before the lease expires.
  bool ends_command() const { return guard_state_ != nullptr; }

 private:
  void publish();

  mutable util::Mutex mutex_;
  lock::LeaseMonitor monitor_;
  std::optional<lock::Lost> lost_;
  std::optional<Error> last_error_;
  SharedState* const guard_state_;
};

// The renewal thread: extends the lease after each timing::renew_interval, retries over fresh
// connections until the deadline, and listens over a second connection for an operator who breaks
// the lock. [docs/SUPERVISION.md, "Lease deadlines"]
class Renewer {
 public:
  struct Dependencies {
    lock::MakeStore make_store;
    Observer& observer;
    SharedLease& lease;
    // For start(). This function, or its result, is null if each server has the grant. If the
    // request ends without that, the first renewals come early.
    std::function<lock::InFlight<lock::GrantReach>()> complete_grant{};
  };

  // ErrorKind::system if its descriptors are not available; they are made before the command
  // starts.
  static Result<std::unique_ptr<Renewer>> make(const lock::Claim& claim,
                                               const lock::HeldLock& held_lock,
                                               const Dependencies& deps);
  Renewer(const Renewer&) = delete;
  Renewer& operator=(const Renewer&) = delete;
  ~Renewer() { stop(); }

  // ErrorKind::system if no thread is available.
  Status start();
  bool running() const { return running_; }
  // Gives the thread priority over all processes of the usual scheduling class, because on a busy
  // host a healthy lease would be lost otherwise. A refusal is harmless. Processes that the thread
  // starts have the usual class. Call it after start(), and only if no seccomp filter kills a
  // process for it.
  void prefer();
  // Sets the record that others see of this holder. The server gets a new text immediately.
  void set_record(const std::string& record);
  // Joins the thread: after this no renewal is in flight.
  void stop();

  // Readable once the server has reported that the lease is lost.
  int fd() const { return lost_fd_.get(); }

 private:
  template <class T>
  struct Flight {
    std::unique_ptr<lock::LockStore> store;  // opened on first use
    lock::InFlight<T> request;
    // Done, but some servers for which it did not wait have yet to receive it.
    lock::InFlight<T> stragglers;
    bool done = false;
    TimePoint sent_at;
    TimePoint give_up_at;               // for this attempt
    TimePoint next = TimePoint::max();  // when the next attempt is due
  };

  Renewer(const lock::Claim& claim, const lock::HeldLock& held_lock, const Dependencies& deps)
      : claim_(claim), held_lock_(held_lock), deps_(deps) {}
  static void* thread_main(void* self);
  void loop();
  void send_what_is_due(TimePoint now);
  bool wait();
  TimePoint drive_stragglers(TimePoint now);
  void advance_completion(TimePoint now);
  void settle_renewal(TimePoint now);
  void settle_listener(TimePoint now);
  void handle_notify(TimePoint now);
  void renew_soon(TimePoint now);
  void handle_reply(TimePoint now, Result<lock::RenewReply> reply);
  void failed(TimePoint now, Error why);
  void warn_of_outage(TimePoint now, const Error& why);
  void emit(EventKind kind, std::string detail) const;

  lock::Claim claim_;
  bool record_changed_ = false;  // since the grant
  const lock::HeldLock held_lock_;
  Dependencies deps_;
  util::Fd notify_fd_;  // signals a stop, or a new record
  std::atomic<bool> stopping_{false};
  util::Mutex record_mutex_;
  std::string new_record_;  // empty: none since the last call
  util::Fd lost_fd_;
  pthread_t thread_{};
  bool running_ = false;
  bool preferred_ = false;    // prefer() was called
  unsigned rounds_ = 0;       // since a request was sent
  bool renew_again_ = false;  // since the last renewal was sent
  bool over_ = false;         // the lease is lost: there is nothing left to renew
  Flight<lock::RenewReply> renewal_;
  Flight<lock::Wake> listener_;
  lock::InFlight<lock::GrantReach> completion_;  // over the main thread's store, which is idle
  Millis listener_backoff_{0};
  unsigned failures_ = 0;      // of consecutive renewals
  bool cut_ = false;           // the listener's connection broke since the last renewal
  TimePoint failing_since_{};  // when the first of them was due
  bool outage_reported_ = false;
  std::vector<pollfd> fds_;
};

}  // namespace rlock::run
