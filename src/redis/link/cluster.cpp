#include "redis/link/cluster.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace rlock::redis {
namespace {

// Takes the text up to `mark`.
std::string_view next(std::string_view& text, char mark) {
  size_t end = text.find(mark);
  std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

// A node that does not know its own name is `:6381` or `?:6381`.
std::optional<HostPort> parse_node(std::string_view text) {
  auto node = parse_host_port(text);
  if (node && node->host == "?") node->host.clear();
  return node;
}

bool has_flag(std::string_view flags, std::string_view flag) {
  while (!flags.empty()) {
    if (next(flags, ',') == flag) return true;
  }
  return false;
}

}  // namespace

std::optional<Redirect> redirect_in(std::string_view error) {
  std::string_view word = next(error, ' ');
  if (word != "MOVED" && word != "ASK") return std::nullopt;
  next(error, ' ');  // the slot
  auto to = parse_node(next(error, ' '));
  if (!to) return std::nullopt;
  return Redirect{word == "ASK" ? Redirect::Kind::ask : Redirect::Kind::moved, std::move(*to)};
}

// A line: id address@bus-port[,name[,more]] flags master ping pong epoch state slots…
std::vector<HostPort> masters_in(std::string_view nodes, NodeNaming naming) {
  constexpr int kBetweenFlagsAndSlots = 5;
  std::vector<HostPort> masters;
  while (!nodes.empty()) {
    std::string_view line = next(nodes, '\n');
    next(line, ' ');
    std::string_view where = next(line, ' ');
    std::string_view flags = next(line, ' ');
    for (int i = 0; i < kBetweenFlagsAndSlots; ++i) next(line, ' ');
    auto node = parse_node(next(where, '@'));
    next(where, ',');
    std::string_view name = next(where, ',');
    if (node && naming == NodeNaming::by_name && !name.empty()) node->host = name;
    if (node && has_flag(flags, "master") && !line.empty()) masters.push_back(std::move(*node));
  }
  return masters;
}

namespace {

constexpr size_t kMostPlaces = 4096;

// The first key of a script call.
std::string key_of(const std::vector<std::string>& words) {
  constexpr size_t kFirstKey = 3;
  return words.size() > kFirstKey ? words[kFirstKey] : "";
}

}  // namespace

ClusterBatch::ClusterBatch(Batch commands, KeyPlaces& places)
    : places_(places), open_(commands.size()) {
  if (places_.size() > kMostPlaces) places_.clear();
  replies_ = failed_batch(commands.size(), Error{ErrorKind::internal, "not sent"});
  for (auto& words : commands) {
    std::string key = key_of(words);
    commands_.push_back({std::move(words), std::move(key)});
  }
}

std::optional<HostPort> ClusterBatch::place_of(const Command& command) const {
  if (command.ask) return command.at;
  auto place = places_.find(command.key);
  return place == places_.end() ? std::nullopt : std::optional(place->second);
}

std::optional<HostPort> ClusterBatch::choose_group() {
  group_.clear();
  std::optional<HostPort> node;
  for (size_t i = 0; i < commands_.size(); ++i) {
    if (!commands_[i].open) continue;
    auto place = place_of(commands_[i]);
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

void ClusterBatch::take_group(std::vector<Result<ReplyPtr>> replies, const HostPort& from,
                              bool redirects) {
  size_t next = 0;
  for (size_t i : group_) {
    Command& command = commands_[i];
    if (command.ask) ++next;
    if (next >= replies.size()) return;
    Result<ReplyPtr>& reply = replies[next++];
    if (redirects && reply && redirect(command, **reply, from)) continue;
    if (!command.ask && reply && !is_error(**reply)) places_[command.key] = from;
    close(i, std::move(reply));
  }
}

bool ClusterBatch::redirect(Command& command, const redisReply& reply, const HostPort& from) {
  auto redirect = is_error(reply) ? redirect_in(text_of(reply)) : std::nullopt;
  if (!redirect) return false;
  if (redirect->to.host.empty()) redirect->to.host = from.host;
  command.ask = redirect->kind == Redirect::Kind::ask;
  command.at = redirect->to;
  if (!command.ask) places_[command.key] = redirect->to;
  return true;
}

void ClusterBatch::forget_node(const HostPort& node) {
  std::erase_if(places_, [&](const auto& place) { return place.second == node; });
  for (Command& command : commands_) command.ask = command.ask && !(command.at == node);
}

void ClusterBatch::fail_group(const Error& why) {
  for (size_t i : group_) close(i, why);
}

void ClusterBatch::close(size_t index, Result<ReplyPtr> reply) {
  replies_[index] = std::move(reply);
  commands_[index].open = false;
  --open_;
}

namespace {

// Most connections kept: a hostile node could redirect us without end.
constexpr size_t kMostNodes = 16;

// Groups of one batch, those that are redirected included: at first each lock may need one.
constexpr int kMostBatchRounds = 64;

std::string_view error_in(const redisReply& reply) {
  return is_error(reply) ? text_of(reply) : std::string_view();
}

HostPort host_port_of(const Server& server) {
  return {server.host, server.port};
}

}  // namespace

std::optional<HostPort> LastNode::get() const {
  std::lock_guard lock(mutex_);
  return node_;
}

void LastNode::set(std::optional<HostPort> node) {
  std::lock_guard lock(mutex_);
  node_ = std::move(node);
}

ClusterLink::ClusterLink(std::vector<Server> seeds, std::shared_ptr<LastNode> last_node)
    : seeds_(std::move(seeds)), last_node_(std::move(last_node)) {
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
    if (nodes_[i].at == at) return i;
  }
  Server server = server_at(at);
  if (nodes_.size() == kMostNodes) nodes_.erase(nodes_.begin());
  nodes_.push_back({at, Connection(std::move(server))});
  return nodes_.size() - 1;
}

HostPort ClusterLink::next_seed() {
  return host_port_of(seeds_[seed_++ % seeds_.size()]);
}

void ClusterLink::start(const std::vector<std::string>& words) {
  begin();
  batch_.reset();
  words_ = words;
  auto last_node = last_node_->get();
  ask(last_node ? *last_node : next_seed(), Asking::no);
}

void ClusterLink::start_batch(Batch batch) {
  begin();
  batch_.emplace(std::move(batch), places_);
  send_group();
}

void ClusterLink::follow(const std::vector<std::string>& words) {
  begin();
  batch_.reset();
  follows_ = true;
  asking_ = Asking::no;
  connection().follow(words);
}

void ClusterLink::begin() {
  if (in_flight_) drop();
  follows_ = false;
  redirects_ = 0;
  failures_ = 0;
  answered_ = Answered::no;
  arrived_ = false;
  result_.reset();
  in_flight_ = true;
}

void ClusterLink::send_group() {
  auto at = batch_->choose_group();
  if (!at) at = last_node_->get();
  if (!at) at = next_seed();
  current_ = node_at(*at);
  asking_ = Asking::no;
  connection().start_batch(batch_->group());
}

void ClusterLink::handle_group() {
  auto replies = connection().take_batch();
  const HostPort node = nodes_[current_].at;
  if (replies.front()) {
    batch_->take_group(std::move(replies), node, ++redirects_ <= kMostBatchRounds);
  } else {
    forget_last_node();
    batch_->forget_node(node);
    const Error why = replies.front().error();
    if (why.kind != ErrorKind::unavailable || ++failures_ > seeds_.size()) batch_->fail_group(why);
  }
  in_flight_ = !batch_->is_done();
  if (in_flight_) send_group();
}

void ClusterLink::ask(const HostPort& at, Asking asking) {
  current_ = node_at(at);
  asking_ = asking;
  connection().start(asking == Asking::yes ? std::vector<std::string>{"ASKING"} : words_);
}

bool ClusterLink::advance(TimePoint now) {
  while (in_flight_ && connection().advance(now)) {
    if (batch_) {
      handle_group();
    } else {
      handle_reply(connection().take());
    }
  }
  return !in_flight_;
}

void ClusterLink::handle_reply(Result<ReplyPtr> reply) {
  if (follows_) return end(std::move(reply));
  if (!reply) return handle_unreachable(std::move(reply).error());
  if (asking_ == Asking::yes) {
    asking_ = Asking::no;
    return connection().start(words_);
  }
  std::string_view error = error_in(**reply);
  if (auto redirect = redirect_in(error)) return follow_redirect(*redirect);
  if (error.starts_with("CLUSTERDOWN")) {
    forget_last_node();  // this node's view of the cluster may be wrong
  } else if (redirects_ == 0) {
    last_node_->set(nodes_[current_].at);
  }
  end(std::move(reply));
}

void ClusterLink::follow_redirect(const Redirect& redirect) {
  if (++redirects_ > kMostRedirects) {
    forget_last_node();
    return end(Error{ErrorKind::unavailable,
                     node() + ": the nodes do not agree on which one serves this lock",
                     Retry::later, Answered::yes});
  }
  HostPort to = host_port_of(server_at(redirect.to));
  if (redirect.kind == Redirect::Kind::ask) return ask(to, Asking::yes);
  last_node_->set(to);
  ask(to, Asking::no);
}

// Any seed may be dead, so all are tried in turn. One that refuses our password ends the command:
// the others have the same users.
void ClusterLink::handle_unreachable(Error why) {
  arrived_ = may_have_arrived();
  forget_last_node();
  why.answered = answered_ = std::max(answered_, why.answered);
  if (why.kind != ErrorKind::unavailable || ++failures_ > seeds_.size()) return end(std::move(why));
  ask(next_seed(), Asking::no);
}

// The next command starts at a seed again.
void ClusterLink::forget_last_node() {
  last_node_->set(std::nullopt);
}

void ClusterLink::end(Result<ReplyPtr> result) {
  in_flight_ = false;
  result_ = std::move(result);
}

Result<ReplyPtr> ClusterLink::take() {
  if (!result_) return Error{ErrorKind::internal, label() + ": no reply to take"};
  return *std::exchange(result_, std::nullopt);
}

std::vector<Result<ReplyPtr>> ClusterLink::take_batch() {
  return batch_->take();
}

void ClusterLink::wants(std::vector<pollfd>& out) const {
  if (in_flight_) connection().wants(out);
}

TimePoint ClusterLink::due() const {
  return in_flight_ ? connection().due() : TimePoint::max();
}

void ClusterLink::drop() {
  in_flight_ = false;
  result_.reset();
  connection().drop();
  forget_last_node();
}

}  // namespace rlock::redis
