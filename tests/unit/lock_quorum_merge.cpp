#include <doctest/doctest.h>

#include "lock/quorum/merge.hpp"

#include <cstdint>

namespace rlock::lock {
namespace {

Quorum five() {
  return {{"a:1", "b:1", "c:1", "d:1", "e:1"}};
}

Error down(Retry retry = Retry::later) {
  return {ErrorKind::unavailable, "cannot connect to b:1: refused", retry};
}

}  // namespace

TEST_CASE("a renewal succeeds as soon as a majority has extended the lease, and not before") {
  Replies<RenewReply> replies(5);
  replies[0] = RenewReply(Renewal::extended);
  replies[3] = RenewReply(Renewal::restored);
  CHECK_FALSE(merge_replies(replies, five(), Collecting::open).has_value());
  replies[4] = RenewReply(Renewal::extended);
  auto reply = merge_replies(replies, five(), Collecting::open);
  REQUIRE(reply.has_value());
  CHECK(std::get<Renewal>(**reply) == Renewal::extended);
}

TEST_CASE("a lease is lost when so many servers report it lost that no majority remains") {
  Replies<RenewReply> replies(5);
  replies[0] = RenewReply(Lost{LostHow::expired, {}, {}});
  replies[1] = RenewReply(Lost{LostHow::forced, {}, "by hand"});
  CHECK_FALSE(merge_replies(replies, five(), Collecting::open).has_value());
  replies[2] = RenewReply(Lost{LostHow::expired, {}, {}});
  auto reply = merge_replies(replies, five(), Collecting::open);
  REQUIRE(reply.has_value());
  CHECK(std::get<Lost>(**reply).how == LostHow::forced);
}

TEST_CASE(
    "the lock had no other holder since if a majority of the servers says so, and not before") {
  Lost untouched{LostHow::deleted, {}, {}};
  untouched.later_holder = LaterHolder::nobody;
  Replies<RenewReply> replies(3);
  replies[0] = RenewReply(untouched);
  replies[1] = RenewReply(Lost{LostHow::deleted, {}, {}});
  const Quorum three{{"a:1", "b:1", "c:1"}};
  auto reply = merge_replies(replies, three, Collecting::open);
  REQUIRE(reply.has_value());
  CHECK(std::get<Lost>(**reply).later_holder == LaterHolder::unknown);
  replies[1] = RenewReply(untouched);
  reply = merge_replies(replies, three, Collecting::open);
  CHECK(std::get<Lost>(**reply).later_holder == LaterHolder::nobody);
}

TEST_CASE("a lease was lost with the data of the servers if a majority says so") {
  Lost taken{LostHow::taken, {}, {}};
  taken.data_lost = true;
  Replies<RenewReply> replies(3);
  replies[0] = RenewReply(taken);
  replies[1] = RenewReply(Lost{LostHow::taken, {}, {}});
  const Quorum three{{"a:1", "b:1", "c:1"}};
  auto reply = merge_replies(replies, three, Collecting::open);
  REQUIRE(reply.has_value());
  CHECK_FALSE(std::get<Lost>(**reply).data_lost);
  replies[1] = RenewReply(taken);
  reply = merge_replies(replies, three, Collecting::open);
  CHECK(std::get<Lost>(**reply).data_lost);
}

TEST_CASE("a server that lost its data does not hide how the others know that the owner ended") {
  Replies<ReleaseReply> replies(3);
  replies[0] = replies[1] = ReleaseReply{OwnerEnd::forgotten, {}};
  replies[2] = ReleaseReply{OwnerEnd::expired, {}};
  const Quorum three{{"a:1", "b:1", "c:1"}};
  CHECK((*merge_replies(replies, three, Collecting::closed))->ending == OwnerEnd::expired);
  replies[2] = ReleaseReply{OwnerEnd::forgotten, {}};
  CHECK((*merge_replies(replies, three, Collecting::closed))->ending == OwnerEnd::forgotten);
}

TEST_CASE("force-unlock names every holder that one of the servers broke") {
  auto broke = [](const char* owner) {
    Forced forced;
    forced.broken.push_back({.owner = owner});
    forced.unconfirmed = {owner};
    return Result<ForceReply>(forced);
  };
  const Replies<ForceReply> replies{broke("x"), broke("y"), broke("x"), Result<ForceReply>(down())};
  const Quorum four{{"a:1", "b:1", "c:1", "d:1"}};
  auto reply = merge_replies(replies, four, Collecting::closed);
  REQUIRE(reply.has_value());
  const auto& forced = std::get<Forced>(**reply);
  REQUIRE(forced.broken.size() == 2);
  CHECK(forced.broken[0].owner == "x");
  CHECK(forced.broken[1].owner == "y");
  CHECK(forced.unconfirmed == std::vector<std::string>{"x", "y"});
}

TEST_CASE("the last grant is the one that a majority of the servers knows") {
  auto with = [](uint64_t token) {
    Snapshot snapshot;
    snapshot.last_grant = {token};
    return Result<Snapshot>(snapshot);
  };
  const Quorum three{{"a:1", "b:1", "c:1"}};
  Replies<Snapshot> replies{with(7), with(9), with(7)};
  CHECK((*merge_replies(replies, three, Collecting::closed))->last_grant == Token{7});
  replies[2] = with(8);
  CHECK((*merge_replies(replies, three, Collecting::closed))->last_grant == Token{});
}

TEST_CASE("servers that fail leave the lease unknown, not lost") {
  Replies<RenewReply> replies(5, Result<RenewReply>(down()));
  replies[0] = RenewReply(Lost{LostHow::expired, {}, {}});
  replies[1] = RenewReply(Renewal::extended);
  auto reply = merge_replies(replies, five(), Collecting::closed);
  REQUIRE(reply.has_value());
  REQUIRE_FALSE(*reply);
  CHECK(reply->error().kind == ErrorKind::unavailable);
  CHECK(reply->error().retry == Retry::later);
  CHECK(reply->error().text.find("only 2 of 5 servers") != std::string::npos);
}

TEST_CASE(
    "the error of a split renewal names the servers that refused and those that did not answer") {
  Replies<RenewReply> replies(3);
  replies[0] = RenewReply(Renewal::extended);
  replies[1] = RenewReply(Lost{LostHow::deleted, {}, {}});
  replies[2] =
      Result<RenewReply>(Error{ErrorKind::unavailable, "c:1: no answer in 300ms", Retry::later});
  auto reply = merge_replies(replies, {{"a:1", "b:1", "c:1"}}, Collecting::closed);
  REQUIRE(reply.has_value());
  REQUIRE_FALSE(*reply);
  CHECK(reply->error().kind == ErrorKind::unavailable);
  CHECK(reply->error().retry == Retry::later);
  CHECK(reply->error().text ==
        "only 1 of 3 servers renewed the lease, 2 required: b:1: deleted; c:1: no answer in 300ms");
}

TEST_CASE("a permanent refusal decides only if it prevents a majority") {
  std::vector<std::optional<Error>> errors(5);
  errors[0] = Error{ErrorKind::denied, "a:1 refused us"};
  errors[1] = down();
  errors[2] = down();
  CHECK(too_few_servers(five(), errors).kind == ErrorKind::unavailable);
  errors[1] = errors[2] = Error{ErrorKind::denied, "NOPERM"};
  CHECK(too_few_servers(five(), errors).kind == ErrorKind::denied);
  CHECK(too_few_servers(five(), errors).retry == Retry::never);
}

TEST_CASE("a quorum whose certificates were replaced denies access, but may be asked again") {
  std::vector<std::optional<Error>> errors(5);
  const Error distrust{ErrorKind::denied, "no trusted CA", Retry::later, Answered::no,
                       Cause::certificate_authority};
  errors[0] = errors[1] = distrust;
  errors[2] = down();
  CHECK(too_few_servers(five(), errors).kind == ErrorKind::unavailable);
  errors[2] = distrust;
  const Error all = too_few_servers(five(), errors);
  CHECK(all.kind == ErrorKind::denied);
  CHECK(all.retry == Retry::later);
  CHECK(is_about_tls(all.cause));
}

TEST_CASE("servers that fail for the same reason are listed with it once") {
  std::vector<std::optional<Error>> errors(3);
  errors[0] = Error{ErrorKind::unavailable, "cannot connect to a:1: Connection refused"};
  errors[1] = Error{ErrorKind::unavailable, "b:1: no answer in 300ms"};
  errors[2] = Error{ErrorKind::unavailable, "cannot connect to c:1: Connection refused"};
  CHECK(too_few_servers({{"a:1", "b:1", "c:1"}}, errors).text ==
        "only 0 of 3 servers available, 2 required: a:1, c:1: Connection refused; b:1: no answer "
        "in 300ms");
}

TEST_CASE(
    "a quorum counts as answering when any server answers, even with a refusal (--fail-open)") {
  std::vector<std::optional<Error>> errors(5, down());
  CHECK(too_few_servers(five(), errors).answered == Answered::no);
  errors[3]->answered = Answered::yes;
  CHECK(too_few_servers(five(), errors).answered == Answered::yes);
  errors[3].reset();
  CHECK(too_few_servers(five(), errors).answered == Answered::yes);
}

TEST_CASE("a release is confirmed by a majority") {
  Replies<ReleaseReply> replies(5);
  replies[0] = replies[1] = ReleaseReply{};
  replies[2] = ReleaseReply{OwnerEnd::expired, {}};
  CHECK_FALSE(merge_replies(replies, five(), Collecting::open).has_value());
  replies[3] = ReleaseReply{};
  CHECK((*merge_replies(replies, five(), Collecting::open))->ending == OwnerEnd::released);
}

TEST_CASE("a live run is not released by its id if any server knows it as one") {
  Holder run;
  run.owner = "x";
  Replies<ReleaseReply> replies(3);
  replies[0] = ReleaseReply{OwnerEnd::unknown, {}, {}};
  replies[1] = ReleaseReply{OwnerEnd::unknown, {}, run};
  replies[2] = ReleaseReply{};
  auto reply = merge_replies(replies, {{"a:1", "b:1", "c:1"}}, Collecting::closed);
  REQUIRE((reply && *reply));
  CHECK((*reply)->run.has_value());
}

TEST_CASE("an owner holds the lock if a majority may have its lease") {
  auto with = [](std::vector<std::string> owners) {
    Snapshot snapshot;
    snapshot.known = true;
    for (std::string& owner : owners) {
      Holder holder;
      holder.owner = std::move(owner);
      snapshot.holders.push_back(std::move(holder));
    }
    return Result<Snapshot>(snapshot);
  };
  Replies<Snapshot> replies{with({"x"}), with({"y"}), with({"x"}), with({"x"}), with({})};
  auto all = merge_replies(replies, five(), Collecting::closed);
  REQUIRE((all && *all));
  REQUIRE((*all)->holders.size() == 1);
  CHECK((*all)->holders[0].owner == "x");
  CHECK((*all)->holders[0].servers == 3);
  REQUIRE((*all)->partial.size() == 1);
  CHECK((*all)->partial[0].owner == "y");

  replies[3] = Result<Snapshot>(down());
  all = merge_replies(replies, five(), Collecting::closed);
  CHECK((*all)->holders.size() == 1);
  REQUIRE((*all)->silent.size() == 1);
  CHECK((*all)->silent[0].server == "d:1");
}

TEST_CASE("a holder is shown although one server does not have the majority's token") {
  auto with = [](HolderState state, uint64_t token) {
    Snapshot snapshot;
    Holder holder;
    holder.owner = "x";
    holder.state = state;
    holder.token = {token};
    snapshot.holders.push_back(holder);
    return Result<Snapshot>(snapshot);
  };
  Replies<Snapshot> replies{with(HolderState::granted, 300), with(HolderState::held, 200),
                            with(HolderState::held, 200), with(HolderState::held, 200),
                            with(HolderState::granted, 301)};
  auto all = merge_replies(replies, five(), Collecting::closed);
  REQUIRE((*all)->holders.size() == 1);
  CHECK((*all)->holders[0].state == HolderState::held);
  CHECK((*all)->holders[0].token == Token{200});
}

TEST_CASE("a lease lasts for as long as a majority has it") {
  auto with = [](std::optional<Millis> left) {
    Holder holder;
    holder.owner = "x";
    holder.left = left;
    Snapshot snapshot;
    snapshot.holders.push_back(holder);
    return Result<Snapshot>(snapshot);
  };
  using namespace std::chrono_literals;
  Replies<Snapshot> replies{with(9s), with(2s), with(7s), with(1s), with(8s)};
  CHECK((*merge_replies(replies, five(), Collecting::closed))->holders.at(0).left == 7s);
  replies[3] = with(std::nullopt);  // without an end
  CHECK((*merge_replies(replies, five(), Collecting::closed))->holders.at(0).left == 8s);
  replies[3] = with(1s);
  replies[0] = replies[4] = replies[2] = Result<Snapshot>(Snapshot{});
  CHECK((*merge_replies(replies, five(), Collecting::closed))->partial.at(0).left == 1s);
}

TEST_CASE("waiters come in the order of their tickets, each once") {
  auto with = [](std::vector<std::pair<std::string, uint64_t>> places) {
    Snapshot snapshot;
    for (auto& [owner, ticket] : places) {
      Waiter waiter;
      waiter.owner = owner;
      waiter.ticket = {ticket};
      snapshot.waiters.push_back(waiter);
    }
    return Result<Snapshot>(snapshot);
  };
  Replies<Snapshot> replies{with({{"a", 9}, {"b", 10}}), with({{"b", 10}}), with({{"c", 8}}),
                            with({{"c", 8}, {"a", 9}}), with({})};
  auto all = merge_replies(replies, five(), Collecting::closed);
  REQUIRE((*all)->waiters.size() == 3);
  CHECK((*all)->waiters[0].owner == "c");
  CHECK((*all)->waiters[1].owner == "a");
  CHECK((*all)->waiters[2].owner == "b");
}

TEST_CASE("the number that supersedes others is the greatest that any server knows") {
  Snapshot behind, ahead;
  behind.newest = NewestNumber{56, {}, "ci"};
  ahead.newest = NewestNumber{57, {}, "ci"};
  const Replies<Snapshot> replies{behind, ahead, Snapshot{}};
  const auto all = merge_replies(replies, five(), Collecting::closed);
  REQUIRE((*all)->newest);
  CHECK((*all)->newest->number == 57);
}

TEST_CASE("a run with another token at a slow server is listed once") {
  Run run{{100}, {1000}, {2000}, "released", "exit:0", "me"};
  Run late = run;
  late.token = {90};
  Run other{{50}, {10}, {20}, "released", "exit:0", "you"};
  using History = std::vector<HistoryRow>;
  Replies<History> replies{History{run}, History{late}, History{run, other}, History{}, History{}};
  auto all = merge_replies(replies, five(), Collecting::closed);
  REQUIRE((*all)->size() == 2);
  CHECK(std::get<Run>((**all)[0]).token.value == 100);
}

TEST_CASE("the names of all servers are listed, each server's to its end") {
  Replies<NamesPage> replies(5);
  replies[0] = NamesPage{{"x"}, "17"};
  replies[1] = NamesPage{{"y"}, ""};
  replies[2] = Result<NamesPage>(down());
  replies[3] = replies[4] = NamesPage{};
  auto page = merge_replies(replies, five(), Collecting::closed);
  REQUIRE((page && *page));
  CHECK((*page)->names.size() == 2);
  REQUIRE((*page)->silent.size() == 1);
  CHECK((*page)->silent.front().server == five().servers[2]);
  CHECK(cursor_at((*page)->cursor, 0) == "17");
  CHECK_FALSE(cursor_at((*page)->cursor, 1).has_value());
  CHECK_FALSE(cursor_at((*page)->cursor, 2).has_value());
  CHECK(cursor_at("", 2) == "");
}

}  // namespace rlock::lock
