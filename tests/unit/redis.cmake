rlock_unit(redis redis_cluster.cpp redis_connection.cpp redis_external.cpp redis_reply.cpp redis_resolver.cpp
           redis_sentinel.cpp redis_tls.cpp redis_url.cpp)
target_link_libraries(unit_redis PRIVATE rlock_test_support)
target_link_libraries(unit_redis PRIVATE rlock_redis)
