#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/net/host_port.hpp"

// What the nodes of a cluster report about each other.
namespace rlock::redis {

struct Redirect {
  enum class Kind { moved, ask };  // ask: for this command alone, after ASKING
  Kind kind;
  HostPort to;  // an empty host means the node that sent the redirect
};

// From `MOVED 3999 10.0.0.1:6381` and `ASK …`; nullopt for any other error.
std::optional<Redirect> redirect_in(std::string_view error);

// Which of its addresses a node is reached at: with TLS by name, since its certificate may have no
// other.
enum class NodeNaming { by_address, by_name };

// The masters that serve slots, from a CLUSTER NODES reply. An empty host means the node that sent
// it.
std::vector<HostPort> masters_in(std::string_view nodes, NodeNaming naming);

}  // namespace rlock::redis
