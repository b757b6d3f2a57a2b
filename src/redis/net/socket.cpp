#include "redis/net/socket.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "redis/net/tls.hpp"
#include "util/duration.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

constexpr int kKeepIdleSeconds = 15;
constexpr int kKeepEverySeconds = 5;
constexpr int kKeepProbes = 3;
// The total time of the probes: unacknowledged bytes end the connection after that time, too.
constexpr int kUserTimeoutMs = (kKeepIdleSeconds + kKeepEverySeconds * kKeepProbes) * 1000;

// A failure costs latency, never correctness, because callers have their own deadlines.
void tune_tcp(const util::Fd& fd) {
  constexpr int kOptions[][3] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                                 {SOL_SOCKET, SO_KEEPALIVE, 1},
                                 {IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleSeconds},
                                 {IPPROTO_TCP, TCP_KEEPINTVL, kKeepEverySeconds},
                                 {IPPROTO_TCP, TCP_KEEPCNT, kKeepProbes},
                                 {IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs}};
  for (const auto& [level, option, value] : kOptions) {
    setsockopt(fd.get(), level, option, &value, sizeof value);
  }
}

// The caller may have started rlock with 0-2 closed; a socket with such a number would receive what
// the command prints.
util::Fd open_socket(int family) {
  util::Fd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd || fd.get() > 2) return fd;
  return util::Fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

enum class LookupMode { numeric, any };

Resolution::LookupResult addresses_of(const std::string& host, int port, LookupMode mode,
                                      int family = AF_UNSPEC) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (mode == LookupMode::numeric ? AI_NUMERICHOST : 0);
  addrinfo* raw = nullptr;
  int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &raw);
  if (error == EAI_SYSTEM) return {{}, std::strerror(errno)};
  if (error != 0) return {{}, gai_strerror(error), error == EAI_NONAME || error == EAI_NODATA};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(raw, &freeaddrinfo);
  Resolution::LookupResult outcome;
  for (const addrinfo* info = raw; info != nullptr; info = info->ai_next) {
    Address address;
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
    address.length = info->ai_addrlen;
    outcome.addresses.push_back(address);
  }
  return outcome;
}

// poll() cannot wait for a unix socket whose backlog is full.
constexpr Millis kBacklogRetry{5};

// There are too few descriptors or too little memory, so another address would fail, too.
bool is_local_error(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// The errors of socket() if a seccomp filter or SELinux refuses it. connect() returns them for
// other reasons.
bool is_refusal(int error) {
  return error == EPERM || error == EACCES;
}

Error forbidden(int error) {
  return {ErrorKind::denied,
          util::format("{}: a sandbox (seccomp, SELinux) forbids this process to open sockets; run "
                       "rlock outside the sandbox, or allow sockets in it",
                       std::strerror(error))};
}

// The result of a pending attempt once poll() has reported its descriptor: 0 or an errno.
int connect_error(const util::Fd& fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

bool same_address(const Address& a, const Address& b) {
  return a.length == b.length && std::memcmp(&a.storage, &b.storage, a.length) == 0;
}

bool is_decided(const util::Fd& fd) {
  pollfd entry{fd.get(), POLLOUT, 0};
  return poll(&entry, 1, 0) > 0;
}

class PlainStream final : public Stream {
 public:
  explicit PlainStream(util::Fd fd) : fd_(std::move(fd)) {}

  Io write_some(std::string_view& bytes) override {
    return note_errno(redis::write_some(fd_, bytes));
  }
  Io read_some(char* buffer, size_t size, size_t& got) override {
    return note_errno(redis::read_some(fd_, buffer, size, got));
  }
  bool is_quiet() override {
    char byte = 0;
    return recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && would_block(errno);
  }

  pollfd wants(Sending sending) const override {
    int events = sending == Sending::done ? POLLIN : POLLIN | POLLOUT;
    return {fd_.get(), static_cast<short>(events), 0};
  }

  Error error() const override {
    return {ErrorKind::unavailable, std::strerror(error_), Retry::later};
  }

 private:
  Io note_errno(Io io) {
    if (io == Io::failed) error_ = errno;
    return io;
  }

  util::Fd fd_;
  int error_ = 0;
};

}  // namespace

std::optional<Address> unix_address(const std::string& path) {
  sockaddr_un name{};
  if (path.size() >= sizeof name.sun_path) return std::nullopt;
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  Address address;
  std::memcpy(&address.storage, &name, sizeof name);
  address.length = sizeof name;
  return address;
}

ConnectAttempt start_connect(const Address& address) {
  ConnectAttempt attempt;
  attempt.fd = open_socket(address.storage.ss_family);
  if (!attempt.fd) {
    attempt.error = errno;
    attempt.is_forbidden = is_refusal(errno);
    return attempt;
  }
  if (address.storage.ss_family != AF_UNIX) tune_tcp(attempt.fd);
  const auto* name = reinterpret_cast<const sockaddr*>(&address.storage);
  if (connect(attempt.fd.get(), name, address.length) == 0) {
    attempt.state = ConnectState::connected;
  } else if (errno == EINPROGRESS || errno == EINTR) {
    attempt.state = ConnectState::pending;
  } else if (would_block(errno)) {
    attempt.state = ConnectState::full;
  } else {
    attempt.error = errno;
  }
  return attempt;
}

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
  int family = AF_UNSPEC;
  util::Fd event;
  util::Mutex mutex;
  std::optional<LookupResult> outcome;
  TimePoint done_at;
};

