#include "model/server.hpp"

#include <cstdint>
#include <sstream>
#include <stdexcept>

namespace rlock::model {
namespace {

// Between two scripts at the same moment; more than the numbers that one script issues.
constexpr int64_t kMicrosBetween = 10;

const char* const kBefore = R"(
local op, now_us, packed = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local now = math.floor(now_us / 1000)
local base = string.sub(KEYS[1], 1, -8)
local words = {}
for i = 4, #ARGV do words[#words + 1] = ARGV[i] end
redis.call('RPUSH', 'clock', string.format('%.0f', math.floor(now_us / 1000000)), now_us % 1000000)
for _, key in ipairs(packed == '' and {} or cmsgpack.unpack(packed)) do
  if key[4] < 0 or key[4] > now then
    redis.call(key[2], base .. key[1], unpack(key[3]))
    if key[4] > 0 then redis.call('PEXPIREAT', base .. key[1], string.format('%.0f', key[4])) end
  end
end
local reply = scripts[op](KEYS, words)
)";

const char* const kAfter = R"(
local kept, out, ends, woken = {}, {reply, ''}, {}, {}
-- A folded hold is checked like the same hold unfolded.
local lone, line = redis.pcall('GET', base .. 'holders'), {}
if type(lone) == 'string' then
  line = {string.match(lone, '^1 (%S+) (%d+) (%d+ %d+ %d+) ([012]) (%d+) ([^|]*)| (.*)$')}
end
local shown = {holders = {line[1], line[5]}, limits = {line[1], line[2]}, who = {}}
if line[1] then
  local held = table.concat({'1 held', line[2], line[3], 0, line[4], line[6]}, ' ')
  shown.who = {line[1], line[7], '+' .. line[1], held, '@' .. line[1], '0=' .. line[5]}
end
for i, name in ipairs({'holders', 'limits', 'queue', 'alive', 'released', 'who', 'meta', 'once'}) do
  local rows, data, key = nil, {}, base .. name
  if line[1] and shown[name] then
    rows = shown[name]
    data = {}
    if name == 'holders' then
      kept[#kept + 1] = {name, 'SET', {lone}, redis.call('PEXPIRETIME', key)}
    end
  elseif i <= 5 then
    rows = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for j = 1, #rows, 2 do data[j], data[j + 1] = rows[j + 1], rows[j] end
  elseif name ~= 'meta' then
    rows = redis.call('HGETALL', key)
    data = rows
  else
    local text = redis.call('GET', key)
    rows = {}
    if text then
      local last, grant, exclusive, created = string.match(text, '^1 (%d+) (%d+) (%d+) (%d+) ')
      local forgotten = string.match(text, ' forgotten=(%d+)') or '0'
      rows = {'last', last, 'grant', grant, 'exclusive', exclusive, 'created', created,
              'forgotten', forgotten}
      kept[#kept + 1] = {name, 'SET', {text}, redis.call('PEXPIRETIME', key)}
    end
  end
  if #data > 0 then
    kept[#kept + 1] = {name, i <= 5 and 'ZADD' or 'HSET', data, redis.call('PEXPIRETIME', key)}
  end
  out[#out + 1] = rows
end
redis.call('DEL', 'clock')
local all = redis.call('KEYS', '*')
for _, key in ipairs(all) do
  local name = string.sub(key, #base + 1)
  ends[#ends + 1] = name
  ends[#ends + 1] = redis.call('PEXPIRETIME', key)
  if string.sub(name, 1, 5) == 'wake:' then woken[#woken + 1] = string.sub(name, 6) end
end
if #all > 0 then redis.call('DEL', unpack(all)) end
out[2] = cmsgpack.pack(kept)
out[#out + 1] = ends
out[#out + 1] = woken
return out
)";

std::string wrapped(const redis::Scripts& scripts) {
  std::string text = "local scripts = {}\n";
  for (auto [name, script] : {std::pair{"acquire", scripts.acquire},
                              {"renew", scripts.renew},
                              {"release", scripts.release},
                              {"force", scripts.force_unlock},
                              {"forget", scripts.forget}}) {
    text += std::string("scripts.") + name + " = function(KEYS, ARGV)\n";
    text += script.text;
    text += "\nend\n";
  }
  return text + kBefore + kAfter;
}

std::string text_of(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_INTEGER) return std::to_string(reply.integer);
  return reply.str == nullptr ? "" : std::string(reply.str, reply.len);
}

std::vector<std::string> texts_of(const redisReply& array) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < array.elements; ++i) texts.push_back(text_of(*array.element[i]));
  return texts;
}

int64_t quarters_of(const std::string& score) {
  const size_t point = score.find('.');
  return point == std::string::npos ? 0 : static_cast<int64_t>(std::stod(score.substr(point)) * 4);
}

std::vector<Row> rows_of(const redisReply& array) {
  std::vector<Row> rows;
  auto texts = texts_of(array);
  for (size_t i = 0; i + 1 < texts.size(); i += 2)
    rows.push_back({texts[i], std::stoll(texts[i + 1]), quarters_of(texts[i + 1])});
  return rows;
}

std::map<std::string, std::string> fields_of(const redisReply& array) {
  std::map<std::string, std::string> fields;
  auto texts = texts_of(array);
  for (size_t i = 0; i + 1 < texts.size(); i += 2) fields[texts[i]] = texts[i + 1];
  return fields;
}

void shift(std::vector<Row>& rows, int64_t by) {
  for (Row& row : rows) row.score = row.score < 0 ? kNever : row.score - by;
}

// `0=END` of each `@owner`: nothing is nested in the model.
void shift_entries(std::map<std::string, std::string>& who) {
  for (auto& [field, value] : who) {
    if (field.front() == '@') value = std::to_string(std::stoll(value.substr(2)) - kEpochMs);
  }
}

// `1 kept token asked granted ended failures failed record`
std::map<std::string, Mark> marks_of(const redisReply& array) {
  std::map<std::string, Mark> marks;
  auto time = [](int64_t stored) { return stored == 0 ? 0 : stored - kEpochMs; };
  for (const auto& [field, text] : fields_of(array)) {
    int64_t version = 0, kept = 0, asked = 0, granted = 0, ended = 0, failed = 0;
    Mark mark;
    std::istringstream(text) >> version >> kept >> mark.token >> asked >> granted >> ended >>
        mark.failures >> failed >> mark.record;
    mark.asked = time(asked);
    mark.granted = time(granted);
    mark.ended = ended > 0;
    mark.failed = time(failed);
    marks[field] = std::move(mark);
  }
  return marks;
}

Reply reply_of(const redisReply& array) {
  Reply reply;
  auto texts = texts_of(array);
  reply.word = texts.at(0);
  if (reply.word == "granted" || reply.word == "queued") reply.number = std::stoll(texts.at(1));
  if (reply.word == "granted") reply.slot = std::stoll(texts.at(2));
  if (reply.word == "queued") {
    reply.look_again = std::stoll(texts.at(3));
    reply.slice = std::stoll(texts.at(5));
  }
  if (reply.word == "lost" || reply.word == "gone" || reply.word == "absent")
    reply.how = texts.at(1);
  const bool ends = reply.word == "freed" || reply.word == "left_queue";
  if (ends && texts.size() > 1) reply.mark = texts[1];
  if (reply.word == "absent" && texts.size() > 3) reply.mark = texts[3];
  return reply;
}

// Times become the model's; numbers issued stay as they are.
Done done_of(const redisReply& reply) {
  Done done;
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != 12)
    throw std::runtime_error(text_of(reply));
  redisReply** part = reply.element;
  done.reply = reply_of(*part[0]);
  Memory& memory = done.memory;
  memory.packed = text_of(*part[1]);
  memory.holders = rows_of(*part[2]);
  memory.limits = rows_of(*part[3]);
  memory.queue = rows_of(*part[4]);
  memory.alive = rows_of(*part[5]);
  memory.released = rows_of(*part[6]);
  memory.who = fields_of(*part[7]);
  memory.meta = fields_of(*part[8]);
  memory.once = marks_of(*part[9]);
  memory.ends = rows_of(*part[10]);
  memory.woken = texts_of(*part[11]);
  shift(memory.holders, kEpochMs);
  shift(memory.alive, kEpochMs);
  shift(memory.released, kEpochMs * 16);
  shift(memory.ends, kEpochMs);
  shift_entries(memory.who);
  return done;
}

const char* word_for(const Request& request) {
  if (request.outcome == Outcome::succeeded) return "succeeded";
  return request.work->max_failures > 0 ? "failed" : "-";
}

std::vector<std::string> acquire_arguments(const Request& request) {
  std::vector<std::string> words{"acquire",
                                 request.owner,
                                 std::to_string(request.ticket),
                                 std::to_string(request.limit),
                                 std::to_string(kTtl),
                                 "0",
                                 "1",
                                 "wait",
                                 "",
                                 "x"};
  if (request.work == nullptr) return words;
  const Work& work = *request.work;
  words.insert(words.end(), {"0", "", work.once, "0", "0", "", "", work.supersede});
  if (work.once.empty()) return words;
  words[13] = std::to_string(work.span);
  words[14] = std::to_string(request.asked_ago);
  if (work.max_failures > 0) words[15] = std::to_string(work.max_failures);
  return words;
}

std::vector<std::string> renew_arguments(const Request& request) {
  std::vector<std::string> words{"renew",
                                 request.owner,
                                 "0",
                                 std::to_string(request.token),
                                 std::to_string(request.limit),
                                 std::to_string(kTtl),
                                 "0",
                                 "1",
                                 "x",
                                 "0",
                                 "0",
                                 "0",
                                 std::to_string(request.slot)};
  if (request.work == nullptr) return words;
  const Work& work = *request.work;
  const std::string most = work.max_failures > 0 ? std::to_string(work.max_failures) : "";
  words.insert(words.end(), {work.once, std::to_string(work.span), most, "", work.supersede});
  return words;
}

std::vector<std::string> release_arguments(const Request& request) {
  const bool once = request.work != nullptr && !request.work->once.empty();
  std::vector<std::string> words{"release", request.owner, "0", "released", "-"};
  if (!once) return words;
  words.insert(words.end(), {"", "", request.work->once, std::to_string(request.work->span),
                             std::to_string(request.asked_ago), std::to_string(request.token),
                             word_for(request), "x"});
  return words;
}

std::vector<std::string> arguments(const Request& request) {
  switch (request.op) {
    case Op::acquire:
      return acquire_arguments(request);
    case Op::renew:
      return renew_arguments(request);
    case Op::release:
      return release_arguments(request);
    case Op::cancel:
      return {"release", request.owner, "0", "cancelled", ""};
    case Op::force:
      return {"force", "confirmed", "x", request.owner, "0"};
    case Op::forget:
      return {"forget", request.owner, "0"};
  }
  throw std::logic_error("no such request");
}

std::vector<std::string> command(const Job& job, const std::string& digest) {
  std::vector<std::string> words{"EVALSHA", digest, "10"};
  for (const char* suffix : {"holders", "limits", "queue", "alive", "who", "meta", "released",
                             "history", "never", "once"}) {
    words.push_back(std::string("rlock:{job}:") + suffix);
  }
  auto script = arguments(*job.request);
  int64_t micros = (kEpochMs + job.world->now) * 1000 + job.world->scripts_now * kMicrosBetween;
  words.push_back(script.front());
  words.push_back(std::to_string(micros));
  words.push_back(job.world->memory->packed);
  words.insert(words.end(), script.begin() + 1, script.end());
  return words;
}

}  // namespace

Server::Server(const std::vector<contract::Mutation>& mutations)
    : scripts_(mutations), connection_(redisConnectUnix(server_.socket_path().c_str())) {
  if (!connection_ || connection_->err != 0) throw std::runtime_error("cannot connect");
  send({"SCRIPT", "LOAD", wrapped(scripts_.scripts())});
  auto loaded = receive();
  digest_ = text_of(*loaded);
  if (loaded->type == REDIS_REPLY_ERROR) throw std::runtime_error(digest_);
}

void Server::send(const std::vector<std::string>& words) {
  std::vector<const char*> argv;
  std::vector<size_t> lengths;
  for (const std::string& word : words) {
    argv.push_back(word.data());
    lengths.push_back(word.size());
  }
  redisAppendCommandArgv(connection_.get(), static_cast<int>(argv.size()), argv.data(),
                         lengths.data());
}

Server::ReplyPtr Server::receive() {
  void* reply = nullptr;
  if (redisGetReply(connection_.get(), &reply) != REDIS_OK) {
    throw std::runtime_error(std::string("redis-server: ") + connection_->errstr);
  }
  return ReplyPtr(static_cast<redisReply*>(reply));
}

std::vector<Done> Server::run(const std::vector<Job>& jobs) {
  for (const Job& job : jobs) send(command(job, digest_));
  std::vector<Done> results;
  for (size_t i = 0; i < jobs.size(); ++i) results.push_back(done_of(*receive()));
  return results;
}

}  // namespace rlock::model
