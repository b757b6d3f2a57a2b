#pragma once

#include <string>
#include <vector>

#include "cli/output/view.hpp"

// For people: lines of at most `width` characters, printable whatever a server sent.
namespace rlock::cli {

// One line a lock.
std::string status_table(const std::vector<LockView>& locks, size_t width);

// A lock in full, a few lines for each holder.
std::string lock_details(const LockView& lock, size_t width);
std::string holder_details(const lock::Holder& holder, size_t width);

// `servers`: of how many each waiter tells where it waits.
std::string queue_table(const std::vector<lock::Waiter>& waiters, size_t width,
                        uint64_t servers = 1);

}  // namespace rlock::cli
