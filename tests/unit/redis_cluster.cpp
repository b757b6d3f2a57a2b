// A scripted cluster that misbehaves as a real one cannot be made to; tests/topology has real ones.
#include <doctest/doctest.h>

#include <atomic>

#include "redis/link/cluster.hpp"
#include "redis/store/redis_store.hpp"
#include "redis_call.hpp"
#include "support/fake_server.hpp"

using namespace rlock;
using namespace rlock::redis;
using test::at_port;
using test::call;
using test::FakeServer;
using test::reply_text;

namespace {

const std::string kNamed = "+OK\r\n";  // to CLIENT SETNAME
const std::string kPing = "*1\r\n$4\r\nPING\r\n";

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string redirection(const char* word, int port) {
  return std::string("-") + word + " 1 127.0.0.1:" + std::to_string(port) + "\r\n";
}

ClusterLink link_to(const std::vector<int>& ports) {
  std::vector<Server> seeds;
  for (int port : ports) seeds.push_back(at_port(port, Millis(5'000)));
  return {seeds, std::make_shared<KeyPlaces>()};
}

const HostPort kFirst{"10.0.0.1", 6379};
const HostPort kSecond{"10.0.0.2", 6379};

Server server_at(const HostPort& at) {
  Server server = at_port(at.port);
  server.host = at.host;
  return server;
}

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

TEST_CASE("a part of the shortest connect timeout is enough to connect to a seed") {
  const Server seed = at_port(1, Millis(1));
  const ClusterLink link({seed, seed, seed}, std::make_shared<KeyPlaces>());
  CHECK(link.node_server().connect_timeout == Millis(1));
}

TEST_CASE("redirects are read, whatever shape a node gives its address") {
  auto moved = redirect_in("MOVED 3999 10.0.0.1:6381");
  REQUIRE(moved);
  CHECK(moved->kind == Redirect::Kind::moved);
  CHECK(moved->to == HostPort{"10.0.0.1", 6381});
  CHECK(redirect_in("ASK 3999 ::1:6381")->to == HostPort{"::1", 6381});
  CHECK(redirect_in("MOVED 3999 :6381")->to == HostPort{"", 6381});
  CHECK(redirect_in("MOVED 3999 ?:6381")->to == HostPort{"", 6381});
  for (const char* other : {"", "MOVED", "MOVED 1", "MOVED 1 h", "MOVED 1 h:0", "MOVED 1 h:99999",
                            "TRYAGAIN Multiple keys", "ERR MOVED 1 h:1"}) {
    CHECK_FALSE(redirect_in(other));
  }
}

TEST_CASE("the masters with slots are read from CLUSTER NODES, by address or by name") {
  constexpr const char* kNodes =
      "a 10.0.0.1:6379@16379,db1,shard-id=f00 myself,master - 0 0 1 connected 0-5460\n"
      "b 10.0.0.2:6379@16379 slave a 0 0 1 connected\n"
      "c 10.0.0.3:6379@16379 master,fail - 0 0 2 disconnected\n"
      "d :6379@16379 master - 0 0 3 connected 5461 [5462->-a]\n"
      "e ?:0@0,db9 master,noaddr - 0 0 4 disconnected 9\n"
      "f 2001:db8::7:6379@16379,,tls-port=0 master - 0 0 5 connected 10923-16383\n"
      "nonsense\n";
  CHECK(masters_in(kNodes, NodeNaming::by_address) ==
        std::vector<HostPort>{{"10.0.0.1", 6379}, {"", 6379}, {"2001:db8::7", 6379}});
  CHECK(masters_in(kNodes, NodeNaming::by_name) ==
        std::vector<HostPort>{{"db1", 6379}, {"", 6379}, {"2001:db8::7", 6379}});
}

TEST_CASE("only a node's own line says which of its slots move") {
  const OwnSlots own = own_slots(
      "a 10.0.0.1:6379@16379 master - 0 0 1 connected 100-200 [100->-b]\n"
      "b 10.0.0.2:6379@16379 myself,master - 0 0 2 connected 7 16380-16383 [7->-a] [93-<-a]\n"
      "c 10.0.0.3:6379@16379 master - 0 0 3 connected 0-6\n");
  CHECK(own.moving == std::vector<std::string>{"7 to another node", "93 from another node"});
  std::vector<bool> served(redis::kSlots);
  for (size_t slot : {16380, 16381, 16382, 16383}) served[slot] = true;
  CHECK(own.served == served);
  for (const char* odd :
       {"", "a", "b h:1@2 myself,master - 0 0 2 connected x 99999 [ [x 9-99999"}) {
    (void)own_slots(odd);
  }
}

TEST_CASE("the slot of a key is that of CLUSTER KEYSLOT") {
  CHECK(slot_of("") == 0);
  CHECK(slot_of("123456789") == 12739);
  CHECK(slot_of("foo") == 12182);
}

TEST_CASE("a batch goes out in one group for each node, and the places are remembered") {
  KeyPlaces places;
  ClusterBatch batch(batch_of({"a", "b", "c"}), places);
  CHECK_FALSE(batch.choose_group());
  CHECK(batch.group().size() == 3);
  batch.take_group(replies({"+1\r\n", "-MOVED 7 10.0.0.2:6379\r\n", "+3\r\n"}), server_at(kFirst));
  CHECK_FALSE(batch.is_done());
  CHECK(batch.choose_group() == kSecond);
  CHECK(batch.group() == batch_of({"b"}));
  batch.take_group(replies({"+2\r\n"}), server_at(kSecond));
  CHECK(batch.is_done());
  CHECK(texts(batch.take()) == std::vector<std::string>{"1", "2", "3"});

  ClusterBatch again(batch_of({"a", "b", "c"}), places);
  CHECK(again.choose_group() == kFirst);
  CHECK(again.group() == batch_of({"a", "c"}));
}

TEST_CASE("a key of a moving slot is requested with ASKING, and its position stays") {
  KeyPlaces places;
  places.keep("a", kFirst);
  ClusterBatch batch(batch_of({"a"}), places);
  CHECK(batch.choose_group() == kFirst);
  batch.take_group(replies({"-ASK 7 10.0.0.2:6379\r\n"}), server_at(kFirst));
  CHECK(batch.choose_group() == kSecond);
  CHECK(batch.group() == Batch{{"ASKING"}, batch_of({"a"}).front()});
  batch.take_group(replies({"+OK\r\n", "+1\r\n"}), server_at(kSecond));
  CHECK(texts(batch.take()) == std::vector<std::string>{"1"});
  CHECK(places.find("a") == kFirst);
}

TEST_CASE("redirects are bounded, and a dead node costs only its own locks") {
  KeyPlaces places;
  places.keep("b", kSecond);
  places.keep("a", kFirst);
  ClusterBatch batch(batch_of({"a", "b"}), places);
  for (int i = 0; i <= ClusterBatch::kMostRedirects; ++i) {
    CHECK(batch.choose_group() == kFirst);
    CHECK(batch.group() == batch_of({"a"}));
    batch.take_group(replies({"-MOVED 7 10.0.0.1:6379\r\n"}), server_at(kFirst));
  }
  CHECK(batch.choose_group() == kSecond);
  batch.forget_node(kSecond);
  CHECK_FALSE(batch.choose_group());
  batch.fail_group(Error{ErrorKind::unavailable, "gone"});
  CHECK(batch.is_done());
  auto all = batch.take();
  REQUIRE_FALSE(all[0]);
  CHECK(all[0].error().text ==
        "10.0.0.1:6379: the nodes do not agree on which one serves this lock");
  REQUIRE_FALSE(all[1]);
  CHECK(all[1].error().text == "gone");
}

TEST_CASE("after five redirects, nodes that send rlock round in a circle are an error") {
  std::atomic<int> port{0};
  std::atomic<int> asked{0};
  FakeServer node([&](FakeServer::Peer& peer, int) {
    for (int i = 1; peer.await(repeated(kPing, i)); ++i) {
      asked = i;
      peer.send((i == 1 ? kNamed : "") + redirection("MOVED", port));
    }
  });
  port = node.port();
  ClusterLink link = link_to({node.port()});
  auto reply = call(link, {"PING"});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().kind == ErrorKind::unavailable);
  CHECK(reply.error().retry == Retry::later);
  CHECK(asked == 1 + ClusterBatch::kMostRedirects);
}

TEST_CASE("after ASK a script that the new node does not know is sent there as text") {
  const std::string asking = "*1\r\n$6\r\nASKING\r\n";
  const std::string text = "$4\r\nEVAL\r\n";
  FakeServer target([&](FakeServer::Peer& peer, int) {
    peer.await(asking);
    peer.send(kNamed + "+OK\r\n");
    peer.await("EVALSHA");
    peer.send("-NOSCRIPT No matching script.\r\n");
    // What follows the last argument of the release.
    peer.await("exit:0\r\n" + asking);
    peer.send("+OK\r\n");
    peer.await(text);
    peer.send("*1\r\n$5\r\nfreed\r\n");
    peer.await_hang_up();
  });
  FakeServer home([&](FakeServer::Peer& peer, int) {
    peer.await("EVALSHA");
    peer.send(kNamed + redirection("ASK", target.port()));
    peer.await(text);
    peer.send(redirection("ASK", target.port()));
    peer.await_hang_up();
  });
  ClusterStore store(std::make_unique<ClusterLink>(link_to({home.port()})), "rlock:");
  auto owner = *lock::Owner::parse("0123456789abcdef0123456789abcdef");
  auto request =
      store.release({*lock::LockName::parse("job"), owner, lock::Entry::outer(), "exit:0"});
  auto reply = test::finish(*request);
  REQUIRE_MESSAGE(reply, reply.error().text);
  CHECK(reply->ending == lock::OwnerEnd::released);
}

TEST_CASE("a master without a valid list is an error, not an empty list, and is skipped") {
  for (const char* list : {":7\r\n", "*-1\r\n", "*1\r\n$1\r\n0\r\n", "-ERR you said canary\r\n"}) {
    CAPTURE(list);
    FakeServer master([list](FakeServer::Peer& peer, int) {
      peer.await("rlock\r\n");
      peer.send("+OK\r\n" + kNamed);
      peer.await("SCAN");
      peer.send(list);
      peer.await_hang_up();
    });
    FakeServer seed([&](FakeServer::Peer& peer, int) {
      peer.await("rlock\r\n");
      peer.send("+OK\r\n" + kNamed);
      peer.await("NODES");
      std::string nodes = "id 127.0.0.1:" + std::to_string(master.port()) +
                          "@1 master - 0 0 1 connected 0-5460\nid 127.0.0.1:1@1 master - 0 0 2 "
                          "connected 5461-16383\n";
      peer.send("$" + std::to_string(nodes.size()) + "\r\n" + nodes + "\r\n");
      peer.await_hang_up();
    });
    Server server = at_port(seed.port());
    server.password = "canary";
    auto link =
        std::make_unique<ClusterLink>(std::vector<Server>{server}, std::make_shared<KeyPlaces>());
    ClusterStore store(std::move(link), "rlock:");
    auto masters = test::finish(*store.list_names(""));
    REQUIRE_MESSAGE(masters, masters.error().text);
    auto page = test::finish(*store.list_names(masters->cursor));
    REQUIRE_FALSE(page);
    CHECK(page.error().text.starts_with("cannot list locks: 127.0.0.1:" +
                                        std::to_string(master.port())));
    CHECK(page.error().text.find("canary") == std::string::npos);
    CHECK(store.cursor_past_server(masters->cursor) == "0 127.0.0.1:1");
    CHECK(store.cursor_past_server("0 127.0.0.1:1").empty());
  }
}

TEST_CASE("MOVED is remembered by the next connection too, and a dead seed is skipped") {
  test::RedisServer real({}, test::Listen::unix_socket_and_tcp);
  FakeServer seed([&](FakeServer::Peer& peer, int) {
    peer.await(kPing);
    peer.send(kNamed + redirection("MOVED", real.port()));
    peer.await_hang_up();
  });
  auto home = std::make_shared<KeyPlaces>();
  // Port 1 is tcpmux, which nobody runs.
  const std::vector<Server> seeds{at_port(1), at_port(seed.port())};
  for (int i = 0; i < 2; ++i) {
    ClusterLink link(seeds, home);
    CHECK(reply_text(call(link, {"PING"})) == "PONG");
    CHECK(reply_text(call(link, {"PING"})) == "PONG");
  }
  CHECK(seed.connections() == 1);
  CHECK(home->find("") == HostPort{"127.0.0.1", real.port()});
}

TEST_CASE("a seed node that answers is kept") {
  test::RedisServer first({}, test::Listen::unix_socket_and_tcp);
  test::RedisServer second({}, test::Listen::unix_socket_and_tcp);
  ClusterLink link = link_to({first.port(), second.port()});
  CHECK(reply_text(call(link, {"SET", "k", "v"})) == "OK");
  CHECK(reply_text(call(link, {"GET", "k"})) == "v");
}
