#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <vector>

#include "contract/lab.hpp"
#include "model/world.hpp"

namespace rlock::model {

// A request to run on the memory of a world, at its time.
struct Job {
  const World* world;
  const Request* request;
};

struct Done {
  Memory memory;
  Reply reply;
};

// The real scripts on a real server: a job restores a memory, runs the script with the world's time
// for TIME, and takes the memory away again, all in one call of one script around them.
class Server {
 public:
  explicit Server(const std::vector<contract::Mutation>& mutations = {});
  // In one write; a result for each job.
  std::vector<Done> run(const std::vector<Job>& jobs);
  bool mutations_applied() const { return scripts_.all_applied(); }

 private:
  struct FreeContext {
    void operator()(redisContext* context) const noexcept { redisFree(context); }
  };
  struct FreeReply {
    void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
  };
  using ReplyPtr = std::unique_ptr<redisReply, FreeReply>;

  void send(const std::vector<std::string>& words);
  ReplyPtr receive();

  test::RedisServer server_;
  contract::MutatedScripts scripts_;
  std::unique_ptr<redisContext, FreeContext> connection_;
  std::string digest_;
};

}  // namespace rlock::model
