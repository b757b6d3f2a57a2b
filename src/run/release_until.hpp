#pragma once

#include "lock/store.hpp"

namespace rlock::run {

// Releases, retrying over fresh connections until `until`; a signal does not stop it. The last
// error when no server confirmed: the lease then frees the lock.
Result<lock::ReleaseReply> release_until(lock::LockStore& store, const lock::ReleaseCall& call,
                                         TimePoint until);

}  // namespace rlock::run
