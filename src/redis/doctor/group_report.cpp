#include "redis/doctor/group_report.hpp"

#include <cstdint>

#include "redis/doctor/command_client.hpp"
#include "redis/link/cluster_reply.hpp"
#include "redis/link/info.hpp"
#include "redis/link/sentinels.hpp"
#include "util/number.hpp"

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
    report.error = Error{ErrorKind::unavailable,
                         server.label() + ": it does not know a master \"" + name + "\""};
  } else {
    report.master = master->front() + ":" + master->back();
    auto quorum = client.ask({"SENTINEL", "CKQUORUM", name});
    if (!quorum) report.no_quorum = std::move(quorum).error();
  }
  return report;
}

SentinelVote vote_of(const SentinelReport& report) {
  if (report.abstains) return UnknownMaster{};
  if (report.error) return *report.error;
  auto master = parse_host_port(report.master);
  return master ? SentinelVote(*std::move(master)) : SentinelVote(NoAnswer{});
}

Server server_at(const HostPort& address, Server server) {
  server.host = address.host;
  server.port = address.port;
  server.addresses.reset();
  return server;
}

}  // namespace

GroupReport examine_group(const SentinelGroup& group) {
  GroupReport report{joined_labels(group.sentinels) + "/" + group.name};
  std::vector<SentinelVote> votes;
  for (const Server& server : group.sentinels) {
    report.sentinels.push_back(examine_sentinel(server, group.name));
    votes.push_back(vote_of(report.sentinels.back()));
  }
  if (auto master = elect(votes)) report.master = server_at(*master, group.master);
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
    const InfoFields fields = read_info(info->front());
    report.state = info_field(fields, "cluster_state");
    report.slots_served =
        util::parse_number<uint64_t>(info_field(fields, "cluster_slots_ok")).value_or(0);
    const NodeNaming naming = seed.tls != nullptr ? NodeNaming::by_name : NodeNaming::by_address;
    for (const HostPort& master : masters_in(nodes->front(), naming)) {
      const std::string& host = master.host.empty() ? seed.host : master.host;
      report.masters.push_back(server_at({host, master.port}, seed));
    }
    return report;
  }
  return report;
}

}  // namespace rlock::redis
