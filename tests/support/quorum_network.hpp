#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "support/quorum_world.hpp"

// The network between the clients of a quorum and its simulated servers.
namespace rlock::test {

// A reply that the network may bring.
template <class T>
class SimReply final : public lock::Reply<T> {
 public:
  using Slot = std::shared_ptr<std::optional<Result<T>>>;
  explicit SimReply(Slot slot) : slot_(std::move(slot)) {}
  void wants(std::vector<pollfd>&) const override {}
  TimePoint due() const override { return *slot_ ? TimePoint::min() : TimePoint::max(); }
  bool advance(TimePoint) override { return slot_->has_value(); }
  Result<T> take() override { return **slot_; }

 private:
  Slot slot_;
};

// A client's connection to a simulated server.
class SimStore final : public lock::LockServer {
 public:
  SimStore(SimWorld& world, SimServer& server, const NetworkFaults& network, uint64_t& messages)
      : world_(world), server_(server), network_(network), messages_(messages) {}

  lock::InFlight<lock::AcquireReply> acquire(const lock::AcquireCall& call) override {
    return send<lock::AcquireReply>([call](SimServer& server) { return server.acquire(call); });
  }
  lock::InFlight<lock::RenewReply> renew(const lock::RenewCall& call) override {
    return send<lock::RenewReply>([call](SimServer& server) { return server.renew(call); });
  }
  lock::InFlight<lock::ReleaseReply> release(const lock::ReleaseCall& call) override {
    return send<lock::ReleaseReply>([call](SimServer& server) { return server.release(call); });
  }
  lock::InFlight<lock::CancelReply> cancel(const lock::CancelCall& call) override {
    return send<lock::CancelReply>([call](SimServer& server) { return server.cancel(call); });
  }
  lock::InFlight<lock::Wake> wait_for_wake(const lock::LockName&, const lock::Owner& owner,
                                           Millis slice) override {
    auto slot = std::make_shared<std::optional<Result<lock::Wake>>>();
    ++messages_;
    world_.after(world_.up_to(network_.usual), [&server = server_, &world = world_, slot, slice,
                                                owner, back = world_.up_to(network_.usual)] {
      server.listen(owner.text(), slice, [&world, slot, back](lock::Wake wake) {
        world.after(back, [slot, wake] { *slot = Result<lock::Wake>(wake); });
      });
    });
    return std::make_unique<SimReply<lock::Wake>>(slot);
  }
  lock::InFlight<lock::ForceReply> force_unlock(const lock::ForceCall&) override { return nullptr; }
  lock::InFlight<lock::Snapshot> inspect(const lock::InspectCall&) override {
    return send<lock::Snapshot>([](SimServer& server) { return server.inspect(); });
  }
  lock::InFlight<lock::Forgotten> forget(const lock::ForgetCall& call) override {
    return send<lock::Forgotten>([call](SimServer& server) { return server.forget(call); });
  }
  lock::InFlight<std::vector<Result<lock::Snapshot>>> inspect_all(
      const std::vector<lock::InspectCall>&) override {
    return nullptr;
  }
  lock::InFlight<std::vector<lock::HistoryRow>> history(const lock::LockName&, uint64_t) override {
    return nullptr;
  }
  lock::InFlight<lock::NamesPage> list_names(const std::string&) override { return nullptr; }
  std::string server() const override { return "sim"; }

 private:
  Nanos on_the_way() {
    return world_.up_to(network_.usual) +
           (world_.chance(network_.late) ? world_.up_to(8s) : Nanos(0));
  }

  // What is sent reaches the server some time, whether or not the client still waits.
  template <class T, class Do>
  lock::InFlight<T> send(Do carry_out) {
    auto slot = std::make_shared<std::optional<Result<T>>>();
    ++messages_;
    if (!world_.chance(network_.loss)) deliver<T>(carry_out, slot, on_the_way());
    if (world_.chance(network_.twice)) deliver<T>(carry_out, slot, on_the_way() + world_.up_to(3s));
    return std::make_unique<SimReply<T>>(slot);
  }

  template <class T, class Do, class Slot>
  void deliver(Do carry_out, Slot slot, Nanos after) {
    const bool answered = !world_.chance(network_.loss);
    const Nanos back = on_the_way();
    TimePoint arrives = std::max(world_.now() + after, server_.answers_from());
    world_.at(arrives, [&world = world_, &server = server_, carry_out, slot, answered, back] {
      Result<T> reply(carry_out(server));
      if (!server.votes()) {
        reply = Error{ErrorKind::unavailable, "sim: does not vote", Retry::later};
      }
      if (!answered) return;
      world.after(back, [slot, reply] {
        if (!*slot) *slot = reply;
      });
    });
  }

  SimWorld& world_;
  SimServer& server_;
  const NetworkFaults& network_;
  uint64_t& messages_;
};

}  // namespace rlock::test
