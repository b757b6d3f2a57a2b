#pragma once

#include "redis/store/redis_store.hpp"

// The scripts as they are, or where RLOCK_MUTANTS is compiled in with the rule left out that
// RLOCK_MUTANT names. [util/mutant.hpp]
namespace rlock::redis {

#ifdef RLOCK_MUTANTS
Scripts mutated(Scripts scripts);
#else
inline Scripts mutated(Scripts scripts) {
  return scripts;
}
#endif

}  // namespace rlock::redis
