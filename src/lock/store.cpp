#include "lock/store.hpp"

namespace rlock::lock {

const char* to_string(LostHow how) {
  switch (how) {
    case LostHow::deleted:
      return "deleted";
    case LostHow::taken:
      return "taken by another owner";
    case LostHow::full:
      return "no room beside the present holders";
    case LostHow::expired:
      return "expired";
    case LostHow::unissued:
      return "lost, and its token is ahead of the server's clock";
    case LostHow::released:
      return "released by its owner id";
    case LostHow::forced:
      return "broken by an operator";
    case LostHow::gone:
      return "gone at the server";
  }
  return "lost";
}

}  // namespace rlock::lock
