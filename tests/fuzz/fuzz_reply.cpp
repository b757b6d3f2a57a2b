// What a server answers: the first byte is the size of the pieces that come in, the rest are
// replies. Each is read as the answer to every request, and shown in every way.
#include <algorithm>
#include <cstdint>

#include "cli/output/json.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/output/render.hpp"
#include "cli/output/view.hpp"
#include "cli/run_observer.hpp"
#include "fuzz/property.hpp"
#include "redis/link/reply.hpp"
#include "redis/store/decode.hpp"
#include "util/text.hpp"

using namespace rlock;
using fuzz::require;

namespace {

constexpr size_t kWidth = 80;

lock::LockName some_name() {
  return *lock::LockName::parse("nightly");
}

void check_human_text(const std::string& text) {
  require(fuzz::harmless(text), "what people see is harmless");
}

void check_lines(const std::string& text) {
  check_human_text(text);
  for (size_t start = 0; start < text.size();) {
    size_t end = std::min(text.find('\n', start), text.size());
    require(util::display_width(text.substr(start, end - start)) <= kWidth,
            "a line keeps its width");
    start = end + 1;
  }
}

void check_json(const std::string& text) {
  require(fuzz::is_json_line(text), "--json is a line of JSON");
}

void check_obstacle(const std::optional<lock::Obstacle>& obstacle) {
  std::string phrase = cli::obstacle_phrase(obstacle);
  check_human_text(phrase);
  require(util::display_width(phrase) < 1000, "the text about a holder is short");
}

void show_acquire(const redisReply& reply) {
  auto answer = redis::decode_acquire(reply, {true, true});
  if (!answer) return;
  if (const auto* queued = std::get_if<lock::Queued>(&*answer)) {
    check_human_text(cli::waiting_text(some_name(), *queued, Millis(1)));
    check_obstacle(queued->obstacle);
  }
  if (const auto* busy = lock::refusal_in<lock::Busy>(*answer)) check_obstacle(busy->obstacle);
  if (const auto* gone = lock::refusal_in<lock::OwnerEnded>(*answer))
    check_human_text(cli::note_text(gone->note));
}

void show_ends(const redisReply& reply) {
  auto renewed = redis::decode_renew(reply, "self");
  if (renewed && std::holds_alternative<lock::Lost>(*renewed)) {
    check_human_text(cli::lost_phrase(std::get<lock::Lost>(*renewed)));
  }
  if (auto released = redis::decode_release(reply))
    check_human_text(cli::note_text(released->note));
  (void)redis::decode_cancel(reply);
  (void)redis::decode_wake(reply);
  (void)redis::decode_closure(reply);
  (void)redis::decode_heartbeat(reply);
  auto forced = redis::decode_force(reply);
  if (forced && std::holds_alternative<lock::Forced>(*forced)) {
    check_json(cli::force_unlock_json(some_name(), std::get<lock::Forced>(*forced)));
  }
}

void show_snapshot(const redisReply& reply) {
  auto snapshot = redis::decode_snapshot(reply);
  if (!snapshot) return;
  const cli::QueueView queue{"x", snapshot->waiters};
  check_lines(cli::queue_table({&queue, 1}, cli::NameColumn::hidden, kWidth));
  check_json(cli::queue_json({}, {&queue, 1}));
  std::vector<cli::LockView> locks;
  locks.push_back({"nightly", *std::move(snapshot)});
  check_lines(cli::status_table(locks, kWidth));
  check_human_text(cli::lock_details(locks.front(), kWidth));
  check_json(cli::status_json(locks));
}

void show_lists(const redisReply& reply) {
  if (auto rows = redis::decode_history(reply)) {
    auto history = cli::to_history("nightly", *rows, 20);
    check_lines(cli::history_table(history, cli::NameColumn::shown, kWidth));
    check_json(cli::history_json(some_name(), history));
  }
  if (auto page = redis::decode_names(reply, "rlock:")) {
    for (const std::string& name : page->names) check_human_text(cli::in_quotes(name));
  }
}

void show(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_ERROR) {
    Error error = redis::decode_error({reply.str, static_cast<size_t>(reply.len)});
    check_human_text(util::printable(error.text));
    require(error.text.size() < 1000, "the text of an error is short");
    check_json(cli::error_json(error, {"nightly"}));
  }
  show_acquire(reply);
  show_ends(reply);
  show_snapshot(reply);
  show_lists(reply);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = data[0] + size_t{1};
  redis::ReplyReader reader;
  for (size_t at = 1; at < size; at += piece) {
    reader.feed(reinterpret_cast<const char*>(data) + at, std::min(piece, size - at));
    while (true) {
      auto reply = reader.next();
      if (!reply) {
        check_human_text(util::printable(reply.error().text));
        return 0;
      }
      if (*reply == nullptr) break;
      show(**reply);
    }
  }
  return 0;
}
