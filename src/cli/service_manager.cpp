#include "cli/service_manager.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "cli/settings/resolve.hpp"
#include "util/fd.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr Millis kNoWait{0};
// Six consecutive reports may get lost.
constexpr auto kStartProlongedBy = 6 * ServiceManager::kReportEvery;
// How long to wait for a receiver that has fallen behind, for the one report that it needs.
constexpr Millis kReadyTimeout{100};

struct Address {
  sockaddr_un socket{};
  socklen_t length = 0;  // 0: the address is not supported
};

// Parses a path, or `@` and the name of an abstract socket, which need not end in a zero byte.
Address parse_address(std::string_view text) {
  Address address;
  const bool abstract = text.starts_with('@');
  const size_t room = sizeof address.socket.sun_path - (abstract ? 0 : 1);
  if (text.size() < 2 || text.size() > room || !(abstract || text.front() == '/')) return address;
  address.socket.sun_family = AF_UNIX;
  std::memcpy(address.socket.sun_path, text.data(), text.size());
  if (abstract) address.socket.sun_path[0] = '\0';
  const size_t end = text.size() + (abstract ? 0 : 1);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + end);
  return address;
}

// Sends over a new socket, because the receiver may have bound its address anew since the last
// report.
bool send_report(const std::string& address_text, const std::string& report, Millis bound) {
  const Address address = parse_address(address_text);
  if (address.length == 0) return false;
  util::Fd own(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* receiver = reinterpret_cast<const sockaddr*>(&address.socket);
  if (!own || connect(own.get(), receiver, address.length) != 0) return false;
  auto sent = [&] { return send(own.get(), report.data(), report.size(), MSG_NOSIGNAL) >= 0; };
  if (sent()) return true;
  pollfd room{own.get(), POLLOUT, 0};
  return errno == EAGAIN && bound > kNoWait &&
         poll(&room, 1, static_cast<int>(bound.count())) > 0 && sent();
}

// Makes one line, short enough for any receiver.
std::string status_line(const std::string& status) {
  constexpr size_t kLongest = 500;
  return "STATUS=" + util::shortened(util::printable(status), kLongest);
}

}  // namespace

void ServiceManager::report_waiting(const std::string& status, TimePoint now) {
  if (!expects_reports() || (status == last_status_ && now < next_report_)) return;
  last_status_ = status;
  next_report_ = now + kReportEvery;
  const auto prolonged = std::chrono::microseconds(kStartProlongedBy).count();
  send_report(address_, status_line(status) + "\nEXTEND_TIMEOUT_USEC=" + std::to_string(prolonged),
              kNoWait);
}

void ServiceManager::report_ready(const std::string& status) {
  if (!expects_reports()) return;
  unsent_ready_ = "READY=1\n" + status_line(status);
  if (send_report(address_, unsent_ready_, kReadyTimeout)) unsent_ready_.clear();
}

void ServiceManager::retry_ready() {
  if (!unsent_ready_.empty() && send_report(address_, unsent_ready_, kNoWait)) {
    unsent_ready_.clear();
  }
}

ServiceManager service_manager() {
  const char* address = system_getenv("NOTIFY_SOCKET");
  const char* held = system_getenv("RLOCK_HELD");
  const bool inside = held != nullptr && *held != '\0';
  if (address == nullptr || inside) return {};
  return ServiceManager(address);
}

}  // namespace rlock::cli
