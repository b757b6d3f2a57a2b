#pragma once

#include <map>
#include <string>
#include <string_view>

namespace rlock::redis {

// The fields of an INFO or CLUSTER INFO reply, by the server's names.
using InfoFields = std::map<std::string, std::string, std::less<>>;
InfoFields read_info(std::string_view text);

// Empty where the field is missing.
std::string info_field(const InfoFields& info, std::string_view field);

}  // namespace rlock::redis
