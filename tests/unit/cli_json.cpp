#include "cli/output/json.hpp"

#include <cstdint>

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "unit/cli_fixture.hpp"

using namespace rlock;
using namespace rlock::cli;
using nlohmann::json;
using test::name;

namespace {

std::vector<LockView> locks() {
  lock::Holder slot = test::holder();
  slot.limit = lock::Limit::slots(3);
  slot.slot = 2;
  lock::Holder revoked = test::holder();
  revoked.state = lock::HolderState::revoked;
  lock::Holder cooling = test::holder();
  cooling.state = lock::HolderState::cooldown;
  cooling.owner = "~" + test::kOwner;
  cooling.ttl = {};
  return {{"nightly", test::snapshot({test::holder()}, 2)},
          {"slots", test::snapshot({slot}, 0)},
          {"broken", test::snapshot({revoked}, 0)},
          {"cron", test::snapshot({cooling}, 0)},
          {"idle", test::snapshot({}, 0)}};
}

bool ascii_line(const std::string& text) {
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] < 0x20 || text[i] > 0x7e) return false;
  }
  return text.ends_with('\n');
}

std::string hostile_event() {
  LoggedEvent event{"acquired", 1};
  event.run.host = "h\x1b";
  event.name = "n\xff";
  event.owner = "o";
  event.token = {5};
  event.detail = "\x1b\n\u2028";
  return event_json(event);
}

}  // namespace

TEST_CASE("status as JSON is exactly as documented") {
  CHECK(status_json(locks()) == test::golden("status.json", status_json(locks())));
  CHECK(status_json({}) == "{\"schema\":1,\"locks\":[]}\n");
}

TEST_CASE("queue as JSON is exactly as documented") {
  auto queue_text = [](const QueueView& queue, const std::optional<QueueChange>& change = {}) {
    return queue_json(name(queue.name.c_str()), {&queue, 1}, change);
  };
  const std::string text =
      queue_text({"nightly", {test::waiter(), test::waiter()}, {Millis(90'000)}});
  CHECK(text == test::golden("queue.json", text));
  const std::vector<QueueView> queues{{"a", {test::waiter()}}, {"b", {test::waiter()}}};
  auto all = json::parse(queue_json({}, queues, {}, 3));
  CHECK(all["name"].is_null());
  CHECK(all["waiters"][1]["name"] == "b");
  CHECK(all["waiters"][1]["position"] == 1);
  CHECK(all["waiters"][1].contains("servers"));
  auto removed = json::parse(queue_text({"x", {}}, QueueChange{"removed", test::kOther}));
  CHECK(removed["removed"] == test::kOther);
  auto absent = json::parse(queue_text({"x", {}}, QueueChange{"removed", {}}));
  CHECK(absent["removed"].is_null());
}

TEST_CASE("a version as JSON has its commit if that is known") {
  CHECK(version_json("1.2.3", "", 1) ==
        "{\"schema\":1,\"version\":\"1.2.3\",\"commit\":null,\"stored_form\":1}\n");
  CHECK(json::parse(version_json("1.2.3", "abc", 1))["commit"] == "abc");
}

TEST_CASE("an error as JSON carries code, kind and message") {
  auto error = [](ErrorKind kind) { return json::parse(error_json({kind, "why"}, {}))["error"]; };
  CHECK(error(ErrorKind::usage) == json{{"code", 64}, {"kind", "usage"}, {"message", "why"}});
  CHECK(error(ErrorKind::wrong_type) ==
        json{{"code", 65}, {"kind", "refused"}, {"message", "why"}});
  CHECK(error(ErrorKind::unavailable)["kind"] == "unreachable");
  CHECK(error(ErrorKind::unavailable)["code"] == 69);
  CHECK(error(ErrorKind::internal)["code"] == 70);
  CHECK(error(ErrorKind::system) == json{{"code", 71}, {"kind", "internal"}, {"message", "why"}});
  CHECK(error(ErrorKind::busy) == json{{"code", 75}, {"kind", "busy"}, {"message", "why"}});
  CHECK(error(ErrorKind::lost) == json{{"code", 76}, {"kind", "lost"}, {"message", "why"}});
  CHECK(error(ErrorKind::denied)["code"] == 77);
  CHECK(error(ErrorKind::config) == json{{"code", 78}, {"kind", "usage"}, {"message", "why"}});
  const auto about = json::parse(error_json({ErrorKind::busy, "why"}, {"x", "o"}))["error"];
  CHECK(about["name"] == "x");
  CHECK(about["owner"] == "o");
}

TEST_CASE("JSON is one valid ASCII line whatever a server sent") {
  lock::Waiter waiter = test::waiter();
  waiter.owner = "\xff\x1b";
  waiter.record = test::hostile_holder().record;
  const Error error{ErrorKind::wrong_type, "-ERR \xff\x1b[31m\u202e"};
  std::vector<LockView> views{{"a\xff\u202e", test::snapshot({test::hostile_holder()}, 0)},
                              {"b", error}};
  const Change change{ChangeKind::changed, "a\x1b", {"state"}, views.front()};
  const lock::Run run{{1}, {-1}, {INT64_MAX}, "\x1b[31m", "\xff", waiter.record, "\x1b{\xff"};
  for (const std::string& text :
       {change_json(change, {1}), server_change_json("\xff", error, {1}),
        history_json({}, to_history("\x1b", {run}, 20)), status_json(views),
        queue_json({}, std::vector<QueueView>{{"x", {waiter}}}),
        force_unlock_json(name("x"), {{test::hostile_holder()}, {}, "\x1b\xff"}),
        error_json(error, {"x\x7f"}), hostile_event()}) {
    CAPTURE(text);
    CHECK(ascii_line(text));
    CHECK_FALSE(json::parse(text, nullptr, false).is_discarded());
  }
  auto holder = json::parse(status_json(views))["locks"][0]["holders"][0];
  CHECK(holder["token"].is_null());
  CHECK(holder["since"].is_null());
  CHECK(holder["pid"].is_null());
}
