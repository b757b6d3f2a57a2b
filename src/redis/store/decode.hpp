#pragma once

#include <hiredis/hiredis.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "lock/inspector.hpp"
#include "redis/link/reply.hpp"

// Converts the replies of the scripts. Returns nullopt for a reply that these scripts do not make.
namespace rlock::redis {

// Which verdicts a request can have: done only with --once, superseded only with --supersede.
struct Verdicts {
  bool done = false;
  bool superseded = false;
};
std::optional<lock::AcquireReply> decode_acquire(const redisReply& reply, Verdicts possible);
std::optional<lock::HeartbeatReply> decode_heartbeat(const redisReply& reply);
// `self`, the owner that renews, is never named as the owner that took the lock.
std::optional<lock::RenewReply> decode_renew(const redisReply& reply, std::string_view self);
std::optional<lock::ReleaseReply> decode_release(const redisReply& reply);
std::optional<lock::CancelReply> decode_cancel(const redisReply& reply);
std::optional<lock::ForceReply> decode_force(const redisReply& reply);
std::optional<lock::Forgotten> decode_forget(const redisReply& reply);
std::optional<lock::ClosureReply> decode_closure(const redisReply& reply);
std::optional<lock::MoveReply> decode_move(const redisReply& reply);
std::optional<lock::Snapshot> decode_snapshot(const redisReply& reply);
std::optional<lock::Wake> decode_wake(const redisReply& reply);
std::optional<lock::HistoryRows> decode_history(const redisReply& reply);
// Skips keys that do not belong to a lock under `prefix`.
std::optional<lock::NamesPage> decode_names(const redisReply& reply, std::string_view prefix);

}  // namespace rlock::redis
