#include "redis/link/member_registry.hpp"

namespace rlock::redis {

std::optional<std::string> MemberRegistry::add_member(const std::string& label,
                                                      const std::string& run_id) {
  std::lock_guard lock(mutex_);
  for (const auto& [other, its_id] : run_ids_) {
    if (other != label && its_id == run_id) return other;
  }
  run_ids_[label] = run_id;
  return std::nullopt;
}

}  // namespace rlock::redis
