#pragma once

#include <string>
#include <vector>

#include "support/job.hpp"

namespace rlock::test {

// The thread sanitizer runs a thread in each process and does not survive a fork there.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kUnderThreadSanitizer = true;
#else
inline constexpr bool kUnderThreadSanitizer = false;
#endif

// `run_hold SETTINGS… -- COMMAND…`
inline std::vector<std::string> held(std::vector<std::string> settings,
                                     const std::vector<std::string>& command) {
  settings.insert(settings.begin(), RUN_HOLD);
  settings.push_back("--");
  settings.insert(settings.end(), command.begin(), command.end());
  return settings;
}

inline std::vector<std::string> shell(const std::string& text) {
  return {"/bin/sh", "-c", text};
}

// The boot time of the last line of a trace that ends in `call`; epoch when there is none.
inline TimePoint last_call(const std::string& trace, const std::string& call) {
  size_t at = trace.rfind(" " + call + "\n");
  if (at == std::string::npos) return {};
  size_t line = trace.rfind('\n', at);
  long long ns = std::stoll(trace.substr(line == std::string::npos ? 0 : line + 1));
  return TimePoint(BootClock::duration(ns));
}

// The same of the first such line.
inline TimePoint first_call(const std::string& trace, const std::string& call) {
  size_t at = trace.find(" " + call + "\n");
  return at == std::string::npos ? TimePoint{}
                                 : last_call(trace.substr(0, at + call.size() + 2), call);
}

inline size_t count_calls(const std::string& trace, const std::string& call) {
  size_t count = 0;
  for (size_t at = 0; (at = trace.find(" " + call + "\n", at)) != std::string::npos; ++at) ++count;
  return count;
}

// Waits until rlock has let go of the stdout that it inherited: stopped before, it would hold the
// test's pipe open itself.
bool closed_stdout(pid_t rlock);

// The child of `parent` that is the guard; -1 when there is none.
pid_t guard_of(pid_t parent);

}  // namespace rlock::test
