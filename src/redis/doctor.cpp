#include "redis/doctor.hpp"

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <thread>

#include "lock/poller.hpp"
#include "lua/scripts.hpp"
#include "redis/link/cluster.hpp"
#include "redis/link/connection.hpp"
#include "redis/link/reply.hpp"
#include "redis/link/sentinel.hpp"
#include "redis/store/call.hpp"
#include "redis/store/keys.hpp"
#include "util/random.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

using Words = std::vector<std::string>;

// Appends the strings and numbers of a reply, however nested.
void flatten(const redisReply& reply, Words& words) {
  if (reply.type == REDIS_REPLY_INTEGER) words.push_back(std::to_string(reply.integer));
  if (reply.type == REDIS_REPLY_STRING || reply.type == REDIS_REPLY_STATUS) {
    words.emplace_back(text_of(reply));
  }
  if (reply.type != REDIS_REPLY_ARRAY) return;
  for (size_t i = 0; i < reply.elements; ++i) flatten(*reply.element[i], words);
}

Words words_in(const redisReply& reply) {
  Words words;
  flatten(reply, words);
  return words;
}

// `CONFIG GET`, `PING`.
std::string command_name(const Words& words) {
  constexpr std::string_view kContainers[] = {"CONFIG", "CLUSTER", "SENTINEL", "INFO"};
  const bool two = words.size() > 1 && std::find(std::begin(kContainers), std::end(kContainers),
                                                 words.front()) != std::end(kContainers);
  return two ? words[0] + " " + words[1] : words[0];
}

// Sends single commands to one server.
class CommandClient {
 public:
  explicit CommandClient(const Server& server) : connection_(server) {}

  Result<Words> ask(const Words& words, const lua::Script* script = nullptr) {
    return ask(words, words_in, script);
  }

  // What `read` finds in the reply. Takes at most the connect timeout and a few seconds.
  template <class T>
  Result<T> ask(const Words& words, T (*read)(const redisReply&),
                const lua::Script* script = nullptr) {
    constexpr Millis kReplyTimeout{3'000};  // for one command: a slower server is stuck
    auto decode = [read](const redisReply& reply) { return std::optional(Result<T>(read(reply))); };
    auto call = std::make_unique<Call<T>>(connection_, words, "ask", decode, script);
    const Millis timeout = connection_.server().connect_timeout + kReplyTimeout;
    auto reply = lock::finish<T>(poller_, std::move(call), poller_.now() + timeout,
                                 connection_.server().label());
    if (!reply) failures_.emplace(command_name(words), reply.error());
    return reply;
  }

  // The first failure of each command.
  const Failures& failures() const { return failures_; }

  // Like Connection::certificate_end(): set after a reply.
  std::optional<std::chrono::system_clock::time_point> certificate_end() const {
    return connection_.certificate_end();
  }

 private:
  Connection connection_;
  lock::SystemPoller poller_;
  Failures failures_;
};

// Some servers return a script's number as `17.0`.
int64_t number(const std::string& text) {
  return util::parse_number<int64_t>(util::leading_digits(text)).value_or(0);
}

Millis span(const std::string& text) {
  return bounded_span(number(text));
}

// The reply to TIME: seconds and microseconds.
std::optional<std::chrono::microseconds> time_in(const Result<Words>& reply) {
  constexpr int64_t kMost = int64_t{1} << 40;  // seconds: 34,000 years
  if (!reply || reply->size() != 2 || number((*reply)[0]) > kMost) return std::nullopt;
  return std::chrono::seconds(number((*reply)[0])) +
         std::chrono::microseconds(number((*reply)[1]) % 1'000'000);
}

// X in `no permissions to run the 'X' command`; `fallback` if the text does not name it.
std::string denied_command(const Error& error, const std::string& fallback) {
  constexpr std::string_view kBefore = "permissions to run the '";
  const size_t at = error.text.find(kBefore);
  if (at == error.text.npos) return fallback;
  const size_t from = at + kBefore.size();
  return error.text.substr(from, error.text.find('\'', from) - from);
}

// Why a test was not possible: the first of these replies that is an error.
std::optional<Error> first_error(std::initializer_list<const Result<Words>*> replies) {
  for (const Result<Words>* reply : replies) {
    if (!*reply) return reply->error();
  }
  return std::nullopt;
}

class ServerExaminer {
 public:
  ServerExaminer(const Server& server, const ServerUse& use) : client_(server) {
    report_.server = server;
    report_.use = use;
  }

