#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "faults/ambiguous_proxy.hpp"
#include "support/job.hpp"
#include "support/redis_server.hpp"

// One lock, the real rlock, and a proxy between it and the real server.
namespace rlock::test {

// The server of the whole program; it knows all scripts already, so that each request is one.
RedisServer& server();

// An rlock in the background, its stderr apart.
class Rlock {
 public:
  Rlock(const std::vector<std::string>& words, std::string errors);

  Job& job() { return *job_; }
  // Waits for the end; `$?`.
  int status() { return job_->status(Millis(60'000)); }
  std::string errors() const { return read_file(errors_); }

 private:
  std::string errors_;
  std::unique_ptr<Job> job_;
};

class Scene {
 public:
  Scene();

  AmbiguousProxy& proxy() { return proxy_; }
  const std::string& name() const { return name_; }

  // `rlock WORDS… NAME MORE…` through the proxy, or straight to the server.
  Rlock through(std::vector<std::string> words, const std::vector<std::string>& more = {});
  Rlock direct(std::vector<std::string> words, const std::vector<std::string>& more = {});

  // A command that notes its token and ends with 7; one that says `up` and stays until
  // end_command().
  std::vector<std::string> brief() const;
  std::vector<std::string> lasting() const;
  void end_command() const;
  // The tokens of the commands that ran, a line each.
  std::string ran() const { return read_file(folder_.file("ran")); }
  std::string events() const { return read_file(event_log()); }
  std::string event_log() const { return folder_.file("events"); }

  // ---- what the server holds of the lock ----
  std::string key(const std::string& suffix) const { return "rlock:{" + name_ + "}:" + suffix; }
  std::string count(const std::string& suffix) const {
    return server().cli({"ZCARD", key(suffix)});
  }
  bool waiting(int waiters) const { return count("queue") == std::to_string(waiters); }
  // Why the lock is not as if nobody had ever been there but for what is remembered; empty: it is.
  std::string leftovers() const;
  // The tokens of the runs in the history, the newest first, a line each.
  std::string history() const;
  // The token of the last grant.
  std::string last_grant() const;
  // When the server ends the only lease, on our clock; epoch for none.
  TimePoint lease_end() const;

 private:
  Rlock start(std::vector<std::string> words, const std::string& url,
              const std::vector<std::string>& more);

  Scratch folder_;
  std::string name_;
  AmbiguousProxy proxy_;
  int started_ = 0;
};

// ---- what the stories of requests of unknown fate have in common ----

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
