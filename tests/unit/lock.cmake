rlock_unit(lock lock_lease.cpp lock_outage.cpp lock_quorum_merge.cpp lock_quorum_once.cpp lock_quorum_requests.cpp lock_types.cpp
  lock_wait.cpp)
target_link_libraries(unit_lock PRIVATE rlock_quorum)
