rlock_unit(lock lock_lease.cpp lock_types.cpp lock_wait.cpp)
