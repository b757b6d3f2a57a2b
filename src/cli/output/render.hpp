#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/output/record.hpp"
#include "cli/output/view.hpp"

// Text for people: lines of at most `width` characters, printable whatever a server sent.
namespace rlock::cli {

// One line for each lock.
std::string status_table(const std::vector<LockView>& locks, size_t width);

// A lock in full, a few lines for each holder.
std::string lock_details(const LockView& lock, size_t width);
std::string holder_details(const lock::Holder& holder, size_t width);

enum class NameColumn { hidden, shown };  // of one lock, of several

// `servers`: how many a quorum has; a waiter that only some of them know is marked.
std::string queue_table(std::span<const QueueView> queues, NameColumn name_column, size_t width,
                        uint64_t servers = 1);

// How many wait for a lock that was read; `-` where its format has no queue.
std::string waiting_count(const LockView& lock);

// In front of the command, in a table; empty where there is no deadlock.
std::string deadlock_remark(const LockView& lock);

// The command, and the reason where one was given.
std::string command_and_reason(const Record& record);

std::string history_table(const History& lines, NameColumn name_column, size_t width);

}  // namespace rlock::cli