  ServerReport examine() {
    auto ping = ask({"PING"});
    // A proxy may have closed the connection because of CLIENT, which the second connection does
    // not send.
    if (!ping && ping.error().retry == Retry::later) ping = ask({"PING"});
    // This user may be denied PING, which rlock does not need.
    if (!ping && ping.error().cause != Cause::command_denied &&
        ping.error().cause != Cause::missing_command) {
      report_.contact_error = std::move(ping).error();
      return std::move(report_);
    }
    measure();
    report_.certificate_end = client_.certificate_end();
    if (auto info = ask({"INFO"}); info && !info->empty()) report_.info = read_info(info->front());
    if (auto why = other_kind()) {
      report_.contact_error = std::move(why);
      return std::move(report_);
    }
    read_neighbours();
    report_.fsync = configured("appendfsync");
    report_.save = configured("save");
    if (report_.use.kind == ServerKind::quorum_member) try_membership();
    if (report_.use.kind == ServerKind::cluster_node) read_slots();
    try_commands();
    if (report_.use.replicas > 0) examine_replicas();
    report_.failures = client_.failures();
    return std::move(report_);
  }

 private:
  // Why the URL names another kind of server.
  std::optional<Error> other_kind() {
    const std::string mode = report_.info_field("redis_mode");
    if (mode == "sentinel") {
      auto role = ask({"ROLE"});
      Words masters = role && !role->empty() ? Words(role->begin() + 1, role->end()) : Words();
      return is_sentinel(report_.server, masters);
    }
    if (mode != "cluster" || report_.use.kind == ServerKind::cluster_node) return std::nullopt;
    return Error{ErrorKind::config,
                 util::format("{} is a node of a cluster: use {}", report_.server.label(),
                              url_of_kind(report_.server, "+cluster"))};
  }

  Result<Words> ask(const Words& words, const lua::Script* script = nullptr) {
    return client_.ask(words, script);
  }

  void measure() {
    constexpr size_t kTimes = 5;
    std::vector<Nanos> took;
    for (size_t i = 0; i < kTimes; ++i) {
      const TimePoint start = BootClock::now();
      const auto before = std::chrono::system_clock::now().time_since_epoch();
      const auto there = time_in(ask({"TIME"}));
      took.push_back(BootClock::now() - start);
      if (!there) continue;
      report_.clock_ahead = std::chrono::duration_cast<Millis>(*there - before - took.back() / 2);
    }
    std::sort(took.begin(), took.end());
    report_.round_trip = took[kTimes / 2];
  }

  // What other programs do with the database. Reads only some of its keys, because there may be
  // millions.
  void read_neighbours() {
    if (auto info = ask({"INFO", "commandstats"}); info && !info->empty()) {
      const InfoFields stats = read_info(info->front());
      for (const char* command : {"cmdstat_flushdb", "cmdstat_flushall"}) {
        const std::string field = info_field(stats, command);  // `calls=2,usec=…`
        std::string_view rest = field;
        util::take_until(rest, '=');
        report_.flushes += util::parse_number<uint64_t>(util::leading_digits(rest)).value_or(0);
      }
    }
    auto keys = ask({"SCAN", "0", "COUNT", "1000"});
    if (!keys || keys->empty()) return;
    const auto other = std::find_if(keys->begin() + 1, keys->end(),
                                    [&](const std::string& key) { return !is_of_a_lock(key); });
    if (other != keys->end()) report_.other_key = *other;
  }

  // Whether a key has this prefix, or belongs to a lock of another one: `rlock:{nightly}:meta`.
  bool is_of_a_lock(std::string_view key) const {
    const std::string_view suffix = parts_of_key(key).suffix;
    return key.starts_with(report_.use.prefix) ||
           std::any_of(std::begin(kLockKeys), std::end(kLockKeys),
                       [&](const LockKey& one) { return suffix == one.suffix; });
  }

