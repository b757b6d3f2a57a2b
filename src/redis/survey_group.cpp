#include "redis/survey_group.hpp"

#include <algorithm>
#include <charconv>

#include "redis/ask.hpp"
#include "redis/cluster_reply.hpp"
#include "redis/sentinels.hpp"

namespace rlock::redis {
namespace {

using util::Error;
using util::ErrorKind;

SentinelSurvey survey_sentinel(const Server& server, const std::string& name) {
  SentinelSurvey survey{server};
  Asker asker(server);
  auto master = asker.ask({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name});
  if (!master) {
    survey.trouble = std::move(master).error();
  } else if (master->size() != 2) {
    survey.abstains = true;
    survey.trouble =
        Error{ErrorKind::unavailable, server.label() + ": it knows no master \"" + name + "\""};
  } else {
    survey.master = master->front() + ":" + master->back();
    auto quorum = asker.ask({"SENTINEL", "CKQUORUM", name});
    if (!quorum) survey.no_quorum = std::move(quorum).error();
  }
  return survey;
}

std::optional<Server> at(const std::string& place, Server server) {
  const size_t colon = place.rfind(':');
  server.host = place.substr(0, colon);
  const char* end = place.data() + place.size();
  auto [stop, trouble] = std::from_chars(place.data() + colon + 1, end, server.port);
  server.addresses.reset();
  return trouble == std::errc() && stop == end ? std::optional(std::move(server)) : std::nullopt;
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

GroupSurvey survey_group(const SentinelGroup& group) {
  GroupSurvey survey{joined_labels(group.sentinels) + "/" + group.name};
  for (const Server& server : group.sentinels) {
    survey.sentinels.push_back(survey_sentinel(server, group.name));
  }
  const auto& all = survey.sentinels;
  const auto abstaining =
      std::count_if(all.begin(), all.end(), [](const auto& one) { return one.abstains; });
  for (const SentinelSurvey& candidate : all) {
    if (candidate.trouble) continue;
    const auto votes = std::count_if(
        all.begin(), all.end(), [&](const auto& one) { return one.master == candidate.master; });
    if (is_majority(votes, all.size(), abstaining)) {
      survey.master = at(candidate.master, group.master);
    }
  }
  return survey;
}

ClusterSurvey survey_cluster(const ClusterSeeds& cluster) {
  ClusterSurvey survey{joined_labels(cluster.seeds)};
  for (const Server& seed : cluster.seeds) {
    Asker asker(seed);
    auto info = asker.ask({"CLUSTER", "INFO"});
    auto nodes = asker.ask({"CLUSTER", "NODES"});
    if (!info || !nodes || info->empty() || nodes->empty()) {
      if (!survey.trouble) survey.trouble = info ? std::move(nodes).error() : info.error();
      continue;
    }
    survey.trouble.reset();
    survey.state = word_after(info->front(), "cluster_state");
    survey.slots_served = number_of(info->front(), "cluster_slots_ok");
    const Called called = seed.tls != nullptr ? Called::by_name : Called::by_address;
    for (const HostPort& master : masters_in(nodes->front(), called)) {
      Server server = seed;
      server.addresses.reset();
      if (!master.host.empty()) server.host = master.host;
      server.port = master.port;
      survey.masters.push_back(std::move(server));
    }
    return survey;
  }
  return survey;
}

}  // namespace rlock::redis
