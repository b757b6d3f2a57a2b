#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output/record.hpp"
#include "cli/output/view.hpp"

// Text for people: lines of at most `width` characters, printable whatever a server sent.
namespace rlock::cli {

// The cells of a lock in a table: its first holder, or else its closure.
struct LockCells {
  std::string name, state, who = "-", pid = "-";  // `+2` behind `who`: further holders
  std::optional<Millis> held{};
  std::string waiting = "-";  // the number of waiters, if the format has a queue
  // Remarks in front of the command: rules of a newer rlock, a deadlock, a holder that has died,
  // and what the state does not say.
  std::string needs{}, deadlock{}, death{}, remark{};
  std::string command{};  // with the reason, if one was given
};
LockCells lock_cells(const LockView& lock);

// One line for each lock.
std::string status_table(const std::vector<LockView>& locks, size_t width);

// A lock in full, with several lines for each holder.
std::string lock_details(const LockView& lock, size_t width);
std::string holder_details(const lock::Holder& holder, size_t width);

enum class NameColumn { hidden, shown };  // of one lock, of several

// `servers`: the number of servers of a quorum; waiters that only some of them know are marked.
std::string queue_table(std::span<const QueueView> queues, NameColumn name_column, size_t width,
                        uint64_t servers = 1);

std::string history_table(const History& lines, NameColumn name_column, size_t width);

// `commit`, `project` (the project's address): empty if unknown. `form`: the form of stored locks.
std::string version_text(std::string_view version, std::string_view commit, uint64_t form,
                         std::string_view project);

}  // namespace rlock::cli
