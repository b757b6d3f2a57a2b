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

// The words of `name=value name=value | record`; the record under "record".
std::map<std::string, std::string> words_in(const std::string& text) {
  std::map<std::string, std::string> words;
  const size_t bar = text.find("| ");
  std::istringstream head(text.substr(0, bar));
  for (std::string word; head >> word;) {
    const size_t at = word.find('=');
    words[word.substr(0, at)] = word.substr(at + 1);
  }
  words["record"] = text.substr(bar + 2);
  return words;
}

int64_t number_in(const std::map<std::string, std::string>& words, const std::string& name) {
  const auto word = words.find(name);
  return word == words.end() ? 0 : std::stoll(word->second);
}

// As `owner`, `+owner` and `@owner`.
std::map<std::string, std::string> lines_of(const std::map<std::string, std::string>& fields) {
  std::map<std::string, std::string> who;
  for (const auto& [field, text] : fields) {
    if (field.front() == '!' || field.front() == '#') {
      who[field] = text;
      continue;
    }
    const auto words = words_in(text);
    who[field] = words.at("record");
    std::string& line = who["+" + field];
    line = util::format("1 {} {} {} {}", words.at("state"), words.at("limit"), words.at("token"),
                        words.at("since"));
    for (const auto& [name, value] : words) line += " " + name + "=" + value;
    const auto entries = words.find("entries");
    if (entries != words.end())
      who["@" + field] = std::to_string(std::stoll(entries->second.substr(2)) - kEpochMs);
  }
  return who;
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
  std::erase_if(memory.holders, [&](const Row& one) { return one.member == closure; });
  std::erase_if(memory.who, [&](const auto& field) { return field.first.ends_with(closure); });
}

std::map<std::string, int64_t> meta_of(const std::map<std::string, std::string>& fields) {
  std::map<std::string, int64_t> meta;
  for (const char* field : {"last", "grant", "exclusive", "created", "forgotten"}) {
    meta[field] = number_in(fields, field);
  }
  return meta;
}

Mark mark_of(const std::string& text) {
  const auto words = words_in(text);
  auto time = [&](const char* name) {
    const int64_t stored = number_in(words, name);
    return stored == 0 ? 0 : stored - kEpochMs;
  };
  Mark mark;
  mark.asked = time("asked");
  mark.granted = time("granted");
  mark.ended = number_in(words, "ended") > 0;
  mark.failures = number_in(words, "failures");
  mark.failed = time("failed");
  const bool waits = words.contains("latest");
  mark.token = number_in(words, waits ? "ticket" : "token");
  mark.record = words.at(waits ? "latest" : "record");
  if (words.contains("claimer")) mark.claimer = words.at("claimer");
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
  memory.holders = rows_of(keys, "holders", kEpochMs);
  memory.limits = rows_of(keys, "limits", 0);
  memory.who = lines_of(fields_of(keys, "who"));
  set_closure_apart(memory);
  memory.queue = rows_of(keys, "queue", 0);
  memory.alive = rows_of(keys, "alive", kEpochMs);
  memory.released = rows_of(keys, "released", kEpochMs * 16);
  if (keys.look(kBase + "meta") != nullptr) memory.meta = meta_of(fields_of(keys, "meta"));
  for (const auto& [field, text] : fields_of(keys, "once")) memory.once[field] = mark_of(text);
  forget_news(keys, names);
  memory.keys = std::move(keys);
  return memory;
}

Reply reply_of(const fake::Reply& array) {
  if (array.type != fake::Reply::Type::array) throw std::runtime_error(array.text);
  auto find = [&](const std::string& name) -> const fake::Reply* {
    for (size_t i = 1; i + 1 < array.items.size(); i += 2) {
      if (array.items[i].text == name) return &array.items[i + 1];
    }
    return nullptr;
  };
  auto text = [&](const char* name) { return find(name) == nullptr ? "" : find(name)->text; };
  auto number = [&](const char* name, int64_t missing) {
    return find(name) == nullptr ? missing : find(name)->number;
  };
  Reply reply;
  reply.word = array.items.at(0).text;
  reply.number = reply.word == "granted" ? number("token", 0) : number("ticket", 0);
  reply.slot = number("slot", 0);
  reply.look_again = number("look_again", -1);
  reply.slice = number("slice", kSlice);
  reply.how = reply.word == "lost" ? text("how") : text("kind");
  reply.mark = text("mark");
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
                  "ttl",        std::to_string(kTtl)};
  if (request.ticket > 0) given.insert(given.end(), {"ticket", std::to_string(request.ticket)});
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
      return {"note", "x", "targets", request.owner + "=0"};
    case Op::forget:
      return request.owner.empty() ? Arguments{} : Arguments{"field", request.owner};
    case Op::close:
      if (seen.empty()) {
        return {"record",      "x",    "id",
                request.owner, "ends", std::to_string(kEpochMs + world.now + kClosed)};
      }
      return {"seen", seen,          "record", "x",
              "id",   request.owner, "ends",   std::to_string(kEpochMs + world.now + kClosed)};
    case Op::open:
      if (seen.empty()) return {"record", "x"};
      return {"seen", seen, "record", "x"};
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
