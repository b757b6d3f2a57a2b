#include "redis/link/cluster.hpp"

#include <doctest/doctest.h>

using namespace rlock;
using namespace rlock::redis;

namespace {

const HostPort kFirst{"10.0.0.1", 6379};
const HostPort kSecond{"10.0.0.2", 6379};

Batch batch_of(const std::vector<std::string>& keys) {
  Batch batch;
  for (const std::string& key : keys) batch.push_back({"EVALSHA", "sha", "1", key});
  return batch;
}

// What a server sends, read as ever.
Result<ReplyPtr> reply(const std::string& bytes) {
  ReplyReader reader;
  reader.feed(bytes.data(), bytes.size());
  return reader.next();
}

std::vector<Result<ReplyPtr>> replies(const std::vector<std::string>& texts) {
  std::vector<Result<ReplyPtr>> out;
  for (const std::string& text : texts) out.push_back(reply(text));
  return out;
}

std::vector<std::string> texts(std::vector<Result<ReplyPtr>> all) {
  std::vector<std::string> out;
  for (const auto& one : all) out.emplace_back(one ? std::string(text_of(**one)) : "error");
  return out;
}

}  // namespace

TEST_CASE("a batch goes out in one group for each node, and the places are remembered") {
  KeyPlaces places;
  ClusterBatch batch(batch_of({"a", "b", "c"}), places);
  CHECK_FALSE(batch.choose_group());
  CHECK(batch.group().size() == 3);
  batch.take_group(replies({"+1\r\n", "-MOVED 7 10.0.0.2:6379\r\n", "+3\r\n"}), kFirst, true);
  CHECK_FALSE(batch.is_done());
  CHECK(batch.choose_group() == kSecond);
  CHECK(batch.group() == batch_of({"b"}));
  batch.take_group(replies({"+2\r\n"}), kSecond, true);
  CHECK(batch.is_done());
  CHECK(texts(batch.take()) == std::vector<std::string>{"1", "2", "3"});

  ClusterBatch again(batch_of({"a", "b", "c"}), places);
  CHECK(again.choose_group() == kFirst);
  CHECK(again.group() == batch_of({"a", "c"}));
}

TEST_CASE("a key that is on its way is asked for behind ASKING, and its place stays") {
  KeyPlaces places{{"a", kFirst}};
  ClusterBatch batch(batch_of({"a"}), places);
  CHECK(batch.choose_group() == kFirst);
  batch.take_group(replies({"-ASK 7 10.0.0.2:6379\r\n"}), kFirst, true);
  CHECK(batch.choose_group() == kSecond);
  CHECK(batch.group() == Batch{{"ASKING"}, batch_of({"a"}).front()});
  batch.take_group(replies({"+OK\r\n", "+1\r\n"}), kSecond, true);
  CHECK(texts(batch.take()) == std::vector<std::string>{"1"});
  CHECK(places.at("a") == kFirst);
}

TEST_CASE("redirects end, and a node that is gone costs only its own locks") {
  KeyPlaces places{{"a", kFirst}, {"b", kSecond}};
  ClusterBatch batch(batch_of({"a", "b"}), places);
  CHECK(batch.choose_group() == kFirst);
  batch.take_group(replies({"-MOVED 7 10.0.0.2:6379\r\n"}), kFirst, false);
  CHECK(batch.choose_group() == kSecond);
  batch.forget_node(kSecond);
  CHECK_FALSE(batch.choose_group());
  batch.fail_group(Error{ErrorKind::unavailable, "gone"});
  CHECK(batch.is_done());
  CHECK(texts(batch.take()) == std::vector<std::string>{"MOVED 7 10.0.0.2:6379", "error"});
}
