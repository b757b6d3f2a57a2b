#include "support/fake_server.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace rlock::test {
namespace {

enum class Event { ready, stopped };

Event wait_for(int fd, short events, int stop) {
  pollfd fds[] = {{fd, events, 0}, {stop, POLLIN, 0}};
  poll(fds, 2, -1);
  return fds[1].revents != 0 ? Event::stopped : Event::ready;
}

}  // namespace

bool FakeServer::Peer::readable() {
  return wait_for(fd_.get(), POLLIN, stop_) == Event::ready;
}

bool FakeServer::Peer::read_more() {
  char buffer[4096];
  if (!readable()) return false;
  ssize_t got = recv(fd_.get(), buffer, sizeof buffer, 0);
  if (got <= 0) return false;
  received_.append(buffer, static_cast<size_t>(got));
  return true;
}

bool FakeServer::Peer::await(std::string_view mark) {
  while (received_.find(mark) == std::string::npos) {
    if (!read_more()) return false;
  }
  return true;
}

bool FakeServer::Peer::next(std::string_view mark) {
  if (!await(mark)) return false;
  received_.erase(0, received_.find(mark) + mark.size());
  return true;
}

void FakeServer::Peer::await_hang_up() {
  while (read_more()) continue;
}

void FakeServer::Peer::send(std::string_view bytes) {
  while (!bytes.empty()) {
    if (wait_for(fd_.get(), POLLOUT, stop_) == Event::stopped) return;
    ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

void FakeServer::Peer::trickle(std::string_view bytes, Millis gap) {
  int one = 1;
  setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  for (char byte : bytes) {
    pollfd stopped{stop_, POLLIN, 0};
    if (poll(&stopped, 1, static_cast<int>(gap.count())) > 0) return;
    if (::send(fd_.get(), &byte, 1, MSG_NOSIGNAL) < 0) return;
  }
}

FakeServer::FakeServer(Script script) : script_(std::move(script)), stop_(eventfd(0, EFD_CLOEXEC)) {
  if (!stop_) throw std::runtime_error("no eventfd");
  thread_ = std::thread([this] { run_connections(); });
}

FakeServer::~FakeServer() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void FakeServer::run_connections() {
  while (wait_for(listener_.fd.get(), POLLIN, stop_.get()) == Event::ready) {
    Peer peer(util::Fd(accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC)), stop_.get());
    script_(peer, connections_++);
  }
}

}  // namespace rlock::test
