#pragma once

#include "lock/store.hpp"

namespace rlock::lock {

// A request that is refused before anybody is asked.
template <class T>
class Refused final : public Reply<T> {
 public:
  explicit Refused(util::Error error) : error_(std::move(error)) {}
  void wants(std::vector<pollfd>&) const override {}
  TimePoint due() const override { return TimePoint::min(); }
  bool advance(TimePoint) override { return true; }
  util::Result<T> take() override { return std::move(error_); }

 private:
  util::Error error_;
};

}  // namespace rlock::lock
