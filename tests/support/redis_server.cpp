#include "support/redis_server.hpp"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>

#include "support/loopback.hpp"
#include "support/waiting.hpp"

namespace rlock::test {
namespace {

struct FreeContext {
  void operator()(redisContext* context) const noexcept { redisFree(context); }
};
struct FreeReply {
  void operator()(void* reply) const noexcept { freeReplyObject(reply); }
};
using ContextPtr = std::unique_ptr<redisContext, FreeContext>;
using ReplyPtr = std::unique_ptr<redisReply, FreeReply>;

// A port that the kernel calls free; start() tries another one where somebody was quicker.
int free_port() {
  return listen_on_loopback().port;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return argv;
}

// In the child, after fork: async-signal-safe calls only.
[[noreturn]] void become(char* const* argv, const char* log) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  execvp(argv[0], argv);
  _exit(127);
}

std::string text_of(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_INTEGER) return std::to_string(reply.integer);
  if (reply.type == REDIS_REPLY_NIL) return "";
  if (reply.type != REDIS_REPLY_ARRAY) return {reply.str, static_cast<size_t>(reply.len)};
  std::string lines;
  for (size_t i = 0; i < reply.elements; ++i) {
    if (i > 0) lines += '\n';
    lines += text_of(*reply.element[i]);
  }
  return lines;
}

ReplyPtr call(const std::string& path, const std::vector<std::string>& words) {
  ContextPtr context(redisConnectUnixWithTimeout(path.c_str(), timeval{10, 0}));
  if (context == nullptr || context->err != 0) return nullptr;
  redisSetTimeout(context.get(), timeval{10, 0});
  std::vector<const char*> argv;
  std::vector<size_t> lengths;
  for (const std::string& word : words) {
    argv.push_back(word.data());
    lengths.push_back(word.size());
  }
  return ReplyPtr(static_cast<redisReply*>(
      redisCommandArgv(context.get(), static_cast<int>(argv.size()), argv.data(), lengths.data())));
}

}  // namespace

RedisServer::RedisServer(std::vector<std::string> args, Listen listen,
                         std::vector<std::string> before)
    : args_(std::move(args)), before_(std::move(before)) {
  constexpr int kPortTries = 5;
  for (int attempt = 1;; ++attempt) {
    if (listen == Listen::unix_socket_and_tcp) port_ = free_port();
    try {
      start();
      return;
    } catch (const std::runtime_error&) {
      bool port_taken = log().find("Address already in use") != std::string::npos;
      if (port_taken && attempt < kPortTries) continue;
      throw;
    }
  }
}

RedisServer::~RedisServer() {
  kill();
}

void RedisServer::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
}

void RedisServer::start() {
  kill();
  unlink(socket_path().c_str());
  std::vector<std::string> words = command_line();
  std::vector<char*> argv = pointers(words);
  std::string log_path = folder_.file("log");
  pid_ = fork();
  if (pid_ == 0) become(argv.data(), log_path.c_str());
  if (pid_ < 0) throw std::runtime_error("fork failed");
  bool ended = false;
  auto up_or_ended = [&] {
    ended = waitpid(pid_, nullptr, WNOHANG) == pid_;
    return ended || answers();
  };
  if (eventually(up_or_ended) && !ended) return;
  if (ended) pid_ = -1;
  kill();
  throw std::runtime_error("redis-server did not come up:\n" + log());
}

std::vector<std::string> RedisServer::command_line() const {
  std::vector<std::string> words = before_;
  words.insert(words.end(), {"redis-server", "--port", std::to_string(port_), "--bind", "127.0.0.1",
                             "--unixsocket", socket_path(), "--dir", folder_.path(), "--save", "",
                             "--appendonly", "no", "--daemonize", "no"});
  words.insert(words.end(), args_.begin(), args_.end());
  return words;
}

bool RedisServer::answers() const {
  return call(socket_path(), {"PING"}) != nullptr;
}

std::string RedisServer::log() const {
  std::ifstream file(folder_.file("log"));
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string RedisServer::cli(const std::vector<std::string>& words) const {
  ReplyPtr reply = call(socket_path(), words);
  if (reply == nullptr) throw std::runtime_error("redis-server does not answer:\n" + log());
  return text_of(*reply);
}

}  // namespace rlock::test
