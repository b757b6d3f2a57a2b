#pragma once

#include "lock/store.hpp"

namespace rlock::lock {

// A request that is refused before anybody is asked.
template <class T>
class FailedReply final : public Reply<T> {
 public:
  explicit FailedReply(Error error) : error_(std::move(error)) {}
  void wants(std::vector<pollfd>&) const override {}
  TimePoint due() const override { return TimePoint::min(); }
  bool advance(TimePoint) override { return true; }
  Result<T> take() override { return std::move(error_); }

 private:
  Error error_;
};

}  // namespace rlock::lock
