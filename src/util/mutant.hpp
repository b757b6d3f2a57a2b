#pragma once

#ifdef RLOCK_MUTANTS
#include <array>
#include <cstdlib>
#include <string_view>
#endif

// Faults that rlock is built with only where CMake's RLOCK_MUTANTS is on, to show that tests/chaos
// catches each of them: RLOCK_MUTANT in the environment names the one that is live. Otherwise they
// are compiled away.
namespace rlock::util {

enum class Mutant {
  no_renewal,
  renewal_ignored,      // whatever comes of a renewal, the lease counts as extended
  deadline_from_reply,  // not from before the request was sent
  guard_off,
  no_check_after_wait,  // the lease counts as fresh when the command starts
  socket_inherited,
};

#ifdef RLOCK_MUTANTS

inline constexpr std::array<std::string_view, 6> kMutantNames{
    "no_renewal", "renewal_ignored",     "deadline_from_reply",
    "guard_off",  "no_check_after_wait", "socket_inherited"};

// Read before main: the guard asks after a fork.
inline const char* const kLiveMutant = std::getenv("RLOCK_MUTANT");

inline bool mutant(Mutant which) noexcept {
  return kLiveMutant != nullptr && kMutantNames[static_cast<size_t>(which)] == kLiveMutant;
}

#else

constexpr bool mutant(Mutant) noexcept {
  return false;
}

#endif

}  // namespace rlock::util
