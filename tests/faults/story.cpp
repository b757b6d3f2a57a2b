#include "faults/story.hpp"

#include <doctest/doctest.h>

#include <exception>
#include <thread>

namespace rlock::test {
namespace {

struct Named {
  Fault fault;
  const char* text;
};
constexpr Named kFaults[] = {{Fault::lose_request, "request lost, connection reset"},
                             {Fault::lose_reply, "reply lost, connection reset"},
                             {Fault::stop_reading, "request never read"},
                             {Fault::swallow_reply, "reply swallowed in silence"},
                             {Fault::late_request, "request delivered when all is over"},
                             {Fault::late_reply, "reply late"},
                             {Fault::trickle_reply, "reply trickled"}};

void run(const std::function<void(Fault)>& story, const Named& named) {
  const std::string fault = named.text;
  CAPTURE(fault);
  try {
    story(named.fault);
  } catch (const std::exception& error) {
    FAIL_CHECK(error.what());
  } catch (...) {
    // A REQUIRE, which has been reported; a thread may not end by it.
  }
}

}  // namespace

void for_each_fault(const std::function<void(Fault)>& story) {
  server();
  std::vector<std::thread> threads;
  for (const Named& named : kFaults) threads.emplace_back(run, std::cref(story), std::cref(named));
  for (std::thread& thread : threads) thread.join();
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Millis since(TimePoint start) {
  return std::chrono::duration_cast<Millis>(BootClock::now() - start);
}

void check_aftermath(Scene& scene, Fault fault) {
  CHECK(scene.leftovers() == "");
  std::string history = scene.history();
  if (fault == Fault::late_request) CHECK(scene.proxy().deliver() == 1);
  CHECK(scene.leftovers() == "");
  CHECK(scene.history() == history);
}

void check_one_run(Scene& scene) {
  CHECK(scene.history() == scene.ran());
  CHECK(scene.last_grant() + "\n" == scene.ran());
}

}  // namespace rlock::test
