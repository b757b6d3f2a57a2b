#include "model/server.hpp"

#include <cmath>
#include <cstdint>
#include <sstream>
#include <stdexcept>

#include "util/text.hpp"

namespace rlock::model {
namespace {

// Between two scripts at the same moment; more than the numbers that one script issues.
constexpr int64_t kMicrosBetween = 10;

const std::string kBase = "rlock:{job}:";
const std::string kWake = kBase + "wake:";

// ---- what a script left; times become the model's, numbers issued stay as they are ----

std::vector<Row> rows_of(fake::Database& keys, const std::string& part, int64_t shift) {
  std::vector<Row> rows;
  const auto* set = keys.get<fake::SortedSet>(kBase + part);
  if (set == nullptr) return rows;
  for (const auto& [score, member] : set->rows()) {
    const double whole = std::floor(score);
    rows.push_back(
        {member, static_cast<int64_t>(whole) - shift, static_cast<int64_t>((score - whole) * 4)});
  }
  return rows;
}

std::map<std::string, std::string> fields_of(fake::Database& keys, const std::string& part) {
  const auto* hash = keys.get<fake::Hash>(kBase + part);
  if (hash == nullptr) return {};
  return {hash->begin(), hash->end()};
}

// `1 owner limit token since ttl responsive end more| record`: a folded hold is checked like the
// same hold unfolded.
void unfold(const std::string& text, Memory& memory) {
  std::string version, owner, token, since, ttl, responsive, more, record;
  int64_t limit = 0, end = 0;
  std::istringstream words(text);
  words >> version >> owner >> limit >> token >> since >> ttl >> responsive >> end;
  std::getline(words, more, '|');
  std::getline(words, record);
  memory.holders = {{owner, end - kEpochMs}};
  memory.limits = {{owner, limit}};
  memory.who = {{owner, record},
                {"+" + owner, util::format("1 held {} {} {} {} 0 {}{}", limit, token, since, ttl,
                                           responsive, more)},
                {"@" + owner, util::format("0={}", end)}};
}

// `0=END` of each `@owner`: nothing is nested in the model.
void shift_entries(std::map<std::string, std::string>& who) {
  for (auto& [field, value] : who) {
    if (field.front() == '@') value = std::to_string(std::stoll(value.substr(2)) - kEpochMs);
  }
}

void set_closure_apart(Memory& memory) {
  const std::string closure = "~closed";
  const Row* row = find(memory.holders, closure);
  if (row == nullptr) return;
  memory.closed_until = row->score;
  std::string words;
  std::istringstream line(memory.who["+" + closure]);
  while (line >> words) {
    if (words.starts_with("id=")) memory.closure = words.substr(3);
  }
  for (auto* rows : {&memory.holders, &memory.limits}) {
    std::erase_if(*rows, [&](const Row& one) { return one.member == closure; });
  }
  std::erase_if(memory.who, [&](const auto& field) { return field.first.ends_with(closure); });
}

// `1 last grant exclusive created …`
std::map<std::string, int64_t> meta_of(const std::string& text) {
  std::map<std::string, int64_t> meta;
  std::istringstream words(text.substr(2));
  for (const char* field : {"last", "grant", "exclusive", "created"}) words >> meta[field];
  const size_t at = text.find(" forgotten=");
  meta["forgotten"] = at == std::string::npos ? 0 : std::stoll(text.substr(at + 11));
  return meta;
}

// `1 kept token asked granted ended failures failed record`
Mark mark_of(const std::string& text) {
  auto time = [](int64_t stored) { return stored == 0 ? 0 : stored - kEpochMs; };
  int64_t version = 0, kept = 0, asked = 0, granted = 0, ended = 0, failed = 0;
  Mark mark;
  std::istringstream(text) >> version >> kept >> mark.token >> asked >> granted >> ended >>
      mark.failures >> failed >> mark.record >> mark.claimer;
  mark.asked = time(asked);
  mark.granted = time(granted);
  mark.ended = ended > 0;
  mark.failed = time(failed);
  return mark;
}

// What wakes and history say is not for the next script.
void forget_news(fake::Database& keys, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name.starts_with(kWake) || name == kBase + "history") keys.call({"DEL", name});
  }
}

Memory memory_of(fake::Database keys) {
  Memory memory;
  const auto names = keys.keys();
  for (const std::string& name : names) {
    const int64_t until = keys.look(name)->expires;
    memory.ends.push_back({name.substr(kBase.size()), until < 0 ? kNever : until - kEpochMs});
    if (name.starts_with(kWake)) memory.woken.push_back(name.substr(kWake.size()));
  }
  const fake::Value* holders = keys.look(kBase + "holders");
  if (holders != nullptr && std::holds_alternative<std::string>(holders->data)) {
    unfold(std::get<std::string>(holders->data), memory);
  } else {
    memory.holders = rows_of(keys, "holders", kEpochMs);
    memory.limits = rows_of(keys, "limits", 0);
    memory.who = fields_of(keys, "who");
  }
  shift_entries(memory.who);
  set_closure_apart(memory);
  memory.queue = rows_of(keys, "queue", 0);
  memory.alive = rows_of(keys, "alive", kEpochMs);
  memory.released = rows_of(keys, "released", kEpochMs * 16);
  if (const auto* text = keys.get<std::string>(kBase + "meta")) memory.meta = meta_of(*text);
  for (const auto& [field, text] : fields_of(keys, "once")) memory.once[field] = mark_of(text);
  forget_news(keys, names);
  memory.keys = std::move(keys);
  return memory;
}

