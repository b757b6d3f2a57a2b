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

// The most connections kept, because a hostile node could redirect without end.
constexpr size_t kMostNodes = 16;

// The first key of a script call.
std::string key_of(const std::vector<std::string>& words) {
  constexpr size_t kFirstKey = 3;
  return words.size() > kFirstKey ? words[kFirstKey] : "";
}

// id address@bus-port[,name[,more]] flags master ping pong epoch state slots…
struct NodeLine {
  std::string_view where;
  std::vector<std::string_view> flags;
  std::string_view slots;

  bool has_flag(std::string_view flag) const {
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
  }
};

NodeLine read_node_line(std::string_view text) {
  constexpr int kBetweenFlagsAndSlots = 5;
  take_until(text, ' ');
  NodeLine line{take_until(text, ' '), util::split(take_until(text, ' '), ','), {}};
  for (int i = 0; i < kBetweenFlagsAndSlots; ++i) take_until(text, ' ');
  line.slots = text;
  return line;
}

HostPort host_port_of(const Endpoint& server) {
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

std::vector<HostPort> masters_in(std::string_view nodes, NodeNaming naming) {
  std::vector<HostPort> masters;
  while (!nodes.empty()) {
    NodeLine line = read_node_line(take_until(nodes, '\n'));
    auto node = parse_node(take_until(line.where, '@'));
    take_until(line.where, ',');
    std::string_view name = take_until(line.where, ',');
    if (node && naming == NodeNaming::by_name && !name.empty()) node->host = name;
    if (node && line.has_flag("master") && !line.slots.empty()) masters.push_back(*std::move(node));
  }
  return masters;
}

// CRC16 as in XMODEM.
uint16_t slot_of(std::string_view hash_tag) {
  constexpr unsigned kPolynomial = 0x1021, kTop = 0x8000;
  unsigned crc = 0;
  for (const char c : hash_tag) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1) ^ ((crc & kTop) != 0 ? kPolynomial : 0);
  }
  return static_cast<uint16_t>(crc % kSlots);
}

// Slots: `93`, `0-5460`, and those that move: `[93->-ID]` away, `[93-<-ID]` here.
OwnSlots own_slots(std::string_view nodes) {
  OwnSlots own;
  std::vector<uint16_t> leaving;
  while (!nodes.empty()) {
    const NodeLine line = read_node_line(take_until(nodes, '\n'));
    if (!line.has_flag("myself")) continue;
    for (const std::string_view text : util::split(line.slots, ' ')) {
      std::string_view rest = text.starts_with('[') ? text.substr(1) : text;
      const auto first = util::parse_number<uint16_t>(util::leading_digits(rest));
      if (!first || *first >= kSlots) continue;
      rest.remove_prefix(util::leading_digits(rest).size());
      if (text.starts_with('[')) {
        const bool away = rest.starts_with("->");
        own.moving.push_back(util::format("{} {} another node", *first, away ? "to" : "from"));
        if (away) leaving.push_back(*first);
        continue;
      }
      util::take_until(rest, '-');
      const auto last = util::parse_number<uint16_t>(util::leading_digits(rest));
      for (uint16_t slot = *first; slot <= std::min(last.value_or(*first), uint16_t{kSlots - 1});
           ++slot) {
        own.served[slot] = true;
      }
    }
  }
  for (const uint16_t slot : leaving) own.served[slot] = false;
  return own;
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
    if (commands_[i].ask) ++next;  // skips the reply to ASKING
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
  // A silent seed must leave time for the other seeds and for the node that they redirect to.
  for (Server& seed : seeds_) {
    seed.connect_timeout = part_of(seed.connect_timeout, static_cast<int>(seeds_.size() + 1));
  }
  current_ = node_at(host_port_of(seeds_.front()));
}

Server ClusterLink::server_at(const HostPort& at) const {
  for (const Server& seed : seeds_) {
    if (host_port_of(seed) == at) return seed;
  }
  const std::string& host = at.host.empty() ? connection().server().host : at.host;
  return redis::server_at({host, at.port}, seeds_.front());
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

// Any seed may be dead, so all are tried in turn. A seed that refuses the password ends the batch,
// because the other seeds have the same users.
void ClusterLink::handle_unreachable(Error why) {
  arrived_ = may_have_arrived();
  batch_->forget_node(host_port_of(connection().server()));
  why.answered = answered_ = std::max(answered_, why.answered);
  failure_ = failures_ == 0 || failure_ == why.cause ? why.cause : Cause::other;
  if (why.kind == ErrorKind::unavailable) why.cause = failure_;
  if (why.kind != ErrorKind::unavailable || ++failures_ > seeds_.size()) batch_->fail_group(why);
}

void ClusterLink::wants(std::vector<pollfd>& out) const {
  if (in_flight_) connection().wants(out);
}

TimePoint ClusterLink::due() const {
  return in_flight_ ? connection().due() : TimePoint::max();
}

// Makes the next command start at a seed again.
void ClusterLink::drop() {
  in_flight_ = false;
  replies_.clear();
  connection().drop();
  places_->forget(host_port_of(connection().server()));
}

}  // namespace rlock::redis
