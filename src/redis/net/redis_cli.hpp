#pragma once

#include <string>

#include "redis/net/url.hpp"

// Command lines of redis-cli in messages, which a user can paste into a shell.
namespace rlock::redis {

bool is_default_user(const Login& login);

// The command line that runs `words`, which are quoted already, on the server: in the database and
// as the user of rlock. redis-cli asks for the password, which is never shown.
std::string redis_cli(const Server& server, const std::string& words);

}  // namespace rlock::redis
