#include "redis/local/local.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

#include "redis/open.hpp"
#include "redis_call.hpp"
#include "support/scratch.hpp"
#include "util/fd.hpp"

using namespace rlock;
using redis::Connection;
using redis::local_server;
using test::call;
using test::reply_text;

namespace {

namespace fs = std::filesystem;

std::string field(const std::string& info, const std::string& name) {
  size_t at = info.find(name + ":");
  if (at == std::string::npos) return {};
  at += name.size() + 1;
  return info.substr(at, info.find_first_of("\r\n", at) - at);
}

// A folder for one test; a server that was started in it is ended with it.
class Folder {
 public:
  ~Folder() {
    if (fs::exists(path() + "/rlock.sock")) {
      if (auto server = local_server(path())) {
        Connection connection(*server);
        (void)call(connection, {"SHUTDOWN", "NOSAVE"});
      }
    }
  }
  std::string path() const { return root_.file("a b/locks"); }

 private:
  test::Scratch root_;
};

std::string ask(const std::string& folder, const std::vector<std::string>& words) {
  auto server = local_server(folder);
  if (!server) return "! " + server.error().text;
  Connection connection(*server);
  return reply_text(call(connection, words));
}

pid_t pid_of(const std::string& folder) {
  return static_cast<pid_t>(std::stol(field(ask(folder, {"INFO", "server"}), "process_id")));
}

std::string status_line(pid_t pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  return field(text, name);
}

}  // namespace

TEST_CASE("local: starts a private durable server once and finds it again") {
  Folder folder;
  CHECK(ask(folder.path(), {"SET", "k", "v"}) == "OK");
  pid_t pid = pid_of(folder.path());
  CHECK(ask(folder.path(), {"GET", "k"}) == "v");
  CHECK(pid_of(folder.path()) == pid);
  std::string info = ask(folder.path(), {"INFO"});
  CHECK(field(info, "tcp_port") == "0");
  CHECK(field(info, "aof_enabled") == "1");
  CHECK(field(info, "maxmemory_policy") == "noeviction");
  CHECK(fs::status(folder.path()).permissions() == fs::perms::owner_all);
}

