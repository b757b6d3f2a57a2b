#pragma once

#include <string>

#include "util/clock.hpp"

namespace rlock::cli {

// Reports to the service manager that started rlock, over the datagram socket that NOTIFY_SOCKET
// names: see sd_notify(3). If a report cannot be sent, it is dropped, and the run continues.
class ServiceManager {
 public:
  ServiceManager() = default;  // without a service manager
  explicit ServiceManager(std::string address) : address_(std::move(address)) {}

  bool expects_reports() const { return !address_.empty(); }

  // Call while the run waits for the lock: extends the start timeout of the service. `status`, for
  // people, is sent immediately if it has changed, else every kReportEvery.
  void report_waiting(const std::string& status, TimePoint now);
  // The service has started.
  void report_ready(const std::string& status);
  // Sends that report again if the socket had no room for it.
  void retry_ready();

  static constexpr Millis kReportEvery{10'000};

 private:
  std::string address_;
  std::string last_status_;
  std::string unsent_ready_;
  TimePoint next_report_ = TimePoint::min();
};

// Reads NOTIFY_SOCKET. Returns none for a nested run, whose service has started already.
ServiceManager service_manager();

}  // namespace rlock::cli
