#include "cli/output/console.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <regex>

#include "cli/run_observer.hpp"
#include "util/fd.hpp"

using namespace rlock;
using namespace rlock::cli;

namespace {

// stderr is this pipe while it lives.
class CapturedStderr {
 public:
  CapturedStderr() : saved_(dup(STDERR_FILENO)) {
    std::array<int, 2> ends{};
    REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
    read_.reset(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
  }
  ~CapturedStderr() { dup2(saved_.get(), STDERR_FILENO); }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  void fill() {
    int flags = fcntl(STDERR_FILENO, F_GETFL);
    fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
    std::array<char, 4096> block{};
    while (write(STDERR_FILENO, block.data(), block.size()) > 0) {
    }
    fcntl(STDERR_FILENO, F_SETFL, flags);
  }
  void drain() {
    fcntl(read_.get(), F_SETFL, O_NONBLOCK);
    std::array<char, 4096> block{};
    while (read(read_.get(), block.data(), block.size()) > 0) {
    }
  }
  std::string text() {
    std::array<char, 4096> buffer{};
    ssize_t n = read(read_.get(), buffer.data(), buffer.size());
    return {buffer.data(), n > 0 ? static_cast<size_t>(n) : 0};
  }

 private:
  util::Fd saved_;
  util::Fd read_;
};

}  // namespace

TEST_CASE("rlock gives up on a full pipe on stderr, and leaves it blocking for its other users") {
  CapturedStderr captured;
  captured.fill();
  auto start = BootClock::now();
  write_stderr("lost", Millis(50));
  CHECK(BootClock::now() - start >= Millis(50));
  CHECK((fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("output that is no terminal has 80 columns") {
  CapturedStderr captured;
  CHECK(columns(STDERR_FILENO) == 80);
  CHECK_FALSE(is_terminal(STDERR_FILENO));
}

TEST_CASE("a full pipe on stderr delays no event of -v, and gets them all when it is read") {
  CapturedStderr captured;
  captured.fill();
  RunObserver observer(*lock::LockName::parse("full"), Verbosity::verbose, std::nullopt);
  auto start = BootClock::now();
  for (auto kind : {run::EventKind::acquired, run::EventKind::terminating, run::EventKind::killed,
                    run::EventKind::exited, run::EventKind::released}) {
    observer.on(run::Event{kind, start, {}, {}});
  }
  CHECK(BootClock::now() - start < 5 * kFinalPrintTimeout);  // each would wait so long
  captured.drain();
  observer.finish_output();
  std::string text = captured.text();
  CHECK(std::regex_search(text, std::regex("^rlock: [-0-9]{10}T[:0-9]{8}Z \"full\": acquired\n")));
  CHECK(text.ends_with("Z \"full\": released\n"));
}

TEST_CASE("a terminal that takes nothing delays no warning of a stop, and gets it afterwards") {
  int ends[2];
  REQUIRE(openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr) == 0);
  const util::Fd screen(ends[0]), terminal(ends[1]), saved(dup(STDERR_FILENO));
  dup2(terminal.get(), STDERR_FILENO);
  RunObserver observer(*lock::LockName::parse("stopped"), Verbosity::normal, std::nullopt);
  tcflow(terminal.get(), TCOOFF);
  const auto start = BootClock::now();
  for (int i = 0; i < 5; ++i) observer.on(run::Suspending{Millis(50'000)});
  // The renewal thread would wait for each as long.
  const auto took = BootClock::now() - start;
  tcflow(terminal.get(), TCOON);
  observer.finish_output();
  dup2(saved.get(), STDERR_FILENO);
  CHECK(took < 5 * kFinalPrintTimeout);
  std::array<char, 4096> shown{};
  const ssize_t n = read(screen.get(), shown.data(), shown.size());
  const std::string text(shown.data(), n > 0 ? static_cast<size_t>(n) : 0);
  CHECK(text.find("\"stopped\": suspended; rlock will stop the command in 50s") != text.npos);
}
