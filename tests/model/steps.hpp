#pragma once

#include <optional>

#include "model/world.hpp"

// What may happen next in a world.
namespace rlock::model {

enum class Delivery { delivered, kept, dropped };  // to its client at once, by a message, to nobody

// How soon a schedule that is fair and has no more faults takes a step; none: never.
enum class Rank { message, leave, release, ask, time, none };

struct Step {
  std::string what;
  World next;                      // where no script runs
  std::optional<Request> request;  // the script to run on `next`
  Delivery answer = Delivery::dropped;
  size_t message = 0;  // of an answer that is kept
  Rank rank = Rank::none;
};

std::vector<Step> steps(const World& world);

// What a client does with a reply.
void handle_reply(World& world, const Request& request, const Reply& reply, bool before_loss);

}  // namespace rlock::model