  // Connects as a run does.
  void try_membership() {
    Server member = report_.server;
    member.members = std::make_shared<MemberRegistry>();
    auto ping = CommandClient(member).ask({"PING"});
    if (!ping) report_.membership_error = std::move(ping).error();
  }

  void read_slots() {
    auto nodes = ask({"CLUSTER", "NODES"});
    if (!nodes || nodes->empty()) return;
    OwnSlots own = own_slots(nodes->front());
    served_ = std::move(own.served);
    report_.moving_slots = std::move(own.moving);
  }

  // ROLE: master, its offset, then address, port and offset of each replica.
  void examine_replicas() {
    constexpr size_t kBefore = 2, kEach = 3;
    confirm_last_write();
    auto role = ask({"ROLE"});
    if (!role || role->empty() || role->front() != "master") return;
    for (size_t i = kBefore; i + kEach <= role->size(); i += kEach) {
      Server replica =
          server_at({(*role)[i], static_cast<int>(number((*role)[i + 1]))}, report_.server);
      replica.role = Role::any;
      report_.replicas.push_back({replica.label(), clock_of(replica)});
    }
  }

  void confirm_last_write() {
    constexpr const char* kInTime = "1000";  // ms: shorter than the wait for a reply
    auto confirmed = ask({"WAIT", std::to_string(report_.use.replicas), kInTime});
    if (!confirmed) return note("WAIT", std::move(confirmed).error());
    if (!confirmed->empty()) report_.confirmed = static_cast<uint64_t>(number(confirmed->front()));
  }

  // How far the replica's clock is ahead of the server's.
  std::optional<Millis> clock_of(const Server& replica) {
    CommandClient other(replica);
    if (!other.ask({"TIME"})) return std::nullopt;  // connects
    const auto here = time_in(ask({"TIME"}));
    const auto there = time_in(other.ask({"TIME"}));
    if (!here || !there) return std::nullopt;
    return std::chrono::duration_cast<Millis>(*there - *here);
  }

  std::optional<std::string> configured(const std::string& name) {
    auto reply = ask({"CONFIG", "GET", name});
    return reply && reply->size() == 2 ? std::optional((*reply)[1]) : std::nullopt;
  }

  void note(const std::string& command, Error error) {
    if (error.cause == Cause::keys_denied) {
      report_.keys_denied = true;
    } else if (error.kind == ErrorKind::denied) {
      std::vector<std::string>& denied = report_.denied_commands;
      std::string name = denied_command(error, command);
      if (std::find(denied.begin(), denied.end(), name) == denied.end())
        denied.push_back(std::move(name));
    } else if (error.cause == Cause::missing_command) {
      report_.missing_commands.push_back(command);
    } else if (!report_.error) {
      report_.error = std::move(error);
    }
  }

  Result<Words> probe(const std::string& base) {
    return ask(script_call(lua::probe, {base + "set", base + "hash", base + "list"}, {}),
               &lua::probe);
  }

  // Keys that no lock uses. Each test has its own, because another test's keys may stay until they
  // expire. A master of a cluster may serve only one of the slots.
  std::string unused_base() const {
    constexpr int kMostNames = 1'000'000;
    util::SystemRandom random;
    const std::string unique = "doctor-" + util::random_hex(random);
    std::string tag = unique;
    for (int i = 0; i < kMostNames && served_ && !(*served_)[slot_of(tag)]; ++i) {
      tag = unique + "-" + std::to_string(i);
    }
    return lock_key(report_.use.prefix, tag, "");
  }

  void try_commands() {
    const std::string base = unused_base();
    auto failed = probe(base);
    if (failed) {
      for (size_t i = 0; i + 1 < failed->size(); i += 2) {
        note((*failed)[i], decode_error((*failed)[i + 1]));
      }
    } else {
      note("evalsha or eval", std::move(failed).error());
    }
    // rlock needs EVAL whenever the server does not know a script yet.
    for (const Words& words : {Words{"eval", "return 1", "1", base + "eval"},
                               Words{"SCAN", "0", "MATCH", base, "COUNT", "1"}}) {
      if (auto reply = ask(words); !reply) note(words.front(), std::move(reply).error());
    }
    try_waiting(base + "waiting");
    try_atomicity(base + "atomicity");
    if (report_.server.db != 0) try_databases(base + "databases");
  }

