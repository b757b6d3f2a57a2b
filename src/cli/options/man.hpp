#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rlock::cli {

// rlock(1) from its template: `@options COMMAND@` and `@general options@` become lists of options
// from the table, `@least ACL rule@` becomes `acl_rule`. Nothing when the template has another
// hole.
std::optional<std::string> manual_page(std::string_view source, std::string_view acl_rule);

}  // namespace rlock::cli
