#include "simulation/network.hpp"

namespace rlock::sim {

bool Network::is_cut(size_t host, size_t server) const {
  auto found = cut_until_.find({host, server});
  return found != cut_until_.end() && found->second > world_.now();
}

std::optional<Moment> Network::arrival(Wire& wire, Way way) {
  const auto arrives = wire.stuck ? std::nullopt : usual_arrival(wire);
  const bool usual = arrives && *arrives < world_.now() + 50 * rates_.delay + 1ms;
  if (!usual && on_mishap_) on_mishap_(wire.process);
  wire.stuck = !arrives;
  if (!arrives) return arrives;
  Moment& last = way == Way::up ? wire.last_up : wire.last_down;
  last = std::max(*arrives, last + 1ns);
  return last;
}

std::optional<Moment> Network::usual_arrival(Wire& wire) {
  if (wire.chance.with(rates_.lost)) return std::nullopt;
  const Moment arrives = world_.now() + 20us + wire.chance.about(rates_.delay);
  if (is_cut(wire.host, wire.server)) {
    if (wire.chance.with(0.5)) return std::nullopt;
    return cut_until_.at({wire.host, wire.server}) + wire.chance.between(1ms, 2s);
  }
  if (!wire.chance.with(rates_.late)) return arrives;
  return arrives + wire.chance.between(100ms, 4s);
}

}  // namespace rlock::sim
