#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/net/url.hpp"

// What the nodes of a cluster say about each other.
namespace rlock::redis {

struct Redirect {
  enum class Kind { moved, ask };  // ask: for this command alone, after ASKING
  Kind kind;
  HostPort to;  // an empty host is the one that said so
};

// Of `MOVED 3999 10.0.0.1:6381` and `ASK …`; nullopt for any other error.
std::optional<Redirect> redirect_in(std::string_view error);

// What a node is called where it tells both: its certificate may be for its name alone.
enum class NodeNaming { by_address, by_name };

// The masters that serve slots, of a CLUSTER NODES reply. An empty host is the one that said so.
std::vector<HostPort> masters_in(std::string_view nodes, NodeNaming naming);

}  // namespace rlock::redis
