#include "faults/ambiguous_proxy.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "lua/scripts.hpp"

namespace rlock::test {
namespace {

constexpr Millis kLateReply{1'200};
constexpr Millis kTrickle{400};
constexpr int kServerPatience = 20'000;  // ms, for answers to what deliver() sends

// ---- the protocol, as far as a wire must know it ----

// The number of a line `$12\r\n`, and where the line ends; nullopt while it is incomplete.
struct Header {
  long number;
  size_t size;
};
std::optional<Header> header_of(std::string_view bytes) {
  size_t end = bytes.find("\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  return Header{std::atol(std::string(bytes.substr(1, end - 1)).c_str()), end + 2};
}

// The size of the whole reply (or request) at the front of `bytes`, 0 while it is incomplete;
// `words` gets the bulk strings in it.
size_t message_size(std::string_view bytes, std::vector<std::string_view>& words) {
  auto header = header_of(bytes);
  if (!header) return 0;
  size_t size = header->size;
  if (bytes.front() == '$' && header->number >= 0) {
    auto length = static_cast<size_t>(header->number);
    if (bytes.size() < size + length + 2) return 0;
    words.push_back(bytes.substr(size, length));
    return size + length + 2;
  }
  if (bytes.front() != '*') return size;
  for (long left = header->number; left > 0; --left) {
    size_t element = message_size(bytes.substr(size), words);
    if (element == 0) return 0;
    size += element;
  }
  return size;
}

// ---- sockets ----

util::Fd connect_to(const std::string& path) {
  util::Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.reset();
  return fd;
}

bool read_into(const util::Fd& fd, std::string& bytes) {
  char buffer[16384];
  ssize_t got = recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (got > 0) bytes.append(buffer, static_cast<size_t>(got));
  return got > 0 || (got < 0 && errno == EAGAIN);
}

// All messages here are far smaller than a socket's buffer.
void send_all(const util::Fd& fd, std::string_view bytes) {
  [[maybe_unused]] ssize_t sent = send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

void reset_connection(util::Fd& fd) {
  linger at_once{1, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  fd.reset();
}

}  // namespace

// One client and its connection to the server.
struct AmbiguousProxy::Link {
  struct PendingRequest {
    RequestKind request_kind;
    std::optional<Fault> fault;
    bool wake;  // a BLPOP
  };
  struct Due {
    TimePoint at;
    std::string bytes;
  };

  util::Fd client;
  util::Fd server;
  std::string requests;  // read from the client, not yet a whole one
  std::string replies;   // read from the server
  std::deque<PendingRequest> pending;
  std::deque<Due> to_client;
  std::string delayed_request;   // of late_request
  bool reading_stopped = false;  // reads nothing from the client any more
  bool writing_stopped = false;  // says nothing to the client any more

  bool over() const { return !client && delayed_request.empty(); }
};

AmbiguousProxy::AmbiguousProxy(std::string server_socket)
    : server_socket_(std::move(server_socket)), stop_(eventfd(0, EFD_CLOEXEC)) {
  if (!stop_) throw std::runtime_error("no eventfd");
  thread_ = std::thread([this] { run_connections(); });
}

AmbiguousProxy::~AmbiguousProxy() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void AmbiguousProxy::inject(RequestKind request_kind, Fault fault, Often often) {
  std::lock_guard lock(mutex_);
  request_kind_ = request_kind;
  fault_ = fault;
  injections_left_ = often == Often::once ? 1 : INT_MAX;
  injected_ = 0;
}

int AmbiguousProxy::deliver() {
  std::lock_guard lock(mutex_);
  int delivered = 0;
  for (Link& link : links_) {
    if (link.delayed_request.empty()) continue;
    send_all(link.server, link.delayed_request);
    link.delayed_request.clear();
    pollfd answered{link.server.get(), POLLIN, 0};
    if (poll(&answered, 1, kServerPatience) == 1) ++delivered;
  }
  return delivered;
}

void AmbiguousProxy::run_connections() {
  std::vector<pollfd> fds;
  while (true) {
    int timeout = 0;
    {
      std::lock_guard lock(mutex_);
      links_.remove_if([](const Link& link) { return link.over(); });
      fds = {{stop_.get(), POLLIN, 0}, {listener_.fd.get(), POLLIN, 0}};
      for (const Link& link : links_) {
        if (!link.reading_stopped) fds.push_back({link.client.get(), POLLIN, 0});
        fds.push_back({link.server.get(), POLLIN, 0});
      }
      timeout = poll_timeout(BootClock::now(), next_due());
    }
    poll(fds.data(), fds.size(), timeout);
    if (fds[0].revents != 0) return;
    std::lock_guard lock(mutex_);
    if (fds[1].revents != 0) accept_client();
    for (Link& link : links_) {
      flush_due(link, BootClock::now());
      if (!link.reading_stopped) read_requests(link);
      read_replies(link);
    }
  }
}

void AmbiguousProxy::accept_client() {
  Link link;
  link.client.reset(accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  link.server = connect_to(server_socket_);
  int one = 1;
  setsockopt(link.client.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (link.client && link.server) links_.push_back(std::move(link));
}

TimePoint AmbiguousProxy::next_due() const {
  TimePoint due = TimePoint::max();
  for (const Link& link : links_) {
    if (!link.to_client.empty()) due = std::min(due, link.to_client.front().at);
  }
  return due;
}

void AmbiguousProxy::flush_due(Link& link, TimePoint now) {
  while (!link.to_client.empty() && link.to_client.front().at <= now) {
    if (link.client) send_all(link.client, link.to_client.front().bytes);
    link.to_client.pop_front();
  }
}

void AmbiguousProxy::read_requests(Link& link) {
  if (!link.client || !read_into(link.client, link.requests)) {
    link.client.reset();
    return;
  }
  std::vector<std::string_view> words;
  while (!link.requests.empty() && !link.reading_stopped && link.client) {
    words.clear();
    size_t size = message_size(link.requests, words);
    if (size == 0) return;
    RequestKind request_kind = request_kind_of(words);
    if (request_kind == RequestKind::renew) ++renewals_;
    bool wake = !words.empty() && words.front() == "BLPOP";
    link.pending.push_back({request_kind, std::nullopt, wake});
    pass_request(link, std::string_view(link.requests).substr(0, size), request_kind);
    link.requests.erase(0, size);
  }
}

void AmbiguousProxy::pass_request(Link& link, std::string_view request, RequestKind request_kind) {
  if (!should_inject(request_kind)) return send_all(link.server, request);
  switch (fault_) {
    case Fault::lose_request:
      return reset_connection(link.client);
    case Fault::stop_reading:
      link.reading_stopped = true;
      return;
    case Fault::late_request:
      link.delayed_request = request;
      link.reading_stopped = true;
      return;
    default:
      link.pending.back().fault = fault_;
      return send_all(link.server, request);
  }
}

void AmbiguousProxy::read_replies(Link& link) {
  if (!link.client) return;
  if (!read_into(link.server, link.replies)) {
    link.client.reset();
    return;
  }
  std::vector<std::string_view> words;
  while (!link.replies.empty() && link.client) {
    words.clear();
    size_t size = message_size(link.replies, words);
    if (size == 0) return;
    pass_reply(link, link.replies.substr(0, size));
    link.replies.erase(0, size);
  }
}

void AmbiguousProxy::pass_reply(Link& link, std::string reply) {
  if (link.pending.empty()) return;
  Link::PendingRequest pending = link.pending.front();
  link.pending.pop_front();
  if (pending.wake && reply.starts_with("*2")) woken_ = true;
  if (pending.fault == Fault::lose_reply) return reset_connection(link.client);
  if (pending.fault == Fault::swallow_reply) link.writing_stopped = true;
  if (link.writing_stopped) return;
  TimePoint at = BootClock::now();
  if (pending.fault == Fault::late_reply) at += kLateReply;
  if (pending.fault != Fault::trickle_reply) {
    link.to_client.push_back({at, std::move(reply)});
  } else {
    for (char byte : reply) link.to_client.push_back({at += kTrickle, std::string(1, byte)});
  }
  flush_due(link, BootClock::now());
}

RequestKind AmbiguousProxy::request_kind_of(const std::vector<std::string_view>& words) {
  constexpr size_t kArguments = 3 + 10;  // EVALSHA digest 10, the keys; then names and values
  auto runs = [&](const lua::Script& script) {
    return words.size() > kArguments && (words[1] == script.sha1 || words[1] == script.text);
  };
  if (runs(lua::acquire)) {
    return std::exchange(woken_, false) ? RequestKind::claim : RequestKind::acquire;
  }
  if (runs(lua::renew)) return RequestKind::renew;
  if (runs(lua::release)) {
    std::string_view how;
    for (size_t at = kArguments; at + 1 < words.size(); at += 2) {
      if (words[at] == "how") how = words[at + 1];
    }
    const bool release = how == "released" || how == "unused" || how == "by_id";
    return release ? RequestKind::release : RequestKind::cancel;
  }
  if (runs(lua::force_unlock)) return RequestKind::force_unlock;
  return RequestKind::other;
}

bool AmbiguousProxy::should_inject(RequestKind request_kind) {
  bool aimed_at = request_kind_ == RequestKind::any || request_kind_ == request_kind;
  if (!aimed_at || injections_left_ == 0) return false;
  --injections_left_;
  ++injected_;
  return true;
}

}  // namespace rlock::test
