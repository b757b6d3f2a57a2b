rlock_unit(util util_boot_timer.cpp util_duration.cpp util_result.cpp util_text.cpp)
