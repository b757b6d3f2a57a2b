#include "lock/store.hpp"

#include <algorithm>

namespace rlock::lock {

Holder aged(Holder holder, Millis age) {
  if (holder.since.ms != 0) holder.held += age;
  if (holder.left > Millis(0)) holder.left = std::max(Millis(0), holder.left - age);
  return holder;
}

const char* to_string(LostHow how) {
  switch (how) {
    case LostHow::deleted:
      return "deleted";
    case LostHow::taken:
      return "taken by another owner";
    case LostHow::full:
      return "all slots are taken";
    case LostHow::expired:
      return "expired";
    case LostHow::unissued:
      return "lost, and its token is ahead of the server's clock";
    case LostHow::released:
      return "released with its owner id";
    case LostHow::forced:
      return "broken by an operator";
    case LostHow::gone:
      return "gone from the server";
  }
  return "lost";
}

}  // namespace rlock::lock
