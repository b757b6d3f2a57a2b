#pragma once

#include <string>

namespace rlock::cli {

// The name of the effective user, for people: from /etc/passwd, else $LOGNAME or $USER, else the
// number. Never asks NSS: loading its modules costs more than a whole run.
std::string user_name();

}  // namespace rlock::cli
