#include "redis/link/reply.hpp"

#include <cstdlib>
#include <new>
#include <utility>

namespace rlock::redis {
namespace {

struct FreeCommand {
  void operator()(char* command) const noexcept { redisFreeCommand(command); }
};

// hiredis allocates the table of an array as soon as it has read the length, so `*100000000` alone
// would cost 800 MB. bounded_array checks the length first; the type of `elements` differs between
// releases of hiredis.
redisReplyObjectFunctions hiredis_functions{};

template <class Count>
void* bounded_array(const redisReadTask* task, Count elements) {
  auto& left = *static_cast<size_t*>(task->privdata);
  int depth = 0;
  for (const redisReadTask* outer = task->parent; outer != nullptr; outer = outer->parent) ++depth;
  if (depth >= ReplyReader::kDeepest || static_cast<size_t>(elements) > left) return nullptr;
  left -= static_cast<size_t>(elements);
  return hiredis_functions.createArray(task, elements);
}

redisReplyObjectFunctions* bounded_functions(const redisReplyObjectFunctions& original) {
  static redisReplyObjectFunctions bounded = [&original] {
    hiredis_functions = original;
    redisReplyObjectFunctions functions = original;
    functions.createArray = bounded_array;
    return functions;
  }();
  return &bounded;
}

Error bad_reply(std::string why) {
  return {ErrorKind::unavailable, std::move(why), Retry::later, Answered::yes};
}

}  // namespace

std::string encode(const std::vector<std::string>& words) {
  std::vector<const char*> argv;
  std::vector<size_t> lengths;
  for (const std::string& word : words) {
    argv.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* raw = nullptr;
  auto size =
      redisFormatCommandArgv(&raw, static_cast<int>(argv.size()), argv.data(), lengths.data());
  if (size < 0) throw std::bad_alloc();
  std::unique_ptr<char, FreeCommand> command(raw);
  return {raw, static_cast<size_t>(size)};
}

std::string encode_all(const std::vector<std::vector<std::string>>& commands) {
  std::string all;
  for (const auto& words : commands) all += encode(words);
  return all;
}

ReplyReader::ReplyReader()
    : reader_(redisReaderCreate()), elements_left_(std::make_unique<size_t>(kMostElements)) {
  if (reader_ == nullptr) throw std::bad_alloc();
  reader_->fn = bounded_functions(*reader_->fn);
  reader_->privdata = elements_left_.get();
}

void ReplyReader::feed(const char* bytes, size_t size) {
  bytes_ += size;
  if (bytes_ <= kMostBytes) redisReaderFeed(reader_.get(), bytes, size);
}

Result<ReplyPtr> ReplyReader::next() {
  if (bytes_ > kMostBytes) return bad_reply("the reply is too large");
  void* reply = nullptr;
  int status = redisReaderGetReply(reader_.get(), &reply);
  if (status != REDIS_OK) {
    if (reader_->err == REDIS_ERR_OOM) return bad_reply("the reply is too large");
    return bad_reply(std::string("not a Redis reply (") + reader_->errstr + ")");
  }
  if (reply != nullptr) {
    bytes_ = reader_->len - reader_->pos;
    *elements_left_ = kMostElements;
  }
  return ReplyPtr(static_cast<redisReply*>(reply));
}

bool ReplyReader::empty() const {
  return reader_->pos == reader_->len;
}

}  // namespace rlock::redis
