#include "redis/doctor/command_client.hpp"

#include "redis/store/call.hpp"

namespace rlock::redis {
namespace {

constexpr Millis kReplyTimeout{3'000};  // for one command: a slower server is stuck

void flatten(const redisReply& reply, Words& words) {
  if (reply.type == REDIS_REPLY_INTEGER) words.push_back(std::to_string(reply.integer));
  if (reply.type == REDIS_REPLY_STRING || reply.type == REDIS_REPLY_STATUS) {
    words.emplace_back(text_of(reply));
  }
  if (reply.type != REDIS_REPLY_ARRAY) return;
  for (size_t i = 0; i < reply.elements; ++i) flatten(*reply.element[i], words);
}

std::optional<Words> decode_words(const redisReply& reply) {
  Words words;
  flatten(reply, words);
  return words;
}

}  // namespace

Result<Words> CommandClient::ask(const Words& words, const lua::Script* script) {
  auto call = std::make_unique<Call<Words>>(connection_, words, "ask",
                                            without_context<Words, decode_words>, "", script);
  const Millis timeout = connection_.server().connect_timeout + kReplyTimeout;
  return lock::finish<Words>(poller_, std::move(call), poller_.now() + timeout,
                             connection_.server().label());
}

}  // namespace rlock::redis
