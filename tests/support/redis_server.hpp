#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/scratch.hpp"

namespace rlock::test {

enum class Listen { unix_socket, unix_socket_and_tcp };

// A redis-server of the test's own in a new folder: no fixed port, nothing left behind. Throws
// std::runtime_error with the server's log where it does not come up. It dies with the thread that
// started it, so that a crashed test leaves no process.
class RedisServer {
 public:
  // `args` are appended to the command line: {"--requirepass", "secret"}; `before` is put before
  // it: {"valgrind"}. No persistence unless asked.
  explicit RedisServer(std::vector<std::string> args = {}, Listen listen = Listen::unix_socket,
                       std::vector<std::string> before = {});
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer();

  const std::string& folder() const { return folder_.path(); }
  std::string socket_path() const { return folder_.file("redis.sock"); }
  int port() const { return port_; }  // of 127.0.0.1; 0 without TCP
  pid_t pid() const { return pid_; }

  // SIGKILL and reaped. start() brings it back: same folder, socket and port.
  void kill();
  void start();

  // One command over a connection of its own. A nil is "", an error reply its text, an array its
  // elements a line each. Throws where the server does not answer.
  std::string cli(const std::vector<std::string>& words) const;

 private:
  std::vector<std::string> command_line() const;
  bool answers() const;
  std::string log() const;

  Scratch folder_;
  std::vector<std::string> args_;
  std::vector<std::string> before_;
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace rlock::test