Reply reply_of(const fake::Reply& array) {
  if (array.type != fake::Reply::Type::array) throw std::runtime_error(array.text);
  auto text = [&](size_t at) -> const std::string& { return array.items.at(at).text; };
  auto number = [&](size_t at) {
    const fake::Reply& item = array.items.at(at);
    return item.type == fake::Reply::Type::number ? item.number : std::stoll(item.text);
  };
  Reply reply;
  reply.word = text(0);
  if (reply.word == "granted" || reply.word == "queued") reply.number = number(1);
  if (reply.word == "granted") reply.slot = number(2);
  if (reply.word == "queued") {
    reply.look_again = number(3);
    reply.slice = number(5);
  }
  if (reply.word == "lost" || reply.word == "gone" || reply.word == "absent") reply.how = text(1);
  const bool ends = reply.word == "freed" || reply.word == "left_queue";
  if (ends && array.items.size() > 1) reply.mark = text(1);
  if (reply.word == "absent" && array.items.size() > 3) reply.mark = text(3);
  return reply;
}

// ---- what is asked of a script ----

const char* word_for(const Request& request) {
  if (request.outcome == Outcome::succeeded) return "succeeded";
  return request.work->max_failures > 0 ? "failed" : "-";
}

using Arguments = std::vector<std::string>;

void add_work(Arguments& given, const Work& work) {
  if (!work.once.empty()) {
    given.insert(given.end(), {"once", work.once, "span", std::to_string(work.span)});
    if (work.max_failures > 0) {
      given.insert(given.end(), {"max_failures", std::to_string(work.max_failures)});
    }
  }
  if (!work.supersede.empty()) given.insert(given.end(), {"supersede", work.supersede});
}

Arguments acquire_arguments(const Request& request) {
  Arguments given{"owner",      request.owner,
                  "record",     "x",
                  "responsive", "1",
                  "limit",      std::to_string(request.limit),
                  "ttl",        std::to_string(kTtl),
                  "ticket",     std::to_string(request.ticket)};
  if (request.work == nullptr) return given;
  add_work(given, *request.work);
  given.insert(given.end(), {"asked", std::to_string(request.asked_ago)});
  return given;
}

Arguments renew_arguments(const Request& request) {
  Arguments given{"owner",      request.owner,
                  "entry",      "0",
                  "record",     "x",
                  "responsive", "1",
                  "token",      std::to_string(request.token),
                  "limit",      std::to_string(request.limit),
                  "ttl",        std::to_string(kTtl),
                  "slot",       std::to_string(request.slot)};
  if (request.work != nullptr) add_work(given, *request.work);
  return given;
}

Arguments release_arguments(const Request& request) {
  Arguments given{"owner", request.owner, "entry", "0", "how", "released", "note", "-"};
  if (request.work == nullptr || request.work->once.empty()) return given;
  given.insert(given.end(),
               {"once", request.work->once, "span", std::to_string(request.work->span), "asked",
                std::to_string(request.asked_ago), "token", std::to_string(request.token),
                "outcome", word_for(request), "record", "x"});
  return given;
}

std::vector<std::string> arguments(const World& world, const Request& request) {
  const std::string seen = world.memory->closed_until > world.now ? world.memory->closure : "";
  switch (request.op) {
    case Op::acquire:
      return acquire_arguments(request);
    case Op::renew:
      return renew_arguments(request);
    case Op::release:
      return release_arguments(request);
    case Op::cancel:
      return {"owner", request.owner, "entry", "0", "how", "cancelled", "note", ""};
    case Op::force:
      return {"confirmed", "x", request.owner, "0"};
    case Op::forget:
      return {request.owner, "0"};
    case Op::close:
      return {"close", seen.empty() ? "-" : seen, "x", request.owner,
              std::to_string(kEpochMs + world.now + kClosed)};
    case Op::open:
      return {"open", seen, "x"};
  }
  throw std::logic_error("no such request");
}

// In the order of Op.
constexpr lua::Script redis::Scripts::*kScripts[] = {
    &redis::Scripts::acquire, &redis::Scripts::renew,        &redis::Scripts::release,
    &redis::Scripts::release, &redis::Scripts::force_unlock, &redis::Scripts::forget,
    &redis::Scripts::closure, &redis::Scripts::closure};

}  // namespace

Done Server::run(const World& world, const Request& request) {
  std::vector<std::string> keys;
  for (const char* part : {"holders", "limits", "queue", "alive", "who", "meta", "released",
                           "history", "never", "once"}) {
    keys.push_back(kBase + part);
  }
  const auto words = arguments(world, request);
  fake::Database database = world.memory->keys;
  database.set_time((kEpochMs + world.now) * 1000 + world.scripts_now * kMicrosBetween);
  const lua::Script& script = scripts_.for_stores().*kScripts[static_cast<size_t>(request.op)];
  const fake::Reply reply =
      engine_.run(database, script, {keys.begin(), keys.end()}, {words.begin(), words.end()});
  return {memory_of(std::move(database)), reply_of(reply)};
}

}  // namespace rlock::model
