#pragma once

#include "cli/options/options.hpp"

// Which commands take an option: the sets that the rows of the table name.
namespace rlock::cli {

constexpr unsigned bit(CommandId id) {
  return 1U << static_cast<unsigned>(id);
}
inline constexpr unsigned kRun = bit(CommandId::run);
inline constexpr unsigned kAcquire = bit(CommandId::acquire);
inline constexpr unsigned kRenew = bit(CommandId::renew);
inline constexpr unsigned kRelease = bit(CommandId::release);
inline constexpr unsigned kStatus = bit(CommandId::status);
inline constexpr unsigned kQueue = bit(CommandId::queue);
inline constexpr unsigned kWatch = bit(CommandId::watch);
inline constexpr unsigned kForce = bit(CommandId::force_unlock);
inline constexpr unsigned kClose = bit(CommandId::close);
inline constexpr unsigned kOpen = bit(CommandId::open);
inline constexpr unsigned kHistory = bit(CommandId::history);
inline constexpr unsigned kForget = bit(CommandId::forget);
inline constexpr unsigned kMetrics = bit(CommandId::metrics);
inline constexpr unsigned kCheck = bit(CommandId::check);
inline constexpr unsigned kDoctor = bit(CommandId::doctor);
inline constexpr unsigned kConfig = bit(CommandId::config);
inline constexpr unsigned kLocal = bit(CommandId::local);
inline constexpr unsigned kCompletion = bit(CommandId::completion);
inline constexpr unsigned kEvery = kRun | kAcquire | kRenew | kRelease | kStatus | kQueue | kWatch |
                                   kForce | kClose | kOpen | kHistory | kForget | kMetrics |
                                   kCheck | kDoctor | kConfig | kLocal | kCompletion;

}  // namespace rlock::cli
