#pragma once

#include <hiredis/hiredis.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// hiredis only encodes commands and decodes replies here; it has no socket.

struct FreeReply {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using ReplyPtr = std::unique_ptr<redisReply, FreeReply>;

// The bytes of a string, a status or an error; empty for every other reply.
inline std::string_view text_of(const redisReply& reply) {
  if (reply.str == nullptr) return {};
  return {reply.str, static_cast<size_t>(reply.len)};
}

inline bool is_error(const redisReply& reply) {
  return reply.type == REDIS_REPLY_ERROR;
}

// Whether the server requires another password than rlock's.
inline bool is_auth_error(const redisReply& reply) {
  if (!is_error(reply)) return false;
  const std::string_view text = text_of(reply);
  return text.starts_with("WRONGPASS") || text.starts_with("NOAUTH") ||
         text.find("invalid password") != text.npos;
}

// Encodes a command for the server; words may contain any bytes.
std::string encode(const std::vector<std::string>& words);

// Assembles replies from pieces of any length. Refuses a reply that would cost too much memory
// before it allocates, because the server is not trusted.
class ReplyReader {
 public:
  static constexpr size_t kMostBytes = size_t{16} << 20;      // of one reply on the wire
  static constexpr size_t kMostElements = size_t{64} * 1024;  // of all arrays of one reply together
  static constexpr int kDeepest = 7;                          // arrays within arrays

  ReplyReader();

  void feed(const char* bytes, size_t size);
  // The next whole reply; null if more bytes are needed. After an Error the reader cannot be used.
  Result<ReplyPtr> next();
  // Whether no bytes are left after the last reply.
  bool empty() const;

 private:
  struct Free {
    void operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }
  };
  std::unique_ptr<redisReader, Free> reader_;
  std::unique_ptr<size_t> elements_left_;  // on the heap: hiredis keeps a pointer to it
  size_t bytes_ = 0;                       // fed since the last whole reply
};

// The fields of an INFO or CLUSTER INFO reply, by the server's names.
using InfoFields = std::map<std::string, std::string, std::less<>>;
InfoFields read_info(std::string_view text);

// Empty if the field is missing.
std::string info_field(const InfoFields& info, std::string_view field);

// Milliseconds from a server, bounded so that sums cannot overflow.
Millis bounded_span(int64_t millis);

// Decodes an error reply. The known refusals of services and proxies get advice; all others keep
// the server's text, without the keys and arguments that some servers quote.
Error decode_error(std::string_view text);

// The part of an error reply with which a proxy says that it does not reach its server; empty if
// there is none.
std::string_view proxy_outage(std::string_view text);

// The first word of an error reply, such as `NOPERM`, even if a script of Redis 6 failed with it.
std::string_view error_code(std::string_view text);

}  // namespace rlock::redis
