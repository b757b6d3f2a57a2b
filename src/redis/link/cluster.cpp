#include "redis/link/cluster.hpp"

#include <algorithm>

#include "util/text.hpp"

namespace rlock::redis {
namespace {

using util::take_until;

// A node that does not know its own name is `:6381` or `?:6381`.
std::optional<HostPort> parse_node(std::string_view text) {
  auto node = parse_host_port(text);
  if (node && node->host == "?") node->host.clear();
  return node;
}

constexpr size_t kMostPlaces = 4096;

// Most connections kept: a hostile node could redirect us without end.
constexpr size_t kMostNodes = 16;

// The first key of a script call.
std::string key_of(const std::vector<std::string>& words) {
  constexpr size_t kFirstKey = 3;
  return words.size() > kFirstKey ? words[kFirstKey] : "";
}

HostPort host_port_of(const Server& server) {
  return {server.host, server.port};
}

}  // namespace

std::optional<Redirect> redirect_in(std::string_view error) {
  std::string_view word = take_until(error, ' ');
  if (word != "MOVED" && word != "ASK") return std::nullopt;
  take_until(error, ' ');  // the slot
  auto to = parse_node(take_until(error, ' '));
  if (!to) return std::nullopt;
  return Redirect{word == "ASK" ? Redirect::Kind::ask : Redirect::Kind::moved, std::move(*to)};
}

// A line: id address@bus-port[,name[,more]] flags master ping pong epoch state slots…
std::vector<HostPort> masters_in(std::string_view nodes, NodeNaming naming) {
  constexpr int kBetweenFlagsAndSlots = 5;
  std::vector<HostPort> masters;
  while (!nodes.empty()) {
    std::string_view line = take_until(nodes, '\n');
    take_until(line, ' ');
    std::string_view where = take_until(line, ' ');
    const auto flags = util::split(take_until(line, ' '), ',');
    for (int i = 0; i < kBetweenFlagsAndSlots; ++i) take_until(line, ' ');
    auto node = parse_node(take_until(where, '@'));
    take_until(where, ',');
    std::string_view name = take_until(where, ',');
    if (node && naming == NodeNaming::by_name && !name.empty()) node->host = name;
    const bool master = std::find(flags.begin(), flags.end(), "master") != flags.end();
    if (node && master && !line.empty()) masters.push_back(std::move(*node));
  }
  return masters;
}

std::optional<HostPort> KeyPlaces::find(const std::string& key) const {
  std::lock_guard lock(mutex_);
  auto place = nodes_.find(key);
  return place == nodes_.end() ? last_ : place->second;
}

void KeyPlaces::keep(const std::string& key, const HostPort& node) {
  std::lock_guard lock(mutex_);
  if (nodes_.size() >= kMostPlaces) nodes_.clear();
  nodes_[key] = node;
  last_ = node;
}

void KeyPlaces::forget(const HostPort& node) {
  std::lock_guard lock(mutex_);
  std::erase_if(nodes_, [&](const auto& place) { return place.second == node; });
  if (last_ == node) last_.reset();
}

ClusterBatch::ClusterBatch(Batch commands, KeyPlaces& places)
    : places_(places), open_(commands.size()) {
  replies_ = failed_batch(commands.size(), Error{ErrorKind::internal, "not sent"});
  for (auto& words : commands) {
    std::string key = key_of(words);
    commands_.push_back({std::move(words), std::move(key)});
  }
}

std::optional<HostPort> ClusterBatch::choose_group() {
  group_.clear();
  std::optional<HostPort> node;
  for (size_t i = 0; i < commands_.size(); ++i) {
    if (!commands_[i].open) continue;
    auto place = commands_[i].ask ? commands_[i].ask : places_.find(commands_[i].key);
    if (group_.empty()) node = place;
    if (place == node) group_.push_back(i);
  }
  return node;
}

Batch ClusterBatch::group() const {
  Batch out;
  for (size_t i : group_) {
    if (commands_[i].ask) out.push_back({"ASKING"});
    out.push_back(commands_[i].words);
  }
  return out;
}

void ClusterBatch::take_group(std::vector<Result<ReplyPtr>> replies, const Server& from) {
  size_t next = 0;
  for (size_t i : group_) {
    if (commands_[i].ask) ++next;  // the reply to ASKING
    if (next >= replies.size()) return;
    read_reply(i, std::move(replies[next++]), from);
  }
}

void ClusterBatch::read_reply(size_t index, Result<ReplyPtr> reply, const Server& from) {
  Command& command = commands_[index];
  const std::string_view error = reply && is_error(**reply) ? text_of(**reply) : "";
  auto redirect = redirect_in(error);
  if (redirect && ++command.redirects > kMostRedirects) {
    places_.forget(host_port_of(from));
    return close(index,
                 Error{ErrorKind::unavailable,
                       from.label() + ": the nodes do not agree on which one serves this lock",
                       Retry::later, Answered::yes});
  }
  if (redirect) {
    if (redirect->to.host.empty()) redirect->to.host = from.host;
    command.ask.reset();
    if (redirect->kind == Redirect::Kind::ask) {
      command.ask = std::move(redirect->to);
    } else {
      places_.keep(command.key, redirect->to);
    }
    return;
  }
  if (error.starts_with("CLUSTERDOWN")) {
    places_.forget(host_port_of(from));  // this node's view of the cluster may be wrong
  } else if (reply && !command.ask) {
    places_.keep(command.key, host_port_of(from));
  }
  close(index, std::move(reply));
}

void ClusterBatch::forget_node(const HostPort& node) {
  places_.forget(node);
  for (Command& command : commands_) {
    if (command.ask == node) command.ask.reset();
  }
}

void ClusterBatch::fail_group(const Error& why) {
  for (size_t i : group_) close(i, why);
}

void ClusterBatch::close(size_t index, Result<ReplyPtr> reply) {
  replies_[index] = std::move(reply);
  commands_[index].open = false;
  --open_;
}

ClusterLink::ClusterLink(std::vector<Server> seeds, std::shared_ptr<KeyPlaces> places)
    : seeds_(std::move(seeds)), places_(std::move(places)) {
  // A silent seed must leave time for the others and for the node that they redirect to.
  for (Server& seed : seeds_) seed.connect_timeout /= static_cast<int>(seeds_.size() + 1);
  current_ = node_at(host_port_of(seeds_.front()));
}

Server ClusterLink::server_at(const HostPort& at) const {
  for (const Server& seed : seeds_) {
    if (host_port_of(seed) == at) return seed;
  }
  Server server = seeds_.front();
  server.host = at.host.empty() ? connection().server().host : at.host;
  server.port = at.port;
  server.addresses = nullptr;
  return server;
}

size_t ClusterLink::node_at(const HostPort& at) {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (host_port_of(nodes_[i].server()) == at) return i;
  }
  Server server = server_at(at);
  if (nodes_.size() == kMostNodes) nodes_.erase(nodes_.begin());
  nodes_.emplace_back(std::move(server));
  return nodes_.size() - 1;
}

