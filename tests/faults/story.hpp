#pragma once

#include <functional>
#include <string>

#include "faults/scene.hpp"

// What the stories of requests of unknown fate have in common.
namespace rlock::test {

// What the bounds of the stories are exceeded by on a machine that is busy with other things.
inline constexpr Millis kLoad{10'000};

// Runs the story under each fault. They do not wait for each other: each is on a thread of its own.
void for_each_fault(const std::function<void(Fault)>& story);

bool mentions(const std::string& text, const std::string& part);

Millis since(TimePoint start);

// Nothing is left, and a request of late_request that comes now changes nothing.
void check_aftermath(Scene& scene, Fault fault);

// One grant, one command, one release, all of one token.
void check_one_run(Scene& scene);

}  // namespace rlock::test