  // A server that answers immediately cannot let waiters block: they have to poll there.
  void try_waiting(const std::string& list) {
    constexpr Millis kShort{100};
    const TimePoint start = BootClock::now();
    auto reply = ask({"BLPOP", list, "0.2"});
    if (!reply) {
      report_.blocking_error = reply.error();
      if (reply.error().kind == ErrorKind::denied) note("BLPOP", std::move(reply).error());
    } else if (BootClock::now() - start < kShort) {
      report_.blocking_error =
          Error{ErrorKind::unavailable, "the server answers BLPOP before its timeout"};
    }
  }

  // Runs a script over two connections at the same time. If scripts are not atomic, one overwrites
  // what the other wrote.
  void try_atomicity(const std::string& hash) {
    constexpr int kRounds = 10;
    const Words words = script_call(lua::atomicity, {hash}, {});
    CommandClient other(report_.server);
    const auto first_call = ask(words, &lua::atomicity);
    const auto second_call = other.ask(words, &lua::atomicity);
    report_.atomic_error = first_error({&first_call, &second_call});
    if (report_.atomic_error) return;
    std::atomic<bool> unanswered = false, removed = false;
    const auto count_in = [&](const Result<Words>& reply) {
      const int64_t count = reply && !reply->empty() ? number(reply->front()) : 0;
      if (count == 0) unanswered = true;
      // Only the first call counts from 1, unless the server has removed the key.
      if (count == 1) removed = true;
      return count;
    };
    count_in(second_call);
    const auto count_up = [&](CommandClient& client) {
      return count_in(client.ask(words, &lua::atomicity));
    };
    const auto count_rounds = [&](CommandClient& client) {
      for (int i = 0; i < kRounds; ++i) count_up(client);
    };
    std::thread second([&] { count_rounds(other); });
    count_rounds(client_);
    second.join();
    constexpr int kCalls = 2 * kRounds + 3;  // including the first two and the last one
    const bool counted_all = count_up(client_) == kCalls;
    if (unanswered) {
      report_.atomic_error = Error{ErrorKind::unavailable, "the server left calls unanswered"};
    } else if (removed) {
      report_.atomic_error =
          Error{ErrorKind::unavailable, "the server removed the key of this test"};
      report_.atomic_error->cause = Cause::out_of_memory;
    } else {
      report_.atomic = counted_all;
    }
    (void)ask({"EVAL", "return redis.call('DEL', KEYS[1])", "1", hash});
  }

  // Some services answer SELECT with OK although they have only one database.
  void try_databases(const std::string& hash) {
    Server zero = report_.server;
    zero.db = 0;
    CommandClient other(zero);
    // The first PEXPIRE comes before any key exists, so that a denial leaves no key.
    const std::string set =
        "redis.call('PEXPIRE', KEYS[1], 60000) redis.call('HSET', KEYS[1], 'n', 1) "
        "return redis.call('PEXPIRE', KEYS[1], 60000)";
    const auto written = ask({"EVAL", set, "1", hash});
    const auto seen = other.ask({"EVAL", "return redis.call('HGET', KEYS[1], 'n')", "1", hash});
    report_.databases_error = first_error({&written, &seen});
    report_.single_database = seen && !seen->empty();
    (void)ask({"EVAL", "return redis.call('DEL', KEYS[1])", "1", hash});
  }

