#pragma once

#include "cli/parse.hpp"
#include "lock/store.hpp"

namespace rlock::cli {

// What `rlock force-unlock` was asked for.
struct ForceSettings {
  lock::LockName name;
  lock::ForceTarget target = lock::Sole{};
  lock::Pace pace = lock::Pace::confirmed;
  std::string note{};
  bool any_format = true;  // other clients' locks are recognised by their shape
  bool yes = false;
  bool quiet = false;
  bool json = false;
};

util::Result<ForceSettings> force_settings(const Invocation& invocation);

}  // namespace rlock::cli
