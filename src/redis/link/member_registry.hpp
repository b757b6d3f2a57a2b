#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

// The servers of a quorum as they name themselves.
namespace rlock::redis {

// One server that is reached under two names must not have two votes.
class MemberRegistry {
 public:
  // Notes which server answers at `label`; the label of another one where the same one answers.
  std::optional<std::string> add_member(const std::string& label, const std::string& run_id);

 private:
  std::mutex mutex_;  // the renewal thread has connections of its own
  std::map<std::string, std::string> run_ids_;
};

}  // namespace rlock::redis
