#pragma once

#include <functional>
#include <memory>

#include "lock/inspector.hpp"
#include "simulation/process.hpp"

namespace rlock::sim {

// One `rlock force-unlock --all`: looks who holds the lock, and breaks their holds.
// It must outlive its process.
class Operator {
 public:
  using Open = std::function<std::unique_ptr<lock::LockServer>(Process&)>;

  Operator(World& world, const Host& host, uint64_t number, size_t lock, lock::ForceWhen when,
           Open open);
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  void live();
  Process& process() { return *process_; }

 private:
  void main();

  const size_t lock_;
  const lock::ForceWhen when_;
  Open open_;
  std::shared_ptr<Process> process_;
};

}  // namespace rlock::sim
