rlock_unit(lock lock_first_request.cpp lock_lease.cpp lock_quorum_merge.cpp lock_quorum_once.cpp lock_quorum_requests.cpp lock_types.cpp
  lock_wait.cpp lock_wait_rest.cpp)
target_link_libraries(unit_lock PRIVATE rlock_quorum)
