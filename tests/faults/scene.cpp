#include "faults/scene.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <map>
#include <sstream>
#include <thread>

#include "lua/scripts.hpp"

namespace rlock::test {
namespace {

std::string fresh_name() {
  static std::atomic<int> number{0};
  return "scene" + std::to_string(++number);
}

// The words of a list reply, an element a line.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t start = 0; start < text.size();) {
    size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

}  // namespace

RedisServer& server() {
  static RedisServer server;
  static bool ready = [] {
    for (const char* variable : {"RLOCK_URL", "RLOCK_USER", "RLOCK_PASSWORD", "REDISCLI_AUTH",
                                 "RLOCK_PREFIX", "RLOCK_HELD"}) {
      unsetenv(variable);
    }
    setenv("RLOCK_CONFIG", "/dev/null", 1);
    for (const lua::Script* script :
         {&lua::acquire, &lua::renew, &lua::release, &lua::force_unlock, &lua::inspect}) {
      server.cli({"SCRIPT", "LOAD", std::string(script->text)});
    }
    return true;
  }();
  (void)ready;
  return server;
}

Rlock::Rlock(const std::vector<std::string>& words, std::string errors)
    : errors_(std::move(errors)) {
  job_ = std::make_unique<Job>(words, [this] {
    dup2(open(errors_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), STDERR_FILENO);
  });
}

Scene::Scene() : name_(fresh_name()), proxy_(server().socket_path()) {
  mkfifo(folder_.file("go").c_str(), 0600);
}

Rlock Scene::through(std::vector<std::string> words, const std::vector<std::string>& more) {
  return start(std::move(words), proxy_.url(), more);
}

Rlock Scene::direct(std::vector<std::string> words, const std::vector<std::string>& more) {
  return start(std::move(words), "unix://" + server().socket_path(), more);
}

Rlock Scene::start(std::vector<std::string> words, const std::string& url,
                   const std::vector<std::string>& more) {
  words.insert(words.begin(), RLOCK);
  words.insert(words.end(), {"--url", url, name_});
  words.insert(words.end(), more.begin(), more.end());
  return Rlock(words, folder_.file("errors" + std::to_string(++started_)));
}

std::vector<std::string> Scene::brief() const {
  return {"--", "/bin/sh", "-c", "echo $RLOCK_TOKEN >>\"$1\"; exit 7", "sh", folder_.file("ran")};
}

std::vector<std::string> Scene::lasting() const {
  return {"--",
          "/bin/sh",
          "-c",
          "exec 9<>\"$2\"; echo $RLOCK_TOKEN >>\"$1\"; echo up; read -r _ <&9; exit 7",
          "sh",
          folder_.file("ran"),
          folder_.file("go")};
}

void Scene::end_command() const {
  // Both directions: it does not wait for the reader, and a reader that comes later finds the line.
  static thread_local util::Fd fifo;
  fifo.reset(open(folder_.file("go").c_str(), O_RDWR | O_CLOEXEC));
  [[maybe_unused]] ssize_t written = write(fifo.get(), "\n", 1);
}

std::string Scene::leftovers() const {
  for (const char* suffix : {"holders", "limits", "queue", "alive"}) {
    if (count(suffix) != "0") return std::string(suffix) + " holds " + count(suffix);
  }
  for (const std::string& field : lines_of(server().cli({"HKEYS", key("who")}))) {
    if (!field.starts_with('!')) return "who knows " + field;
  }
  for (const std::string& left : lines_of(server().cli({"KEYS", key("*")}))) {
    if (server().cli({"PTTL", left}) == "-1") return left + " lives for ever";
  }
  return {};
}

std::string Scene::history() const {
  std::string tokens;
  for (const std::string& row : lines_of(server().cli({"LRANGE", key("history"), "0", "-1"}))) {
    std::map<std::string, std::string> words;
    std::istringstream head(row.substr(0, row.find("| ")));
    for (std::string word; head >> word;) {
      words[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    }
    if (words["kind"] == "run") tokens += words["token"] + "\n";
  }
  return tokens;
}

std::string Scene::last_grant() const {
  return server().cli({"HGET", key("meta"), "grant"});
}

TimePoint Scene::lease_end() const {
  TimePoint before = BootClock::now();  // earlier than the server's answer: the stricter one
  auto time = lines_of(server().cli({"TIME"}));
  auto scores = lines_of(server().cli({"ZRANGE", key("holders"), "-1", "-1", "WITHSCORES"}));
  if (scores.size() < 2 || time.size() < 2) return {};
  long long now_ms = std::stoll(time[0]) * 1000 + std::stoll(time[1]) / 1000;
  return before + Millis(std::stoll(scores[1]) - now_ms);
}

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
  // Nobody may have waited for the reply to a cancel.
  CHECK(eventually([&] { return scene.leftovers().empty(); }));
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