  CommandClient client_;
  ServerReport report_;
  std::optional<std::vector<bool>> served_;  // for a node of a cluster: its slots
};

// Asks for the sentinel's vote, and for the rest of its report.
SentinelVote ask_sentinel(CommandClient& client, SentinelReport& report, const std::string& name) {
  auto master = client.ask({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name});
  if (!master) {
    const bool other = master.error().cause == Cause::missing_command;
    report.error = other ? no_sentinel(report.server)
                         : login_refused(std::move(master).error(), report.server);
    return *report.error;
  }
  if (master->size() != 2) {
    report.error =
        Error{ErrorKind::unavailable,
              util::format("{}: it does not know a master \"{}\"", report.server.label(), name)};
    return UnknownMaster{};
  }
  report.master = master->front() + ":" + master->back();
  if (auto id = client.ask({"SENTINEL", "MYID"}); id && id->size() == 1) {
    report.view.id = id->front();
  }
  if (auto others = client.ask({"SENTINEL", "SENTINELS", name}, read_others)) {
    report.view.others = *std::move(others);
  }
  (void)client.ask({"SENTINEL", "CKQUORUM", name});
  // Alternating names and values.
  if (auto facts = client.ask({"SENTINEL", "MASTER", name})) {
    const auto at = std::find(facts->begin(), facts->end(), "down-after-milliseconds");
    if (facts->end() - at > 1) report.down_after = span(at[1]);
  }
  auto at = parse_host_port(report.master);
  return at ? SentinelVote(NamedMaster{*std::move(at)}) : NoAnswer{};
}

SentinelVote examine_sentinel(SentinelReport& report, const std::string& name) {
  CommandClient client(report.server);
  SentinelVote vote = ask_sentinel(client, report, name);
  report.failures = client.failures();
  return vote;
}

// The cluster as the node `from` sees it.
void read_cluster(std::string_view info, std::string_view nodes, const Server& from,
                  ClusterReport& report) {
  const InfoFields fields = read_info(info);
  report.state = info_field(fields, "cluster_state");
  report.slots_served =
      util::parse_number<uint64_t>(info_field(fields, "cluster_slots_ok")).value_or(0);
  const NodeNaming naming = from.tls != nullptr ? NodeNaming::by_name : NodeNaming::by_address;
  for (const HostPort& master : masters_in(nodes, naming)) {
    const std::string& host = master.host.empty() ? from.host : master.host;
    report.masters.push_back(server_at({host, master.port}, from));
  }
}

}  // namespace

std::string ServerReport::info_field(std::string_view field) const {
  return redis::info_field(info, field);
}

ServerReport examine_server(const Server& server, const ServerUse& use) {
  return ServerExaminer(server, use).examine();
}

GroupReport examine_group(const SentinelGroup& group) {
  GroupReport report{joined_labels(group.sentinels) + "/" + group.name, group.name};
  std::vector<SentinelVote> votes;
  for (const Server& server : group.sentinels) {
    report.sentinels.push_back({server});
    votes.push_back(examine_sentinel(report.sentinels.back(), group.name));
  }
  report.named = votes.size();
  std::vector<SentinelView> views;
  size_t voters = 0;
  for (size_t i = 0; i < report.named; ++i) {
    views.push_back(report.sentinels[i].view);
    if (!std::holds_alternative<UnknownMaster>(votes[i])) ++voters;
  }
  report.existing = count_existing(views, voters);
  for (const auto& [id, known] : known_sentinels(views)) {
    const auto has = [&, &its_id = id, &at = known.address](const SentinelReport& one) {
      const bool same = one.server.host == at.host && one.server.port == at.port;
      return same || one.view.id == its_id;
    };
    const bool named = std::any_of(report.sentinels.begin(), report.sentinels.end(), has);
    if (named || known.address.host.empty()) continue;
    report.sentinels.push_back({server_at(known.address, group.sentinels.front())});
    votes.push_back(examine_sentinel(report.sentinels.back(), group.name));
  }
  if (auto master = elect(votes, report.existing)) {
    report.master = server_at(*master, group.master);
  }
  return report;
}

ClusterReport examine_cluster(const ClusterSeeds& cluster) {
  ClusterReport report{joined_labels(cluster.seeds), cluster.seeds.size()};
  for (const Server& seed : cluster.seeds) {
    CommandClient client(seed);
    const auto info = client.ask({"CLUSTER", "INFO"});
    const auto nodes = client.ask({"CLUSTER", "NODES"});
    if (auto error = first_error({&info, &nodes})) {
      report.seed_errors.push_back(*std::move(error));
    } else if (report.masters.empty() && !info->empty() && !nodes->empty()) {
      read_cluster(info->front(), nodes->front(), seed, report);
      auto timeout = client.ask({"CONFIG", "GET", "cluster-node-timeout"});
      if (timeout && timeout->size() == 2) report.node_timeout = span((*timeout)[1]);
      report.failures = client.failures();
    }
  }
  return report;
}

}  // namespace rlock::redis
