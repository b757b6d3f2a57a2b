#include "redis/doctor/group_report.hpp"

#include <algorithm>
#include <charconv>

#include "redis/doctor/command_client.hpp"
#include "redis/link/cluster_reply.hpp"
#include "redis/link/sentinels.hpp"

namespace rlock::redis {
namespace {

SentinelReport examine_sentinel(const Server& server, const std::string& name) {
  SentinelReport report{server};
  CommandClient client(server);
  auto master = client.ask({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name});
  if (!master) {
    report.error = std::move(master).error();
  } else if (master->size() != 2) {
    report.abstains = true;
    report.error =
        Error{ErrorKind::unavailable, server.label() + ": it knows no master \"" + name + "\""};
  } else {
    report.master = master->front() + ":" + master->back();
    auto quorum = client.ask({"SENTINEL", "CKQUORUM", name});
    if (!quorum) report.no_quorum = std::move(quorum).error();
  }
  return report;
}

std::optional<Server> server_at(const std::string& address, Server server) {
  const size_t colon = address.rfind(':');
  server.host = address.substr(0, colon);
  const char* end = address.data() + address.size();
  auto [stop, error] = std::from_chars(address.data() + colon + 1, end, server.port);
  server.addresses.reset();
  return error == std::errc() && stop == end ? std::optional(std::move(server)) : std::nullopt;
}

uint64_t number_of(const std::string& info, const std::string& field) {
  const size_t found = info.find(field + ":");
  uint64_t value = 0;
  if (found == info.npos) return value;
  std::from_chars(info.data() + found + field.size() + 1, info.data() + info.size(), value);
  return value;
}

std::string word_after(const std::string& info, const std::string& field) {
  const size_t found = info.find(field + ":");
  if (found == info.npos) return {};
  const size_t from = found + field.size() + 1;
  return info.substr(from, info.find_first_of("\r\n", from) - from);
}

}  // namespace

GroupReport examine_group(const SentinelGroup& group) {
  GroupReport report{joined_labels(group.sentinels) + "/" + group.name};
  for (const Server& server : group.sentinels) {
    report.sentinels.push_back(examine_sentinel(server, group.name));
  }
  const auto& all = report.sentinels;
  const auto abstaining =
      std::count_if(all.begin(), all.end(), [](const auto& one) { return one.abstains; });
  for (const SentinelReport& candidate : all) {
    if (candidate.error) continue;
    const auto votes = std::count_if(
        all.begin(), all.end(), [&](const auto& one) { return one.master == candidate.master; });
    if (is_majority(votes, all.size(), abstaining)) {
      report.master = server_at(candidate.master, group.master);
    }
  }
  return report;
}

ClusterReport examine_cluster(const ClusterSeeds& cluster) {
  ClusterReport report{joined_labels(cluster.seeds)};
  for (const Server& seed : cluster.seeds) {
    CommandClient client(seed);
    auto info = client.ask({"CLUSTER", "INFO"});
    auto nodes = client.ask({"CLUSTER", "NODES"});
    if (!info || !nodes || info->empty() || nodes->empty()) {
      if (!report.error) report.error = info ? std::move(nodes).error() : info.error();
      continue;
    }
    report.error.reset();
    report.state = word_after(info->front(), "cluster_state");
    report.slots_served = number_of(info->front(), "cluster_slots_ok");
    const NodeNaming naming = seed.tls != nullptr ? NodeNaming::by_name : NodeNaming::by_address;
    for (const HostPort& master : masters_in(nodes->front(), naming)) {
      Server server = seed;
      server.addresses.reset();
      if (!master.host.empty()) server.host = master.host;
      server.port = master.port;
      report.masters.push_back(std::move(server));
    }
    return report;
  }
  return report;
}

}  // namespace rlock::redis
