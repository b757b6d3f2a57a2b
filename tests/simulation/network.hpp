#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/world.hpp"

// What lies between hosts and servers.
namespace rlock::sim {

struct Rates {
  Nanos delay{300us};  // one way, on average
  double late = 0;     // of a message: by seconds
  double lost = 0;     // of a message: nothing passes over this connection any more
  double reset = 0;    // of a request: the connection breaks
  double doubled = 0;  // of a request: it arrives once more, later
};

class Link;

// One connection, as the network and both ends see it. Its messages keep their order; those of
// different connections do not.
struct Wire {
  size_t host;
  size_t server;
  uint64_t process;
  Chance chance;
  Link* client = nullptr;   // null once the client has closed it
  bool accepted = false;    // by the server, which may have closed it since
  bool open_there = false;  // as far as the server knows
  bool stuck = false;
  std::string blocked_on{};  // at the server: the list for which it waits
  Moment last_up{0}, last_down{0};
};
using WirePtr = std::shared_ptr<Wire>;

class Network {
 public:
  Network(World& world, const Rates& rates) : world_(world), rates_(rates) {}

  const Rates& rates() const { return rates_; }
  // Nothing passes between them until then.
  void cut(size_t host, size_t server, Moment until) {
    auto& end = cut_until_[{host, server}];
    end = std::max(end, until);
  }
  bool is_cut(size_t host, size_t server) const;

  enum class Way { up, down };
  // When a message that is sent now arrives; none: never. What was sent while the way is cut may
  // arrive late, also after the client has given up.
  std::optional<Moment> arrival(Wire& wire, Way way);
  // Called for each process one of whose messages did not pass as usual.
  void on_mishap(std::function<void(uint64_t process)> callback) {
    on_mishap_ = std::move(callback);
  }

 private:
  std::optional<Moment> usual_arrival(Wire& wire);

  World& world_;
  const Rates& rates_;
  std::map<std::pair<size_t, size_t>, Moment> cut_until_;
  std::function<void(uint64_t)> on_mishap_;
};

}  // namespace rlock::sim
