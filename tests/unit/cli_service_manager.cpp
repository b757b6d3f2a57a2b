#include "cli/service_manager.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "support/scratch.hpp"
#include "util/fd.hpp"

using namespace rlock;
using namespace rlock::cli;

namespace {

// A bound datagram socket, as a service manager has.
class Receiver {
 public:
  explicit Receiver(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.size());
    REQUIRE(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }

  // The next report; empty where there is none.
  std::string next() {
    std::array<char, 8192> buffer{};
    ssize_t length = read(socket_.get(), buffer.data(), buffer.size());
    return {buffer.data(), length > 0 ? static_cast<size_t>(length) : 0};
  }

 private:
  util::Fd socket_;
};

}  // namespace

TEST_CASE("a wait is reported when it changes, and again every ten seconds") {
  test::Scratch scratch;
  Receiver receiver(scratch.file("notify"));
  ServiceManager manager(scratch.file("notify"));
  const TimePoint start = BootClock::now();
  manager.report_waiting("waiting", start);
  CHECK(receiver.next() == "STATUS=waiting\nEXTEND_TIMEOUT_USEC=60000000");
  manager.report_waiting("waiting", start + Millis(9'999));
  CHECK(receiver.next().empty());
  manager.report_waiting("waiting", start + Millis(10'000));
  CHECK_FALSE(receiver.next().empty());
  manager.report_waiting("waiting longer", start + Millis(10'001));
  CHECK(receiver.next() == "STATUS=waiting longer\nEXTEND_TIMEOUT_USEC=60000000");
}

TEST_CASE("a status is one printable line of bounded length") {
  test::Scratch scratch;
  Receiver receiver(scratch.file("notify"));
  ServiceManager manager(scratch.file("notify"));
  manager.report_ready("held by \x1b\nREADY=0 " + std::string(10'000, 'x'));
  const std::string report = receiver.next();
  CHECK(report.starts_with("READY=1\nSTATUS=held by \\x1b\\x0aREADY=0 x"));
  CHECK(report.size() < 600);
}

TEST_CASE("if the receiver has fallen behind, READY=1 is sent again until it has room") {
  test::Scratch scratch;
  Receiver receiver(scratch.file("notify"));
  ServiceManager manager(scratch.file("notify"));
  const TimePoint start = BootClock::now();
  constexpr int kMoreThanAnyQueue = 5'000;
  for (int i = 0; i < kMoreThanAnyQueue; ++i) manager.report_waiting(std::to_string(i), start);
  manager.report_ready("holding");
  manager.retry_ready();
  std::string last;
  for (std::string report = receiver.next(); !report.empty(); report = receiver.next()) {
    last = report;
  }
  CHECK_FALSE(last.starts_with("READY=1"));
  manager.retry_ready();
  CHECK(receiver.next() == "READY=1\nSTATUS=holding");
  manager.retry_ready();
  CHECK(receiver.next().empty());
}
