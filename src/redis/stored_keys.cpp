#include "redis/stored_keys.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "lock/poller.hpp"
#include "redis/link/connection.hpp"
#include "redis/store/call.hpp"
#include "redis/store/keys.hpp"

namespace rlock::redis {
namespace {

struct ExpectedKey {
  std::string name;
  const char* type;
};

std::vector<ExpectedKey> expected_keys(const OpenOptions& options, const lock::LockName& name) {
  if (options.format == Format::plain) return {{name.text(), "string"}};
  if (options.format == Format::redisson) return {{name.text(), "hash"}};
  std::vector<ExpectedKey> keys;
  for (const auto& [suffix, type] : kLockKeys) {
    if (type == nullptr) continue;
    keys.push_back({lock_key(options.prefix, name.text(), suffix), type});
  }
  return keys;
}

class KeyReader {
 public:
  explicit KeyReader(const Server& server) : connection_(server) {}

  std::optional<StoredKey> read(const std::string& name) {
    auto type = ask<std::string>({"TYPE", name}, [](const redisReply& reply) {
      return std::optional(std::string(text_of(reply)));
    });
    auto left = ask<Millis>({"PTTL", name}, [](const redisReply& reply) {
      return std::optional(Millis(reply.integer));
    });
    if (!type || !left) return std::nullopt;
    return StoredKey{name, *std::move(type), *left};
  }

 private:
  template <class T, class Decode>
  Result<T> ask(std::vector<std::string> words, Decode decode) {
    constexpr Millis kLongest{1'000};
    auto call = std::make_unique<Call<T>>(connection_, std::move(words), "ask", decode, nullptr);
    return lock::finish<T>(poller_, std::move(call), poller_.now() + kLongest,
                           connection_.server().label());
  }

  Connection connection_;
  lock::SystemPoller poller_;
};

}  // namespace

BlockingKeys blocking_keys(const OpenOptions& options, const lock::LockName& name) {
  BlockingKeys blocking;
  auto found = targets(options);
  if (!found || found->size() != 1) return blocking;
  const auto* server = std::get_if<Server>(&found->front());
  if (server == nullptr) return blocking;
  blocking.server = *server;
  KeyReader reader(*server);
  for (const ExpectedKey& expected : expected_keys(options, name)) {
    auto stored = reader.read(expected.name);
    if (!stored) return blocking;  // the server would not answer about the others either
    const bool blocks = options.format == Format::native
                            ? stored->type != expected.type
                            : stored->type != expected.type || stored->left < Millis(0) ||
                                  options.format == Format::redisson;
    if (stored->type != "none" && blocks) blocking.keys.push_back(*std::move(stored));
  }
  return blocking;
}

}  // namespace rlock::redis
