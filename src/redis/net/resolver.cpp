#include "redis/net/resolver.hpp"

#include <netdb.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "util/detached.hpp"
#include "util/fd.hpp"

namespace rlock::redis {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};

enum class LookupMode { numeric, any };

Resolution::LookupResult addresses_of(const std::string& host, int port, LookupMode mode) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (mode == LookupMode::numeric ? AI_NUMERICHOST : 0);
  addrinfo* raw = nullptr;
  int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &raw);
  if (error == EAI_SYSTEM) return {{}, std::strerror(errno)};
  if (error != 0) return {{}, gai_strerror(error)};
  std::unique_ptr<addrinfo, FreeAddresses> list(raw);
  Resolution::LookupResult outcome;
  for (const addrinfo* info = raw; info != nullptr; info = info->ai_next) {
    Address address;
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
    address.length = info->ai_addrlen;
    outcome.addresses.push_back(address);
  }
  return outcome;
}

}  // namespace

void AddressMemory::keep(const Address& address) {
  std::lock_guard lock(mutex_);
  last_ = address;
}

std::optional<Address> AddressMemory::last() const {
  std::lock_guard lock(mutex_);
  return last_;
}

std::vector<Address> known_addresses(const std::string& host, int port) {
  if (host != "localhost") return addresses_of(host, port, LookupMode::numeric).addresses;
  auto both = addresses_of("127.0.0.1", port, LookupMode::numeric).addresses;
  auto v6 = addresses_of("::1", port, LookupMode::numeric).addresses;
  both.insert(both.end(), v6.begin(), v6.end());
  return both;
}

struct Resolution::Shared {
  std::string host;
  int port = 0;
  util::Fd event;
  std::mutex mutex;
  std::optional<LookupResult> outcome;
  TimePoint done_at;
  std::shared_ptr<Shared> for_thread;  // the thread's own reference, until it has taken it
};

Result<Resolution> Resolution::start(const std::string& host, int port) {
  auto shared = std::make_shared<Shared>();
  shared->host = host;
  shared->port = port;
  shared->event.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  shared->for_thread = shared;
  int error = shared->event ? util::start_detached(look_up, shared.get()) : errno;
  if (error != 0) {
    shared->for_thread.reset();
    return Error{ErrorKind::system, "cannot look up \"" + host + "\": " + std::strerror(error)};
  }
  return Resolution(std::move(shared));
}

void* Resolution::look_up(void* argument) {
  std::shared_ptr<Shared> shared = std::move(static_cast<Shared*>(argument)->for_thread);
  LookupResult outcome = addresses_of(shared->host, shared->port, LookupMode::any);
  {
    std::lock_guard lock(shared->mutex);
    shared->outcome = std::move(outcome);
    shared->done_at = BootClock::now();
  }
  eventfd_write(shared->event.get(), 1);
  return nullptr;
}

int Resolution::fd() const {
  return shared_->event.get();
}

bool Resolution::done() const {
  std::lock_guard lock(shared_->mutex);
  return shared_->outcome.has_value();
}

bool Resolution::is_stale(TimePoint now, Millis age) const {
  std::lock_guard lock(shared_->mutex);
  return shared_->outcome && now - shared_->done_at > age;
}

Resolution::LookupResult Resolution::take() {
  std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->outcome, std::nullopt).value_or(LookupResult{});
}

}  // namespace rlock::redis
