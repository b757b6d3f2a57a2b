#pragma once

#include <string>

#include "util/clock.hpp"

namespace rlock::cli {

// Reports to the service manager that started rlock, over the datagram socket that NOTIFY_SOCKET
// names: see sd_notify(3). A report that cannot be sent is dropped, whatever that socket is: the
// run continues.
class ServiceManager {
 public:
  ServiceManager() = default;  // there is none
  explicit ServiceManager(std::string address) : address_(std::move(address)) {}

  bool expects_reports() const { return !address_.empty(); }

  // While the lock is waited for: prolongs the time for the start of the service. `status`, for
  // people, is sent at once where it has changed, else every kReportEvery.
  void report_waiting(const std::string& status, TimePoint now);
  // The service has started.
  void report_ready(const std::string& status);
  // Sends that again where the socket had no room for it.
  void retry_ready();

  static constexpr Millis kReportEvery{10'000};

 private:
  std::string address_;
  std::string last_status_;
  std::string unsent_ready_;
  TimePoint next_report_ = TimePoint::min();
};

// Of NOTIFY_SOCKET. None for a run inside another run, whose service has started already.
ServiceManager service_manager();

}  // namespace rlock::cli
