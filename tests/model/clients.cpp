// What rlock does with the server's replies. [lock/wait, run/renewer]
#include <algorithm>

#include "model/steps.hpp"

namespace rlock::model {
namespace {

void end_round(World& world, Client& client, const std::string& owner, Moment ended) {
  world.ended[owner] = ended;
  Client next;
  next.limit = client.limit;
  next.work = client.work;
  next.round = client.round + 1;
  next.rounds_left = client.rounds_left - 1;
  next.phase = next.rounds_left > 0 ? ClientPhase::idle : ClientPhase::done;
  client = next;
}

void hold(Client& client, const Request& request, const Reply& reply, bool before_loss,
          Moment now) {
  client.phase = ClientPhase::holding;
  client.token = reply.number;
  client.slot = reply.slot;
  client.sent_at = request.sent_at;
  client.due = request.sent_at + kRenewEvery;
  if (before_loss) client.lost_at = now;
  if (now < client.deadline()) return;
  client.phase = ClientPhase::leaving;
  client.due = now;
}

// An earlier request that arrives late would be granted a lock that nobody uses.
void refused(World& world, Client& client, const Request& request, const Reply& reply) {
  if (!client.lost_reply) return end_round(world, client, request.owner, reply.at);
  client.phase = ClientPhase::leaving;
}

bool is_refusal(const Reply& reply) {
  const std::string& word = reply.word == "gone" ? reply.how : reply.word;
  return word == "done" || word == "failed" || word == "superseded";
}

void deliver_acquire(World& world, Client& client, const Request& request, const Reply& reply,
                     bool before_loss) {
  if (client.phase != ClientPhase::waiting) return;
  if (reply.word == "granted") return hold(client, request, reply, before_loss, world.now);
  client.due = world.now;
  if (reply.word == "gone" && reply.how == "forced") {
    client.phase = ClientPhase::leaving;
    return;
  }
  if (is_refusal(reply)) return refused(world, client, request, reply);
  if (reply.word == "gone") return end_round(world, client, request.owner, reply.at);
  if (reply.word != "queued") return;
  client.ticket = reply.number;
  Moment look = reply.look_again < 0 ? reply.slice : std::min(reply.slice, reply.look_again);
  client.due = world.now + look;
}

void deliver_renew(World& world, Client& client, const Request& request, const Reply& reply,
                   bool before_loss) {
  if (client.phase != ClientPhase::holding) return;
  if (reply.word == "lost" || reply.word == "upgrade") {
    client.phase = ClientPhase::leaving;
    client.due = world.now;
    // Else its command may have succeeded before it learnt of it.
    if (reply.how == "forced" || reply.how == "released") client.outcome = Outcome::failed;
    return;
  }
  client.sent_at = std::max(client.sent_at, request.sent_at);
  client.due = client.sent_at + kRenewEvery;
  if (!before_loss) client.lost_at = -1;
}

}  // namespace

void handle_reply(World& world, const Request& request, const Reply& reply, bool before_loss) {
  if (request.client < 0) return;
  Client& client = world.clients[static_cast<size_t>(request.client)];
  if (client.phase == ClientPhase::dead) return;
  if (request.op == Op::acquire) return deliver_acquire(world, client, request, reply, before_loss);
  if (request.op == Op::renew) return deliver_renew(world, client, request, reply, before_loss);
  end_round(world, client, request.owner, reply.at);
}

}  // namespace rlock::model
