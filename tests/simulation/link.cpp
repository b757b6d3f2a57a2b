#include "simulation/link.hpp"

#include <utility>

#include "redis/link/connection.hpp"

namespace rlock::sim {
namespace {

constexpr Millis kConnectTimeout{2000};
// As long as a connection remembers which scripts a member knows.
constexpr Millis kKnownFor{10'000};

// The question to the sentinels, all of which answer.
class FailoverCheck final : public lock::Reply<Done> {
 public:
  FailoverCheck(Process& process, const Server& server) : process_(process) {
    auto answer = [state = state_, process = process.shared_from_this()] {
      state->arrived = true;
      process->wake();
    };
    World& world = process.world();
    world.after(kWay, [&world, &server, state = state_, answer] {
      state->fails_over = server.fails_over();
      world.after(kWay, answer);
    });
  }
  void wants(std::vector<pollfd>& out) const override { out.push_back({-1, POLLIN, 0}); }
  TimePoint due() const override { return TimePoint::max(); }
  bool advance(TimePoint) override { return state_->arrived || process_.dead(); }
  Result<Done> take() override {
    if (state_->arrived && !state_->fails_over) return Done{};
    return Error{ErrorKind::unavailable, "a failover is in progress", Retry::later, Answered::yes};
  }

 private:
  static constexpr Millis kWay{1};
  struct State {
    bool arrived = false;
    bool fails_over = false;
  };
  Process& process_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

redis::ReplyPtr parsed(const std::string& bytes) {
  redis::ReplyReader reader;
  reader.feed(bytes.data(), bytes.size());
  auto reply = reader.next();
  return reply ? std::move(*reply) : nullptr;
}

}  // namespace

Link::Link(Process& process, Server& server, Network& network, const LinkOptions& options,
           const std::shared_ptr<redis::MemberRegistry>& members)
    : process_(process), server_(server), network_(network), options_(options) {
  description_.host = server.label();
  if (options.member) description_.members = members;
}

// The simulated programs send no batches.
void Link::start_batch(redis::Batch batch) {
  if (phase_ != Phase::idle) drop();
  words_ = std::move(batch.front());
  pipelined_.clear();
  sent_ = false;
  phase_ = Phase::asked;
}

void Link::follow(const std::vector<std::string>& words) {
  const bool open = is_open();
  start(words);
  if (!open) fail("the connection is gone");
}

lock::InFlight<Done> Link::check_failover(Millis /*patience*/) {
  if (!options_.sentinels) return nullptr;
  return std::make_unique<FailoverCheck>(process_, server_);
}

void Link::start_last_words(const std::vector<std::string>& words, std::string_view text) {
  const bool known = knows_final_ && process_.now() < set_up_at_ + kKnownFor;
  if (options_.member && is_open() && !known) return start(redis::with_text(words, text));
  start(words);
  if (options_.member && !is_open()) pipelined_ = redis::with_text(words, text);
}

void Link::dial(TimePoint now) {
  close();
  deadline_ = now + kConnectTimeout;
  phase_ = Phase::dialing;
  const uint64_t number = process_.next_wire();
  wire_ = std::make_shared<Wire>(
      Wire{process_.host().number, server_.number(), process_.number(),
           Chance(process_.world().seed(), 2, mixed(process_.number()) + number), this});
  process_.note_wire(wire_);
  if (auto arrives = network_.arrival(*wire_, Network::Way::up)) {
    process_.world().at(*arrives, [&server = server_, wire = wire_] { server.connect(wire); });
  }
}

void Link::post(const Command& words) {
  auto arrives = network_.arrival(*wire_, Network::Way::up);
  if (!arrives) return;
  World& world = process_.world();
  auto deliver = [&server = server_, wire = wire_, words] { server.request(wire, words); };
  world.at(*arrives, deliver);
  if (words.front() == "BLPOP" || !wire_->chance.with(network_.rates().doubled)) return;
  // Once more, as bytes that nobody waits for.
  auto twin = std::make_shared<Wire>(
      Wire{wire_->host, wire_->server, wire_->process, Chance(wire_->chance.next())});
  world.at(*arrives + wire_->chance.between(0s, 5s),
           [&server = server_, twin, words] { server.request(twin, words); });
  server_.adopt(twin);
}

void Link::send() {
  if (wire_->chance.with(network_.rates().reset)) return fail("the connection was reset");
  phase_ = Phase::talking;
  sent_ = true;
  post(words_);
  if (!pipelined_.empty()) post(pipelined_);
}

bool Link::advance(TimePoint now) {
  if (process_.dead()) {
    if (phase_ != Phase::idle && phase_ != Phase::ended) fail("the process is dead");
    return true;
  }
  if (phase_ == Phase::asked) is_open() ? send() : dial(now);
  if (phase_ == Phase::dialing && is_open()) send();
  if (phase_ == Phase::dialing && now >= deadline_) fail("timed out");
  return phase_ == Phase::ended || phase_ == Phase::idle;
}

// What is not sent yet is cancelled.
bool Link::settle() {
  if (phase_ == Phase::dialing && is_open()) {
    phase_ = Phase::ended;
    result_ =
        Error{ErrorKind::unavailable, label() + ": cancelled before it was sent", Retry::later};
  }
  return phase_ == Phase::ended;
}

void Link::on_accepted(const std::string& info, const std::set<std::string>& known) {
  // What nobody reads the reply to also goes to a member that does not count.
  if (options_.member && !options_.counts_everybody && pipelined_.empty()) {
    auto error = redis::check_member(*parsed(info), redis::Durability::unknown, description_);
    if (error) {
      error->answered = Answered::yes;
      close();
      end(std::move(*error));
      return process_.wake();
    }
  }
  wire_->accepted = true;
  knows_final_ = known.contains(std::string(options_.final_script));
  set_up_at_ = process_.now();
  process_.accepted_by().insert(server_.number());
  process_.wake();
}

void Link::on_reply(const std::string& bytes) {
  if (phase_ != Phase::talking) return;
  end(parsed(bytes));
  process_.wake();
}

void Link::on_closed() {
  close();
  if (phase_ == Phase::dialing || phase_ == Phase::talking) {
    fail("the server closed the connection");
  }
  process_.wake();
}

void Link::fail(const std::string& why) {
  end(Error{ErrorKind::unavailable, label() + ": " + why, Retry::later});
}

void Link::end(Result<redis::ReplyPtr> result) {
  if (!result || !pipelined_.empty()) close();
  phase_ = Phase::ended;
  result_ = std::move(result);
}

std::vector<Result<redis::ReplyPtr>> Link::take_batch() {
  phase_ = Phase::idle;
  std::vector<Result<redis::ReplyPtr>> replies;
  if (result_) replies.push_back(*std::exchange(result_, std::nullopt));
  return replies;
}

void Link::drop() {
  close();
  phase_ = Phase::idle;
  result_.reset();
}

void Link::close() {
  if (wire_) close_wire(process_.world(), network_, server_, wire_);
  wire_.reset();
}

void close_wire(World& world, Network& network, Server& server, const WirePtr& wire) {
  if (std::exchange(wire->client, nullptr) == nullptr) return;
  if (auto arrives = network.arrival(*wire, Network::Way::up)) {
    world.at(*arrives, [&server, wire] { server.closed(wire); });
  }
}

void Link::wants(std::vector<pollfd>& out) const {
  if (phase_ == Phase::dialing || phase_ == Phase::talking) out.push_back({-1, POLLIN, 0});
}

TimePoint Link::due() const {
  if (phase_ == Phase::dialing) return is_open() ? TimePoint::min() : deadline_;
  if (phase_ == Phase::talking || phase_ == Phase::idle) return TimePoint::max();
  return TimePoint::min();
}

bool Link::was_accepted() const {
  return process_.accepted_by().contains(server_.number());
}

}  // namespace rlock::sim
