#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/net/url.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "util/mutex.hpp"
#include "util/result.hpp"

// How a connection is made, and how bytes pass over it. Nothing here blocks.
namespace rlock::redis {

// The address of a TCP or unix socket.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

// nullopt: the path is too long for the name of a socket (107 bytes).
std::optional<Address> unix_address(const std::string& path);

enum class ConnectState {
  pending,  // the socket becomes writable when it has succeeded or failed
  connected,
  full,  // the backlog of a unix socket is full: there is nothing to poll for; try again in a
         // moment
  failed,
};

struct ConnectAttempt {
  ConnectState state = ConnectState::failed;
  util::Fd fd;                // of a pending or connected attempt: non-blocking, CLOEXEC, never 0-2
  int error = 0;              // errno of a failed attempt
  bool is_forbidden = false;  // this process may not open such a socket
};

ConnectAttempt start_connect(const Address& address);

// What earlier connections to a server have shown: the address where it answered last, in case its
// name cannot be resolved later, whether it accepted the login, and whether it closes the
// connection after CLIENT, as some proxies do.
class AddressMemory {
 public:
  void keep(const Address& address);
  std::optional<Address> last() const;
  bool was_accepted() const { return was_accepted_; }
  void note_accepted() { was_accepted_ = true; }
  bool hangs_up_on_client() const { return hangs_up_on_client_; }
  void note_client_hang_up() { hangs_up_on_client_ = true; }

 private:
  std::atomic<bool> was_accepted_ = false;
  std::atomic<bool> hangs_up_on_client_ = false;
  mutable util::Mutex mutex_;  // the renewal thread has its own connection
  std::optional<Address> last_;
};

// Whether a server has carried out a command of this process. Until then it is final if a server
// refuses the login, or one side of TLS the other; later both may have been replaced just now.
// Shared by the servers with the same login and certificates: the masters of a Sentinel group, the
// nodes of a cluster.
class Admission {
 public:
  bool was_granted() const { return granted_; }
  void note_grant() { granted_ = true; }

 private:
  std::atomic<bool> granted_ = false;
};

// The addresses of a host that needs no lookup: a numeric address, and `localhost` as 127.0.0.1,
// then ::1. Empty for every other name.
std::vector<Address> known_addresses(const std::string& host, int port);

// A lookup in flight, on its own thread because getaddrinfo() has no deadline. Destroying it
// abandons the thread, which owns everything that it uses and ends by itself.
class Resolution {
 public:
  // Looks up the addresses of one family, AF_INET or AF_INET6. ErrorKind::system if the thread
  // cannot be started.
  static Result<Resolution> start(const std::string& host, int port, int family);

  int family() const;
  // Readable once done().
  int fd() const;
  bool done() const;
  // Whether it was done more than `age` ago.
  bool is_stale(TimePoint now, Millis age) const;

  struct LookupResult {
    std::vector<Address> addresses;
    std::string failure;      // why there are no addresses
    bool is_unknown = false;  // the name servers know no such address
  };
  // Call once, after done().
  LookupResult take();

 private:
  struct Shared;
  explicit Resolution(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  std::shared_ptr<Shared> shared_;
};

// Connects a socket to a server: looks up its name and tries its addresses in order, within one
// absolute deadline. It looks up IPv4 and IPv6 independently and tries the first address that comes
// first, because some name servers never answer for one of them. Driven like a lock::Request.
// `server` must outlive it.
class Dialer {
 public:
  explicit Dialer(const Server& server) : server_(&server) {}

  void start(TimePoint now, TimePoint deadline);
  // Gives up. Keeps a lookup in flight for the next start, which uses its result unless that is
  // older than a connect timeout. That start also sends another lookup, because a packet may be
  // lost. So there are at most two threads for each family.
  void stop();

  void wants(std::vector<pollfd>& out) const;
  TimePoint due() const;
  // True once take() has a socket or an Error.
  bool advance(TimePoint now);
  Result<util::Fd> take();

  // The server has answered, so its address is remembered.
  void answered();

 private:
  enum class DialPhase { idle, looking_up, connecting, backlog_full, ended };

  void find_addresses();
  Status start_lookups();
  void collect_lookups();
  void check_lookups(TimePoint now);
  void try_next(TimePoint now);
  void check_attempt(TimePoint now);
  void note_failure(int error);
  std::string timeout_text() const;
  void fail(const std::string& why);
  void fail(Error why);
  std::optional<Address> remembered() const;

  const Server* server_;
  DialPhase phase_ = DialPhase::idle;
  TimePoint deadline_;
  TimePoint attempt_deadline_;       // of this lookup or address
  std::vector<Resolution> lookups_;  // in flight
  bool silent_ = false;              // the last lookups have returned nothing so far
  bool unknown_ = false;  // all lookups that ended for this start report that there is no such host
  std::vector<Address> addresses_;
  size_t next_ = 0;           // index in addresses_
  bool unreachable_ = false;  // the last address that failed cannot be reached from here
  util::Fd fd_;
  std::string first_failure_;
  std::optional<Error> error_;
};

enum class Io {
  done,
  drained,  // only read_some: done, and nothing is left for now
  would_block,
  closed,
  failed,  // errno says why
};

// Writes as much as possible and removes that from the front of `bytes`; done when all is written.
// Raises no SIGPIPE.
Io write_some(const util::Fd& fd, std::string_view& bytes);

// Reads once: done or drained with `got` bytes in `buffer`, closed at the end of file.
Io read_some(const util::Fd& fd, char* buffer, size_t size, size_t& got);

enum class Sending { done, pending };

// A connected socket, plain or with TLS.
class Stream {
 public:
  virtual ~Stream() = default;

  // Like the functions above; error() describes a failure.
  virtual Io write_some(std::string_view& bytes) = 0;
  virtual Io read_some(char* buffer, size_t size, size_t& got) = 0;
  // Whether an idle connection can still be used: the peer has not closed it, and no stray bytes
  // wait.
  virtual bool is_quiet() = 0;

  // What to poll for, depending on whether write_some() has left bytes unsent.
  virtual pollfd wants(Sending sending) const = 0;

  // The error for a peer that has not answered in time: what is missing from it.
  virtual Error silence() const {
    return {ErrorKind::unavailable, "no answer: stopped, swapping or busy; look at its log",
            Retry::later};
  }

  // When the peer's certificate expires; nullopt without TLS, and before the handshake.
  virtual std::optional<std::chrono::system_clock::time_point> certificate_end() const {
    return std::nullopt;
  }

  // Why the last call failed, without the name of the server. ErrorKind::denied: one side of TLS
  // does not trust the other.
  virtual Error error() const = 0;
};

// Makes a plain stream, or one with TLS if server.tls is set. With TLS the handshake begins with
// the first write, and errors are those of Tls::wrap().
Result<std::unique_ptr<Stream>> make_stream(const Server& server, util::Fd fd);

}  // namespace rlock::redis
