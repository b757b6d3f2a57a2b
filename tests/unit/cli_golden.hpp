#pragma once

#include <string>

namespace rlock::test {

// The committed text that `actual` must equal. With RLOCK_UPDATE_GOLDEN set in the environment
// `actual` is written there first: the change is then reviewed as a diff.
std::string golden(const std::string& file, const std::string& actual);

}  // namespace rlock::test