Result<Resolution> Resolution::start(const std::string& host, int port, int family) {
  auto shared = std::make_shared<Shared>();
  shared->family = family;
  shared->event.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  auto look_up = [shared, host, port] {
    LookupResult outcome = addresses_of(host, port, LookupMode::any, shared->family);
    {
      std::lock_guard lock(shared->mutex);
      shared->outcome = std::move(outcome);
      shared->done_at = BootClock::now();
    }
    eventfd_write(shared->event.get(), 1);
  };
  const int error = shared->event ? util::start_detached(look_up) : errno;
  if (error == 0) return Resolution(std::move(shared));
  return Error{ErrorKind::system,
               util::format("cannot look up \"{}\": {}", host, std::strerror(error))};
}

int Resolution::family() const {
  return shared_->family;
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

void Dialer::start(TimePoint now, TimePoint deadline) {
  stop();
  deadline_ = deadline;
  first_failure_.clear();
  unknown_ = unreachable_ = false;
  // A lookup that was abandoned for another address may have ended hours ago.
  std::erase_if(lookups_, [&](const Resolution& lookup) {
    return lookup.is_stale(now, server_->connect_timeout);
  });
  // If there is a remembered address, the name server gets half of the time, and none if the last
  // lookup is still unanswered, because the caller may give up sooner than after half of the time.
  const bool still_silent = silent_ && !lookups_.empty();
  attempt_deadline_ = !remembered() ? deadline : still_silent ? now : now + (deadline - now) / 2;
  find_addresses();
  if (phase_ == DialPhase::idle) try_next(now);
}

void Dialer::stop() {
  phase_ = DialPhase::idle;
  fd_.reset();
  addresses_.clear();
  next_ = 0;
  error_.reset();
}

void Dialer::find_addresses() {
  if (server_->is_unix()) {
    auto address = unix_address(server_->path);
    if (!address) {
      return fail({ErrorKind::config,
                   "the path of a socket can have at most 107 bytes; use a shorter one, or a "
                   "symbolic link"});
    }
    addresses_.push_back(*address);
    return;
  }
  addresses_ = known_addresses(server_->host, server_->port);
  if (!addresses_.empty()) return;
  // Otherwise getaddrinfo() would report that the name servers do not answer.
  if (!open_socket(AF_INET) && is_refusal(errno)) return fail(forbidden(errno));
  phase_ = DialPhase::looking_up;
  silent_ = true;
  if (auto started = start_lookups(); !started && lookups_.empty()) fail(started.error().text);
}

Status Dialer::start_lookups() {
  constexpr std::ptrdiff_t kMostOfFamily = 2;
  for (const int family : {AF_INET, AF_INET6}) {
    const auto in_flight = std::count_if(lookups_.begin(), lookups_.end(), [&](const auto& lookup) {
      return lookup.family() == family;
    });
    if (in_flight >= kMostOfFamily) continue;
    TRY(auto lookup, Resolution::start(server_->host, server_->port, family));
    lookups_.push_back(std::move(lookup));
  }
  return Done{};
}

// Takes the results of finished lookups.
void Dialer::collect_lookups() {
  for (size_t i = 0; i < lookups_.size();) {
    if (!lookups_[i].done()) {
      ++i;
      continue;
    }
    auto result = lookups_[i].take();
    lookups_.erase(lookups_.begin() + static_cast<std::ptrdiff_t>(i));
    silent_ = false;
    unknown_ = first_failure_.empty() ? result.is_unknown : unknown_ && result.is_unknown;
    if (first_failure_.empty()) first_failure_ = std::move(result.failure);
    for (const Address& address : result.addresses) {
      const auto same = [&](const Address& one) { return same_address(one, address); };
      if (std::none_of(addresses_.begin(), addresses_.end(), same)) addresses_.push_back(address);
    }
  }
}

void Dialer::check_lookups(TimePoint now) {
  collect_lookups();
  const bool in_time = !lookups_.empty() && now < attempt_deadline_;
  if (next_ < addresses_.size()) return try_next(now);
  if (in_time) return;
  if (auto last = remembered(); last && addresses_.empty()) {
    addresses_.push_back(*last);
    return try_next(now);
  }
  if (!first_failure_.empty() && (lookups_.empty() || next_ > 0 || now >= deadline_)) {
    return fail(first_failure_);
  }
  if (now < deadline_) return;
  fail(timeout_text() + " looking up the host name");
}

void Dialer::try_next(TimePoint now) {
  while (next_ < addresses_.size()) {
    // Each address gets its share of the remaining time, and so does an address that is still being
    // looked up, because a dead address must not use all of it.
    const size_t shares = addresses_.size() - next_ + (lookups_.empty() ? 0 : 1);
    attempt_deadline_ = now + (deadline_ - now) / static_cast<TimePoint::rep>(shares);
    ConnectAttempt attempt = start_connect(addresses_[next_++]);
    if (attempt.is_forbidden) return fail(forbidden(attempt.error));
    if (is_local_error(attempt.error)) {
      return fail({ErrorKind::system, std::strerror(attempt.error), Retry::later});
    }
    if (attempt.state == ConnectState::failed) {
      if (server_->is_unix() && attempt.error == EACCES) {
        return fail({ErrorKind::denied, std::strerror(attempt.error)});
      }
      note_failure(attempt.error);
      continue;
    }
    if (attempt.state == ConnectState::full) {
      --next_;
      phase_ = DialPhase::backlog_full;
      attempt_deadline_ = now + kBacklogRetry;
      return;
    }
    fd_ = std::move(attempt.fd);
    phase_ = attempt.state == ConnectState::connected ? DialPhase::ended : DialPhase::connecting;
    return;
  }
  if (lookups_.empty()) return fail(first_failure_);
  // Only the addresses of the other family may be reachable from here.
  constexpr Millis kOtherFamily{250};
  phase_ = DialPhase::looking_up;
  attempt_deadline_ = unreachable_ ? deadline_ : std::min(deadline_, now + kOtherFamily);
}

void Dialer::note_failure(int error) {
  unreachable_ = error == ENETUNREACH || error == EHOSTUNREACH || error == EAFNOSUPPORT ||
                 error == EADDRNOTAVAIL;
  unknown_ = false;
  if (first_failure_.empty() || next_ == 1) first_failure_ = std::strerror(error);
}

void Dialer::check_attempt(TimePoint now) {
  collect_lookups();
  if (!is_decided(fd_)) {
    if (now >= attempt_deadline_ && next_ < addresses_.size()) try_next(now);
    return;
  }
  int error = connect_error(fd_);
  if (error == 0) {
    phase_ = DialPhase::ended;
    return;
  }
  note_failure(error);
  try_next(now);
}

std::string Dialer::timeout_text() const {
  return util::format("timed out after {}{}", util::format_duration(server_->connect_timeout),
                      server_->is_longest_try ? " (the limit of one try)" : " (--connect-timeout)");
}

bool Dialer::advance(TimePoint now) {
  if (phase_ == DialPhase::looking_up) check_lookups(now);
  if (phase_ == DialPhase::backlog_full && now >= attempt_deadline_ && now < deadline_)
    try_next(now);
  if (phase_ == DialPhase::connecting) check_attempt(now);
  bool waiting = phase_ == DialPhase::connecting || phase_ == DialPhase::backlog_full;
  if (waiting && now >= deadline_) {
    fail(timeout_text());
  }
  return phase_ == DialPhase::ended;
}

Result<util::Fd> Dialer::take() {
  phase_ = DialPhase::idle;
  if (error_) return *std::exchange(error_, std::nullopt);
  return std::move(fd_);
}

void Dialer::wants(std::vector<pollfd>& out) const {
  if (phase_ == DialPhase::connecting) out.push_back({fd_.get(), POLLOUT, 0});
  if (phase_ != DialPhase::looking_up && phase_ != DialPhase::connecting) return;
  for (const Resolution& lookup : lookups_) out.push_back({lookup.fd(), POLLIN, 0});
}

TimePoint Dialer::due() const {
  // The last known address is tried until another one is found.
  const bool last = phase_ == DialPhase::connecting && next_ == addresses_.size();
  return last ? deadline_ : std::min(attempt_deadline_, deadline_);
}

void Dialer::answered() {
  bool tried = next_ > 0 && next_ <= addresses_.size();
  if (tried && server_->addresses != nullptr) server_->addresses->keep(addresses_[next_ - 1]);
}

std::optional<Address> Dialer::remembered() const {
  return server_->addresses != nullptr ? server_->addresses->last() : std::nullopt;
}

void Dialer::fail(const std::string& why) {
  const Cause cause = unknown_ && lookups_.empty() ? Cause::unknown_host : Cause::other;
  fail({ErrorKind::unavailable, why, Retry::later, Answered::no, cause});
}

void Dialer::fail(Error why) {
  fd_.reset();
  phase_ = DialPhase::ended;
  why.text = util::format("cannot connect to {}: {}", server_->label(), why.text);
  error_ = std::move(why);
}

Io write_some(const util::Fd& fd, std::string_view& bytes) {
  while (!bytes.empty()) {
    ssize_t sent = send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (would_block(errno)) {
      return Io::would_block;
    } else if (errno != EINTR) {
      return Io::failed;
    }
  }
  return Io::done;
}

Io read_some(const util::Fd& fd, char* buffer, size_t size, size_t& got) {
  while (true) {
    ssize_t count = recv(fd.get(), buffer, size, 0);
    if (count > 0) {
      got = static_cast<size_t>(count);
      return got == size ? Io::done : Io::drained;
    }
    if (count == 0) return Io::closed;
    if (would_block(errno)) return Io::would_block;
    if (errno != EINTR) return Io::failed;
  }
}

Result<std::unique_ptr<Stream>> make_stream(const Server& server, util::Fd fd) {
  if (server.tls == nullptr) {
    return std::unique_ptr<Stream>(std::make_unique<PlainStream>(std::move(fd)));
  }
  return server.tls->wrap(std::move(fd), server.host);
}

}  // namespace rlock::redis
