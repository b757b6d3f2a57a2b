#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "lock/wait.hpp"
#include "run/observer.hpp"
#include "run/plan.hpp"
#include "run/renewer.hpp"
#include "run/shared_state.hpp"
#include "simulation/ledger.hpp"
#include "simulation/process.hpp"
#include "simulation/rules.hpp"

namespace rlock::sim {

// One `rlock run` in its process: the real wait, renewal thread, look at the lease and release.
// Restated is what src/run does with processes: the supervisor, which ends the command in time, and
// the guard, which does so where rlock is stopped or dead.
class Client : public run::Observer, public std::enable_shared_from_this<Client> {
 public:
  using Open = std::function<std::unique_ptr<lock::LockServer>(Process&)>;

  Client(World& world, const Host& host, Ledger& ledger, const Run& run, size_t number,
         ClientRule broken, Open open);

  // Its process begins here.
  void live(std::function<void()> on_end);
  Process& process() { return *process_; }
  void kill();
  // The whole host: its command, too.
  void freeze(Moment until);
  bool frozen() const { return world_.now() < frozen_until_; }

 private:
  // ---- the code of the process ----
  void main();
  run::Plan make_plan();
  std::optional<lock::Once> once() const;
  Result<lock::WaitResult> wait_for_lock(run::Plan& plan, lock::WaitLoop& wait,
                                         lock::Poller& poller);
  bool await_replicas(const run::Plan& plan, lock::HeldLock& held, lock::LockStore& store,
                      lock::Poller& poller) const;
  void note_refusal(const lock::WaitResult& result);
  void hold(run::Plan& plan, lock::LockStore& store, const lock::HeldLock& held);
  void supervise(const run::SharedLease& lease, run::Renewer& renewer, const run::Plan& plan);
  void release(const run::Plan& plan, lock::LockStore& store, const run::SharedLease& lease,
               const lock::HeldLock& held);

  // ---- the command and its guard ----
  void start_command();
  enum class CommandEnd { by_itself, ended };
  void end_command(CommandEnd how = CommandEnd::ended);
  void let_command_end();
  void watch_lease();

  // ---- what the real code reports ----
  void queued(const lock::Queued& queued) override;
  void transient_error(const Error&) override { ledger_.note_mishap(number_); }

  bool breaks(ClientRule rule) const { return broken_ == rule; }

  World& world_;
  const Host& host_;
  Ledger& ledger_;
  const Run& run_;
  const size_t number_;
  const ClientRule broken_;
  Open open_;
  std::shared_ptr<Process> process_;
  std::unique_ptr<run::SharedState> guard_;
  bool runs_ = false;  // the command
  bool used_ = false;  // it has run
  bool succeeded_ = false;
  bool terminated_ = false;  // by rlock, or it was asked to stop
  Moment frozen_until_{0};
};

}  // namespace rlock::sim
