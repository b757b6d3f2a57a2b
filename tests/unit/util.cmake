rlock_unit(util util_duration.cpp util_text.cpp)
