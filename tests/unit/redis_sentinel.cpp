// The vote of scripted sentinels; tests/topology has real ones.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <utility>

#include "redis/link/sentinel.hpp"
#include "redis_call.hpp"
#include "support/fake_server.hpp"
#include "support/waiting.hpp"

using namespace rlock;
using redis::HostPort;
using redis::SentinelLink;
using redis::Sentinels;
using test::at_port;
using test::call;
using test::FakeServer;
using test::RedisServer;
using test::reply_text;

namespace {

// To CLIENT SETNAME, SENTINEL MYID and SENTINEL SENTINELS: one that says nothing of the others.
const std::string kNoView = "-ERR unknown\r\n-ERR unknown\r\n";
const std::string kNameSet = "+OK\r\n";
const std::string kQuestion = "GET-MASTER-ADDR-BY-NAME\r\n$1\r\nm\r\n";

std::string address(int port) {
  std::string digits = std::to_string(port);
  return "*2\r\n$9\r\n127.0.0.1\r\n$" + std::to_string(digits.size()) + "\r\n" + digits + "\r\n";
}

// A sentinel that always gives the same answer; none if that is empty.
FakeServer::Script that_says(const std::string& opinion) {
  return [opinion](FakeServer::Peer& peer, int) {
    peer.await(kQuestion);
    if (!opinion.empty()) peer.send(kNameSet + kNoView + opinion);
    peer.await_hang_up();
  };
}

// 0 stands for a dead sentinel.
Sentinels asked(const std::vector<int>& ports, Millis connect_timeout = Millis(10'000)) {
  std::vector<redis::Server> servers;
  // Port 1 is tcpmux, which nobody runs.
  for (int port : ports) servers.push_back(at_port(port == 0 ? 1 : port, connect_timeout));
  return {servers, "m"};
}

Result<HostPort> vote(const std::vector<int>& ports, Millis connect_timeout = Millis(10'000)) {
  Sentinels sentinels = asked(ports, connect_timeout);
  sentinels.start();
  return test::finish(sentinels);
}

const HostPort kOld{"127.0.0.1", 7001};
const HostPort kNew{"127.0.0.1", 7002};

}  // namespace

TEST_CASE("the master is the server that most of the configured sentinels name") {
  FakeServer old1(that_says(address(kOld.port)));
  FakeServer new1(that_says(address(kNew.port)));
  FakeServer new2(that_says(address(kNew.port)));
  FakeServer silent1(that_says(""));
  FakeServer ignorant(that_says("*-1\r\n"));
  auto elects = [](const std::vector<int>& ports, const HostPort& master) {
    auto elected = vote(ports);
    return elected && *elected == master;
  };
  SUBCASE("only one sentinel") {
    CHECK(elects({old1.port()}, kOld));
  }
  SUBCASE("one sentinel is outdated") {
    CHECK(elects({old1.port(), new1.port(), new2.port()}, kNew));
  }
  SUBCASE("a silent sentinel is not waited for") {
    // Longer than finish() waits.
    auto elected = vote({silent1.port(), new1.port(), new2.port()}, std::chrono::hours(1));
    CHECK((elected && *elected == kNew));
  }
  SUBCASE("one sentinel is dead") {
    CHECK(elects({0, new1.port(), new2.port()}, kNew));
  }
  SUBCASE("a sentinel that knows nothing does not count") {
    CHECK(elects({ignorant.port(), new1.port()}, kNew));
    CHECK_FALSE(vote({0, new1.port(), ignorant.port()}));
  }
  SUBCASE("sentinels disagree") {
    CHECK_FALSE(vote({old1.port(), new1.port()}));
  }
}

namespace {

std::string bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

// A sentinel with this id that knows others, by id and port, and names a master.
FakeServer::Script that_knows(const std::string& id,
                              const std::vector<std::pair<std::string, int>>& others,
                              const std::string& opinion, const std::string& silent = "7200000") {
  std::string list = "*" + std::to_string(others.size()) + "\r\n";
  for (const auto& [its_id, port] : others) {
    list += "*8\r\n" + bulk("ip") + bulk("127.0.0.1") + bulk("port") + bulk(std::to_string(port)) +
            bulk("runid") + bulk(its_id) + bulk("last-ok-ping-reply") + bulk(silent);
  }
  return [=](FakeServer::Peer& peer, int) {
    peer.await(kQuestion);
    peer.send(kNameSet + bulk(id) + list + opinion);
    peer.await_hang_up();
  };
}

}  // namespace

TEST_CASE("a majority is counted over the sentinels that exist, not over those that are named") {
  const std::string old = address(kOld.port);
  FakeServer third(that_knows("c", {{"a", 1}, {"b", 2}}, old));
  FakeServer second(that_knows("b", {{"a", 1}, {"c", third.port()}}, old));
  SUBCASE("a single sentinel cut off from the others decides nothing") {
    FakeServer alone(that_knows("a", {{"b", 1}, {"c", 2}}, old));
    auto elected = vote({alone.port()}, Millis(1'000));
    REQUIRE_FALSE(elected);
    CHECK(elected.error().cause == Cause::missing_sentinels);
    CHECK(elected.error().text.find("127.0.0.1:1 (last answered 2h ago)") != std::string::npos);
    CHECK(elected.error().text.find("SENTINEL RESET m") != std::string::npos);
  }
  SUBCASE("a time that is too long to be true stays a long time") {
    FakeServer alone(that_knows("a", {{"b", 1}, {"c", 2}}, old, "9223372036854775807"));
    auto elected = vote({alone.port()}, Millis(1'000));
    REQUIRE_FALSE(elected);
    CHECK(elected.error().text.find("(last answered 104249991d") != std::string::npos);
  }
  SUBCASE("a named sentinel leads to the others") {
    FakeServer first(that_knows("a", {{"b", second.port()}, {"c", third.port()}}, old));
    auto elected = vote({first.port()});
    CHECK((elected && *elected == kOld));
  }
  SUBCASE("a sentinel with two names counts once") {
    FakeServer once(that_knows("d", {{"a", 1}, {"c", 2}}, old));
    FakeServer again(that_knows("d", {{"a", 1}, {"c", 2}}, old));
    CHECK_FALSE(vote({once.port(), again.port()}, Millis(1'000)));
  }
  SUBCASE("a sentinel at another address than it announces counts once") {
    FakeServer behind_nat(that_knows("a", {{"b", 1}, {"c", 2}}, old));
    auto elected = vote({behind_nat.port(), second.port()}, Millis(1'000));
    CHECK((elected && *elected == kOld));
  }
}

TEST_CASE("half of the shortest connect timeout is enough to ask") {
  FakeServer silent(that_says(""));
  Sentinels sentinels = asked({silent.port()}, Millis(1));
  sentinels.start();
  CHECK_FALSE(sentinels.advance(BootClock::now()));
}

TEST_CASE("a sentinel cut off together with a deposed master does not decide") {
  FakeServer old(that_says(address(kOld.port)));
  FakeServer silent(that_says(""));
  FakeServer resets([](FakeServer::Peer& peer, int) { peer.await(kQuestion); });
  FakeServer refuses(that_says("-NOAUTH Authentication required.\r\n"));
  FakeServer other(that_says(":7\r\n"));
  FakeServer none([](FakeServer::Peer& peer, int) { peer.send("SSH-2.0-x\r\n"); });
  const int unheard[] = {silent.port(), resets.port(), other.port(), none.port(), 0};
  for (int one : unheard) {
    auto elected = vote({old.port(), one, 0}, Millis(1'000));
    REQUIRE_FALSE(elected);
    CHECK(elected.error().kind == ErrorKind::unavailable);
    CHECK(elected.error().retry == Retry::later);
    CHECK(elected.error().text.find("no majority") != std::string::npos);
  }
  // It could name another master, were the password right.
  CHECK_FALSE(vote({old.port(), refuses.port()}));
}

TEST_CASE("a sentinel whose name does not resolve counts as a vote against") {
  FakeServer old(that_says(address(kOld.port)));
  redis::Server nameless = at_port(1, Millis(1'000));
  nameless.host = "s2.invalid";
  Sentinels sentinels({at_port(old.port(), Millis(1'000)), nameless}, "m");
  sentinels.start();
  CHECK_FALSE(test::finish(sentinels));
}

TEST_CASE(
    "sentinels without such a master are reported as such, and a sentinel that refuses rlock as a "
    "denial") {
  FakeServer ignorant(that_says("*-1\r\n"));
  FakeServer strict(that_says("-NOPERM no permissions\r\n"));
  auto none = vote({ignorant.port()});
  REQUIRE_FALSE(none);
  CHECK(none.error().text.find("does not know a master \"m\"") != std::string::npos);
  auto denied = vote({ignorant.port(), strict.port()});
  REQUIRE_FALSE(denied);
  CHECK(denied.error().kind == ErrorKind::denied);
}

TEST_CASE("an error from a sentinel is shown without the password that it quotes") {
  FakeServer sentinel([](FakeServer::Peer& peer, int) {
    peer.await("rlock\r\n");
    peer.send("+OK\r\n" + kNameSet);
    peer.await(kQuestion);
    peer.send(kNoView + "-ERR you said canary\r\n");
    peer.await_hang_up();
  });
  redis::Server server = at_port(sentinel.port());
  server.password = "canary";
  Sentinels sentinels({server}, "m");
  sentinels.start();
  auto none = test::finish(sentinels);
  REQUIRE_FALSE(none);
  CHECK(none.error().text.find("ERR, and a text that contains the password") != std::string::npos);
  CHECK(none.error().text.find("canary") == std::string::npos);
}

TEST_CASE("hostile answers of a sentinel are no address") {
  for (const char* opinion :
       {"*2\r\n$0\r\n\r\n$4\r\n7001\r\n", "*2\r\n$1\r\nh\r\n$2\r\n-1\r\n", "*2\r\n:1\r\n:2\r\n",
        "*1\r\n$1\r\nh\r\n", ":7\r\n", "*2\r\n$1\r\nh\r\n$5\r\n99999\r\n"}) {
    FakeServer sentinel(that_says(opinion));
    CHECK_FALSE(vote({sentinel.port()}));
  }
}

TEST_CASE("a late reply is believed only if the sentinels still name the server that gave it") {
  FakeServer master([](FakeServer::Peer& peer, int) {
    peer.await("ROLE\r\n");
    peer.send("*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n" + kNameSet);
    peer.await("late\r\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    peer.send("+granted\r\n");
    peer.await_hang_up();
  });
  auto ask = [&](const std::string& second_opinion) {
    FakeServer sentinel([&](FakeServer::Peer& peer, int) {
      peer.next(kQuestion);
      peer.send(kNameSet + kNoView + address(master.port()));
      peer.next(kQuestion);
      peer.send(kNoView + second_opinion);
      peer.await_hang_up();
    });
    SentinelLink link(asked({sentinel.port()}), at_port(0));
    auto reply = call(link, {"GET", "late"});
    CHECK(link.may_have_arrived());
    return reply_text(reply);
  };
  CHECK(ask(address(master.port())) == "granted");
  CHECK(ask(address(kNew.port)).find("replaced") != std::string::npos);
  CHECK(ask("*-1\r\n").find("no majority") != std::string::npos);
}

TEST_CASE("a server that the sentinels name but that is a replica is refused by its ROLE") {
  RedisServer real({"--replicaof", "127.0.0.1", "1"}, test::Listen::unix_socket_and_tcp);
  FakeServer sentinel(that_says(address(real.port())));
  SentinelLink link(asked({sentinel.port()}), at_port(0));
  auto reply = call(link, {"GET", "k"});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().retry == Retry::later);
  CHECK(reply.error().text.find("replica") != std::string::npos);
}

namespace {

// The reply to SENTINEL MASTER, of all fields those that count.
std::string state(const HostPort& master, const std::string& flags, int epoch) {
  auto text = [](const std::string& word) {
    return "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  };
  return "*10\r\n" + text("name") + text("m") + text("ip") + text(master.host) + text("port") +
         text(std::to_string(master.port)) + text("flags") + text(flags) + text("config-epoch") +
         text(std::to_string(epoch));
}

const std::string kCalm = "master";
const std::string kFailingOver = "master,failover_in_progress,force_failover";

// A sentinel that names `master`, and describes `described` (the same, but while it fails over).
FakeServer::Script that_describes(const HostPort& master, const std::string& flags, int epoch,
                                  const HostPort& described) {
  return that_says(state(described, flags, epoch) + address(master.port));
}
FakeServer::Script that_describes(const HostPort& master, const std::string& flags, int epoch) {
  return that_describes(master, flags, epoch, master);
}

// Of a lease that does not limit it.
constexpr Millis kLongestCheck{1500};

Status outlasts(const std::vector<int>& ports, const HostPort& master) {
  Sentinels sentinels = asked(ports);
  sentinels.start_failover_check(kLongestCheck);
  struct Check {
    Sentinels& sentinels;
    const HostPort& master;
    void wants(std::vector<pollfd>& out) const { sentinels.wants(out); }
    TimePoint due() const { return sentinels.due(); }
    bool advance(TimePoint now) { return sentinels.advance(now); }
    Status take() { return sentinels.take_failover(master); }
  } check{sentinels, master};
  return test::finish(check);
}

std::string why_not(const std::vector<int>& ports, const HostPort& master) {
  auto status = outlasts(ports, master);
  if (status) return "";
  CHECK(status.error().kind == ErrorKind::unavailable);
  CHECK(status.error().retry == Retry::later);
  return status.error().text;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("an acknowledged write counts if no sentinel fails over or knows a later master") {
  FakeServer old1(that_describes(kOld, kCalm, 4));
  FakeServer old2(that_describes(kOld, kCalm, 4));
  FakeServer leader(that_describes(kOld, kFailingOver, 4));
  FakeServer promoted(that_describes(kNew, kFailingOver, 5, kOld));
  FakeServer new1(that_describes(kNew, kCalm, 5));
  FakeServer new2(that_describes(kNew, kCalm, 5));
  FakeServer silent(that_says(""));
  FakeServer ignorant(that_says("-ERR No such master with that name\r\n*-1\r\n"));
  SUBCASE("all agree, or one is silent, dead or knows nothing") {
    for (int third : {old2.port(), silent.port(), 0}) {
      FakeServer fresh(that_describes(kOld, kCalm, 4));
      FakeServer another(that_describes(kOld, kCalm, 4));
      CHECK(why_not({fresh.port(), another.port(), third}, kOld).empty());
    }
    CHECK(why_not({old1.port(), ignorant.port()}, kOld).empty());
  }
  SUBCASE("one sentinel fails over") {
    CHECK(contains(why_not({old1.port(), old2.port(), leader.port()}, kOld), "is in progress"));
  }
  SUBCASE("one sentinel has promoted a replica, and the others do not know it yet") {
    CHECK(contains(why_not({old1.port(), old2.port(), promoted.port()}, kOld), "and not"));
  }
  SUBCASE("the failover is over for one sentinel") {
    CHECK(contains(why_not({old1.port(), old2.port(), new1.port()}, kOld), "and not"));
  }
  SUBCASE("the new master stays while other replicas do not follow it yet, and one is behind") {
    CHECK(why_not({promoted.port(), new1.port(), old1.port()}, kNew).empty());
  }
  SUBCASE("most name another master") {
    CHECK(contains(why_not({new1.port(), new2.port(), old1.port()}, kOld), "and not"));
  }
  SUBCASE("too few answer") {
    CHECK(contains(why_not({old1.port(), 0, 0}, kOld), "no majority"));
  }
  SUBCASE("sentinels that name another master since the same failover are not outdated") {
    FakeServer other(that_describes(kNew, kCalm, 4));
    CHECK(contains(why_not({old1.port(), old2.port(), other.port()}, kOld), "and not"));
  }
}

namespace {

// Sentinels at a moment that the test chooses.
struct TimedSentinels {
  Sentinels sentinels;
  TimePoint now = BootClock::now();

  // Drives them until all but `silent` of them have answered. Returns whether the question is over.
  bool answer_but(size_t silent) {
    const TimePoint until = BootClock::now() + test::kLimit;
    while (!sentinels.advance(now)) {
      std::vector<pollfd> fds;
      sentinels.wants(fds);
      if (fds.size() <= silent) return false;
      REQUIRE(BootClock::now() < until);
      poll(fds.data(), fds.size(), 10);
    }
    return true;
  }
  // Waits until the only sentinel that has not answered sends something, and reads it.
  bool read_next() {
    std::vector<pollfd> fds;
    sentinels.wants(fds);
    REQUIRE(fds.size() == 1);
    REQUIRE(poll(fds.data(), 1, static_cast<int>(test::kLimit.count())) == 1);
    return sentinels.advance(now);
  }
  // Whether the question is over after so long, and not a millisecond before.
  bool ends_after(Millis time) {
    const bool early = sentinels.advance(now + time - Millis(1));
    return !early && sentinels.advance(now + time);
  }
};

const std::string kCalmAnswer = state(kOld, kCalm, 4) + address(kOld.port);
const std::string kFailingAnswer = state(kOld, kFailingOver, 4) + address(kOld.port);

// A sentinel that gives these answers to its questions, the last of them for ever.
FakeServer::Script that_answers(std::vector<std::string> answers) {
  return [answers = std::move(answers)](FakeServer::Peer& peer, int) {
    std::string greeting = kNameSet;
    for (size_t i = 0; peer.next(kQuestion); i = std::min(i + 1, answers.size() - 1)) {
      peer.send(std::exchange(greeting, "") + kNoView + answers[i]);
    }
  };
}

}  // namespace

TEST_CASE("a leader that has not answered yet gets the second question behind the first") {
  const std::vector<std::string> answers{address(kOld.port), kCalmAnswer};
  FakeServer old1(that_answers(answers));
  FakeServer old2(that_answers(answers));
  SUBCASE("that it has received") {
    FakeServer leader([](FakeServer::Peer& peer, int) {
      if (peer.next(kQuestion) && peer.next(kQuestion)) {
        peer.send(kNameSet + kNoView + address(kOld.port) + kNoView + kFailingAnswer);
      }
      peer.await_hang_up();
    });
    TimedSentinels timed{asked({old1.port(), old2.port(), leader.port()})};
    timed.sentinels.start();
    CHECK(timed.answer_but(1));
    timed.sentinels.start_failover_check(kLongestCheck);
    CHECK(timed.answer_but(0));
    CHECK_FALSE(timed.sentinels.take_failover(kOld));
    CHECK(leader.connections() == 1);
  }
  SUBCASE("that waits for its login") {
    std::atomic<bool> open = false;
    FakeServer leader([&](FakeServer::Peer& peer, int) {
      peer.await("rlock\r\n");
      test::eventually([&] { return open.load(); }, test::kLimit);
      peer.send("+OK\r\n" + kNameSet);
      peer.await(kQuestion);
      peer.send(kNoView + kFailingAnswer);
      peer.await_hang_up();
    });
    redis::Server strict = at_port(leader.port());
    strict.password = "canary";
    TimedSentinels timed{Sentinels({at_port(old1.port()), at_port(old2.port()), strict}, "m")};
    timed.sentinels.start();
    CHECK(timed.answer_but(1));
    timed.sentinels.start_failover_check(kLongestCheck);
    open = true;
    CHECK(timed.answer_but(0));
    CHECK_FALSE(timed.sentinels.take_failover(kOld));
    CHECK(leader.connections() == 1);
  }
}

TEST_CASE("a check for a failover waits for a sentinel that has not answered anything") {
  FakeServer old1(that_answers({kCalmAnswer}));
  FakeServer old2(that_answers({kCalmAnswer}));
  FakeServer silent(that_says(""));
  const std::vector<int> ports{old1.port(), old2.port(), silent.port()};
  SUBCASE("for 400 ms") {
    TimedSentinels timed{asked(ports)};
    timed.sentinels.start_failover_check(kLongestCheck);
    REQUIRE_FALSE(timed.answer_but(1));
    CHECK(timed.ends_after(Millis(400)));
    CHECK(timed.sentinels.take_failover(kOld));
  }
  SUBCASE("for less if the lease is short") {
    TimedSentinels timed{asked(ports)};
    timed.sentinels.start_failover_check(Millis(166));
    REQUIRE_FALSE(timed.answer_but(1));
    CHECK(timed.ends_after(Millis(166)));
  }
  SUBCASE("for less if the connect timeout is short") {
    TimedSentinels timed{asked(ports, Millis(500))};
    timed.sentinels.start_failover_check(kLongestCheck);
    REQUIRE_FALSE(timed.answer_but(1));
    CHECK(timed.ends_after(Millis(250)));
  }
  SUBCASE("for no longer if the connect timeout is long") {
    TimedSentinels timed{asked(ports, std::chrono::minutes(5))};
    timed.sentinels.start_failover_check(kLongestCheck);
    REQUIRE_FALSE(timed.answer_but(1));
    CHECK(timed.ends_after(Millis(400)));
  }
  SUBCASE("only once") {
    TimedSentinels timed{asked(ports)};
    timed.sentinels.start_failover_check(kLongestCheck);
    REQUIRE_FALSE(timed.answer_but(1));
    REQUIRE(timed.ends_after(Millis(400)));
    timed.sentinels.start_failover_check(kLongestCheck);
    CHECK(timed.answer_but(1));
    CHECK(timed.sentinels.take_failover(kOld));
  }
  SUBCASE("as long again after each step towards an answer") {
    const std::vector<std::string> answers{address(kOld.port), kCalmAnswer};
    FakeServer calm1(that_answers(answers));
    FakeServer calm2(that_answers(answers));
    std::atomic<bool> open = false;
    FakeServer slow([&](FakeServer::Peer& peer, int) {
      peer.await(kQuestion);
      test::eventually([&] { return open.load(); }, test::kLimit);
      peer.send(kNameSet);
      peer.await_hang_up();
    });
    TimedSentinels timed{asked({calm1.port(), calm2.port(), slow.port()})};
    timed.sentinels.start();
    CHECK(timed.answer_but(1));
    timed.sentinels.start_failover_check(kLongestCheck);
    REQUIRE_FALSE(timed.answer_but(1));
    timed.now += Millis(300);
    open = true;
    REQUIRE_FALSE(timed.read_next());
    CHECK(timed.ends_after(Millis(400)));
  }
}

TEST_CASE("a check for a failover waits by the time of the last answer of a sentinel") {
  FakeServer old1(that_answers({kCalmAnswer}));
  FakeServer old2(that_answers({kCalmAnswer}));
  // Whether it is waited for so long after it gave this answer in that time.
  auto waits = [&](Millis expected, const std::string& answer, Millis takes) {
    std::atomic<bool> open = false;
    FakeServer once([&](FakeServer::Peer& peer, int) {
      peer.next(kQuestion);
      test::eventually([&] { return open.load(); }, test::kLimit);
      peer.send(kNameSet + kNoView + answer);
      peer.await_hang_up();
    });
    TimedSentinels timed{asked({old1.port(), old2.port(), once.port()})};
    timed.sentinels.start_failover_check(kLongestCheck);
    CHECK_FALSE(timed.answer_but(1));
    timed.now += takes;
    open = true;
    CHECK(timed.answer_but(0));
    timed.sentinels.start_failover_check(kLongestCheck);
    REQUIRE_FALSE(timed.answer_but(1));
    return timed.ends_after(expected);
  };
  SUBCASE("at least 100 ms") {
    CHECK(waits(Millis(100), kCalmAnswer, Millis(10)));
  }
  SUBCASE("four times as long") {
    CHECK(waits(Millis(240), kCalmAnswer, Millis(60)));
  }
  SUBCASE("as long as the lease allows if it failed over") {
    CHECK(waits(kLongestCheck, kFailingAnswer, Millis(10)));
  }
}

TEST_CASE("a sentinel that may not be asked for its state is named, and what to allow") {
  FakeServer strict(
      that_says("-NOPERM this user has no permissions to run the 'sentinel|master' "
                "command\r\n" +
                address(kOld.port)));
  auto status = outlasts({strict.port()}, kOld);
  REQUIRE_FALSE(status);
  CHECK(status.error().kind == ErrorKind::denied);
  CHECK(contains(status.error().text, "sentinel|master"));
}

TEST_CASE("a sentinel that does not say whether it fails over counts as a vote against") {
  for (const char* hostile :
       {"*1\r\n$5\r\nflags\r\n", "*0\r\n", ":7\r\n", "*-1\r\n",
        "*2\r\n$12\r\nconfig-epoch\r\n$2\r\n-1\r\n", "*2\r\n$5\r\nflags\r\n:7\r\n"}) {
    FakeServer sentinel(that_says(hostile + address(kOld.port)));
    CHECK(contains(why_not({sentinel.port()}, kOld), "does not describe"));
  }
}
