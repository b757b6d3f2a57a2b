#pragma once

#include <string_view>

namespace rlock::cli {

// The line of the first byte beyond ASCII that is neither in a comment nor in a string on one line;
// 0: there is none. No setting needs it elsewhere, and there toml++ (3.3, 3.4) reaches what it
// tells the compiler to be unreachable. [FAULTS 37]
unsigned misplaced_beyond_ascii(std::string_view text);

}  // namespace rlock::cli
