#pragma once

#include <hiredis/hiredis.h>

#include <string>
#include <vector>

// Wakes for a server that lets a script push to declared keys alone.
namespace rlock::redis {

// Whether a script's reply is `wakes REPLY owner word…`: it was not let push these.
bool has_wakes(const redisReply& reply);

// The script call that pushes the wakes in `reply`, which came to the script call `words`.
std::vector<std::string> wake_call(const std::vector<std::string>& words, const redisReply& reply);

}  // namespace rlock::redis