TEST_CASE("local: keeps the data over a server that was killed, and its stale socket") {
  Folder folder;
  REQUIRE(ask(folder.path(), {"SET", "k", "v"}) == "OK");
  pid_t pid = pid_of(folder.path());
  util::Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  REQUIRE(process);
  kill(pid, SIGKILL);
  pollfd ended{process.get(), POLLIN, 0};
  REQUIRE(poll(&ended, 1, 10'000) == 1);
  CHECK(ask(folder.path(), {"GET", "k"}) == "v");
  CHECK(pid_of(folder.path()) != pid);
}

TEST_CASE("the server of local: has a session, signals and descriptors of its own") {
  Folder folder;
  int ours = open("/dev/null", O_RDONLY);  // without CLOEXEC: the caller's descriptors are such
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  signal(SIGUSR1, SIG_IGN);
  pid_t pid = pid_of(folder.path());
  signal(SIGUSR1, SIG_DFL);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  close(ours);
  CHECK(getsid(pid) != getsid(0));
  CHECK(getsid(pid) != pid);  // not a leader, so that it never gets a controlling terminal
  CHECK(status_line(pid, "SigBlk").ends_with("0000000000000000"));
  CHECK((std::stoul(status_line(pid, "SigIgn"), nullptr, 16) & (1UL << (SIGUSR1 - 1))) == 0);
  std::string descriptors = "/proc/" + std::to_string(pid) + "/fd";
  for (const auto& entry : fs::directory_iterator(descriptors)) {
    std::error_code closed_meanwhile;
    std::string target = fs::read_symlink(entry.path(), closed_meanwhile);
    if (closed_meanwhile) continue;
    bool own = target.starts_with("socket:") || target.starts_with("pipe:") ||
               target.starts_with("anon_inode:") ||
               target.starts_with(fs::canonical(folder.path()).string());
    int number = std::stoi(entry.path().filename());
    CHECK_MESSAGE((own || number == 0), target);
  }
  std::ifstream environment("/proc/" + std::to_string(pid) + "/environ");
  std::string text{std::istreambuf_iterator<char>(environment), {}};
  CHECK(text.find("PATH=") == std::string::npos);
}

TEST_CASE("many first starts at once give exactly one server") {
  Folder folder;
  constexpr int kStarters = 12;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::vector<pid_t> starters;
  for (int i = 0; i < kStarters; ++i) {
    pid_t starter = fork();
    if (starter == 0) {
      auto server = local_server(folder.path());
      pid_t pid = server ? pid_of(folder.path()) : -1;
      _exit(write(ends[1], &pid, sizeof pid) == sizeof pid ? 0 : 1);
    }
    starters.push_back(starter);
  }
  close(ends[1]);
  std::set<pid_t> servers;
  pid_t pid = 0;
  int answers = 0;
  for (; read(ends[0], &pid, sizeof pid) == sizeof pid; ++answers) servers.insert(pid);
  close(ends[0]);
  for (pid_t starter : starters) waitpid(starter, nullptr, 0);
  CHECK(answers == kStarters);
  CHECK(servers.size() == 1);
  CHECK(*servers.begin() > 0);
}

TEST_CASE("first starts at once do not fail because another one makes the folder meanwhile") {
  constexpr int kStarters = 8;
  constexpr int kRounds = 100;
  int folder_errors = 0;
  for (int round = 0; round < kRounds; ++round) {
    test::Scratch root;
    int gate[2];
    REQUIRE(pipe(gate) == 0);
    std::vector<pid_t> starters;
    for (int i = 0; i < kStarters; ++i) {
      starters.push_back(fork());
      if (starters.back() != 0) continue;
      setenv("PATH", "/nowhere",
             1);  // no server is wanted: its program is looked for after the folder
      close(gate[1]);
      char opened = 0;
      (void)!read(gate[0], &opened, 1);
      auto server = local_server(root.file("a/b/locks"));
      _exit(!server && server.error().text.find("must be on PATH") != std::string::npos ? 0 : 1);
    }
    close(gate[0]);
    close(gate[1]);
    for (pid_t starter : starters) {
      int status = 0;
      waitpid(starter, &status, 0);
      folder_errors += status == 0 ? 0 : 1;
    }
  }
  CHECK(folder_errors == 0);
}

TEST_CASE(
    "local: refuses a folder that others may enter, a file, and a path too long for a socket") {
  Folder folder;
  fs::create_directories(folder.path());
  SUBCASE("others may enter") {
    chmod(folder.path().c_str(), 0755);
    auto server = local_server(folder.path());
    REQUIRE_FALSE(server);
    CHECK(server.error().kind == ErrorKind::config);
    CHECK(server.error().text.find("chmod 700") != std::string::npos);
  }
  SUBCASE("a file") {
    std::ofstream(folder.path() + "/file") << "x";
    auto server = local_server(folder.path() + "/file");
    REQUIRE_FALSE(server);
    CHECK(server.error().kind == ErrorKind::config);
  }
  SUBCASE("too long") {
    auto server = local_server(folder.path() + "/" + std::string(100, 'x'));
    REQUIRE_FALSE(server);
    CHECK(server.error().kind == ErrorKind::config);
    CHECK(server.error().text.find("too long") != std::string::npos);
  }
}

TEST_CASE("without a server program local: says what to install") {
  Folder folder;
  std::string path = getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  auto server = local_server(folder.path());
  setenv("PATH", path.c_str(), 1);
  REQUIRE_FALSE(server);
  CHECK(server.error().kind == ErrorKind::config);
  CHECK(server.error().text.find("redis-server or valkey-server") != std::string::npos);
}

TEST_CASE("the error of a server that cannot start names its log") {
  Folder folder;
  fs::create_directories(folder.path());
  chmod(folder.path().c_str(), 0700);
  fs::create_directories(folder.path() + "/rlock.sock");  // a folder with the name of the socket
  auto server = local_server(folder.path());
  fs::remove(folder.path() + "/rlock.sock");
  REQUIRE_FALSE(server);
  CHECK(server.error().text.find("rlock.log") != std::string::npos);
}

TEST_CASE("open() gives stores of a local: server and ignores credentials meant for others") {
  Folder folder;
  redis::OpenOptions options;
  options.urls = {redis::LocalUrl{folder.path()}};
  options.password = "for another server";
  auto make = redis::open(options);
  REQUIRE(make);
  CHECK((*make)()->server() == folder.path() + "/rlock.sock");
}
