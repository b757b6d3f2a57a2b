#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <string>
#include <vector>

#include "util/result.hpp"

// hiredis as the codec of the protocol: bytes in, bytes out, no sockets.
namespace rlock::redis {

struct FreeReply {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using ReplyPtr = std::unique_ptr<redisReply, FreeReply>;

// A command as the server reads it; words may hold any bytes.
std::string encode(const std::vector<std::string>& words);

// Puts replies together from bytes of any cut, and refuses what would cost too much memory before
// it is allocated: the server may be anybody.
class ReplyReader {
 public:
  static constexpr size_t kMostBytes = size_t{16} << 20;      // of one reply on the wire
  static constexpr size_t kMostElements = size_t{64} * 1024;  // of all arrays of one reply together
  static constexpr int kDeepest = 7;                          // arrays within arrays

  ReplyReader();

  void feed(const char* bytes, size_t size);
  // The next whole reply; null when more bytes are needed. After an Error the reader is of no use.
  Result<ReplyPtr> next();
  // No byte is left over that next() has not given.
  bool empty() const;

 private:
  struct Free {
    void operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }
  };
  std::unique_ptr<redisReader, Free> reader_;
  std::unique_ptr<size_t> elements_left_;  // at an address of its own: hiredis holds a pointer
  size_t bytes_ = 0;                       // fed since the last whole reply
};

}  // namespace rlock::redis
