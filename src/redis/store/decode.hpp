#pragma once

#include <hiredis/hiredis.h>

#include <optional>
#include <string>
#include <string_view>

#include "lock/inspector.hpp"

// What the scripts return, in our own words. nullopt: not a reply that these scripts give.
namespace rlock::redis {

std::optional<lock::AcquireReply> decode_acquire(const redisReply& reply);
// `self`: whoever asks is never named as the one who took the lock.
std::optional<lock::RenewReply> decode_renew(const redisReply& reply, std::string_view self);
std::optional<lock::ReleaseReply> decode_release(const redisReply& reply);
std::optional<lock::CancelReply> decode_cancel(const redisReply& reply);
std::optional<lock::ForceReply> decode_force(const redisReply& reply);
std::optional<lock::Snapshot> decode_snapshot(const redisReply& reply);
std::optional<lock::Wake> decode_wake(const redisReply& reply);
std::optional<std::vector<lock::HistoryRow>> decode_history(const redisReply& reply);
// `prefix`: keys of other shapes are passed over.
std::optional<lock::NamesPage> decode_names(const redisReply& reply, std::string_view prefix);

// A server's milliseconds, within what can be added up.
Millis bounded_span(int64_t millis);

}  // namespace rlock::redis