void ClusterLink::start_batch(Batch batch) {
  begin();
  batch_.emplace(std::move(batch), *places_);
  send_group();
}

void ClusterLink::follow(const std::vector<std::string>& words) {
  begin();
  batch_.reset();
  connection().follow(words);
}

void ClusterLink::begin() {
  if (in_flight_) drop();
  failures_ = 0;
  answered_ = Answered::no;
  arrived_ = false;
  in_flight_ = true;
}

void ClusterLink::send_group() {
  auto at = batch_->choose_group();
  if (!at) at = host_port_of(seeds_[seed_++ % seeds_.size()]);
  current_ = node_at(*at);
  connection().start_batch(batch_->group());
}

bool ClusterLink::advance(TimePoint now) {
  while (in_flight_ && connection().advance(now)) handle_replies(connection().take_batch());
  return !in_flight_;
}

void ClusterLink::handle_replies(std::vector<Result<ReplyPtr>> replies) {
  if (!batch_) {
    replies_ = std::move(replies);
    in_flight_ = false;
    return;
  }
  if (replies.front()) {
    batch_->take_group(std::move(replies), connection().server());
  } else {
    handle_unreachable(std::move(replies.front()).error());
  }
  in_flight_ = !batch_->is_done();
  if (in_flight_) return send_group();
  replies_ = batch_->take();
}

// Any seed may be dead, so all are tried in turn. One that refuses our password ends the batch: the
// others have the same users.
void ClusterLink::handle_unreachable(Error why) {
  arrived_ = may_have_arrived();
  batch_->forget_node(host_port_of(connection().server()));
  why.answered = answered_ = std::max(answered_, why.answered);
  if (why.kind != ErrorKind::unavailable || ++failures_ > seeds_.size()) batch_->fail_group(why);
}

void ClusterLink::wants(std::vector<pollfd>& out) const {
  if (in_flight_) connection().wants(out);
}

TimePoint ClusterLink::due() const {
  return in_flight_ ? connection().due() : TimePoint::max();
}

// The next command starts at a seed again.
void ClusterLink::drop() {
  in_flight_ = false;
  replies_.clear();
  connection().drop();
  places_->forget(host_port_of(connection().server()));
}

}  // namespace rlock::redis
