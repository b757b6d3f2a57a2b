#include "redis/link/reply.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "util/text.hpp"

namespace rlock::redis {
namespace {

// hiredis allocates the table of an array as soon as it has read the length, so `*100000000` alone
// would cost 800 MB. Therefore bounded_array checks the length first. The type of `elements`
// differs between releases of hiredis.
redisReplyObjectFunctions hiredis_functions{};

template <class Count>
void* bounded_array(const redisReadTask* task, Count elements) {
  auto& left = *static_cast<size_t*>(task->privdata);
  int depth = 0;
  for (const redisReadTask* outer = task->parent; outer != nullptr; outer = outer->parent) ++depth;
  if (depth >= ReplyReader::kDeepest || static_cast<size_t>(elements) > left) return nullptr;
  left -= static_cast<size_t>(elements);
  return hiredis_functions.createArray(task, elements);
}

redisReplyObjectFunctions* bounded_functions(const redisReplyObjectFunctions& original) {
  static redisReplyObjectFunctions bounded = [&original] {
    hiredis_functions = original;
    redisReplyObjectFunctions functions = original;
    functions.createArray = bounded_array;
    return functions;
  }();
  return &bounded;
}

Error bad_reply(std::string why) {
  return {ErrorKind::unavailable, std::move(why), Retry::later, Answered::yes};
}

}  // namespace

std::string encode(const std::vector<std::string>& words) {
  std::vector<const char*> argv;
  std::vector<size_t> lengths;
  for (const std::string& word : words) {
    argv.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* raw = nullptr;
  auto size =
      redisFormatCommandArgv(&raw, static_cast<int>(argv.size()), argv.data(), lengths.data());
  if (size < 0) throw std::bad_alloc();
  std::string command(raw, static_cast<size_t>(size));
  redisFreeCommand(raw);
  return command;
}

ReplyReader::ReplyReader()
    : reader_(redisReaderCreate()), elements_left_(std::make_unique<size_t>(kMostElements)) {
  if (reader_ == nullptr) throw std::bad_alloc();
  reader_->fn = bounded_functions(*reader_->fn);
  reader_->privdata = elements_left_.get();
}

void ReplyReader::feed(const char* bytes, size_t size) {
  bytes_ += size;
  if (bytes_ <= kMostBytes) redisReaderFeed(reader_.get(), bytes, size);
}

Result<ReplyPtr> ReplyReader::next() {
  if (bytes_ > kMostBytes) return bad_reply("the reply is too large");
  void* reply = nullptr;
  int status = redisReaderGetReply(reader_.get(), &reply);
  if (status != REDIS_OK) {
    if (reader_->err == REDIS_ERR_OOM) return bad_reply("the reply is too large");
    return bad_reply(std::string("not a Redis reply (") + reader_->errstr + ")");
  }
  if (reply != nullptr) {
    bytes_ = reader_->len - reader_->pos;
    *elements_left_ = kMostElements;
  }
  return ReplyPtr(static_cast<redisReply*>(reply));
}

bool ReplyReader::empty() const {
  return reader_->pos == reader_->len;
}

InfoFields read_info(std::string_view text) {
  InfoFields info;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\r\n"), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    const size_t colon = line.find(':');
    if (colon != line.npos) info.emplace(line.substr(0, colon), line.substr(colon + 1));
  }
  return info;
}

std::string info_field(const InfoFields& info, std::string_view field) {
  auto found = info.find(field);
  return found == info.end() ? std::string() : found->second;
}

namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Redis 7 appends the position in the script, "… script: SHA1, on @user_script:1.", which does not
// help users. Later versions and Valkey also have a "script: " in other texts.
std::string_view without_script_position(std::string_view text) {
  size_t at = text.rfind(" script: ");
  if (at == text.npos || text.find(", on @", at) == text.npos) return text;
  return text.substr(0, at);
}

std::string_view without_arguments(std::string_view text) {
  return text.substr(0, text.find(", with args beginning with:"));
}

// X in `unknown command 'X'`; empty if nothing is quoted.
std::string_view quoted_word(std::string_view text) {
  constexpr std::string_view kQuotes = "'`\"";
  size_t from = text.find_first_of(kQuotes);
  if (from == text.npos) return {};
  size_t to = text.find_first_of(kQuotes, from + 1);
  return to == text.npos ? std::string_view() : text.substr(from + 1, to - from - 1);
}

constexpr std::string_view kMissingCommand =
    "the server lacks a command that rlock needs; enable it or use another server";

Error missing_command(std::string text) {
  return {ErrorKind::config, std::move(text), Retry::never, Answered::no, Cause::missing_command};
}

// EVAL and EVALSHA are not reported as missing_command, because the text says what to do instead of
// enabling them.
Error unknown_command(std::string_view command) {
  const std::string name = util::lower_case(command);
  if (name == "eval" || name == "evalsha") {
    return {ErrorKind::config,
            "the server does not know EVALSHA and EVAL, but rlock needs Lua scripts: use another "
            "server, or connect without the proxy in front of it"};
  }
  if (name == "scan") {
    return missing_command(
        "the server does not know SCAN, so locks cannot be listed: name them, as in `rlock status "
        "NAME`");
  }
  return missing_command("the server does not know " +
                         (command.empty() ? std::string("a command that rlock needs")
                                          : "the command " + std::string(command)) +
                         ": enable it (check rename-command and any proxy), or use another server");
}

struct KnownError {
  std::string_view word;  // the code of a reply, or a part of its text in lower case
  ErrorKind kind;
  Cause cause = Cause::other;
  Retry retry = Retry::never;
  std::string_view advice{};  // instead of the server's text, which comes without it
};

// By the code of the reply, its first word. The texts of these errors may quote names of users,
// keys and commands, so nothing but the code says what they mean.
constexpr KnownError kCodes[] = {
    {"NOAUTH", ErrorKind::denied},
    {"NOPERM", ErrorKind::denied, Cause::command_denied},
    {"WRONGPASS", ErrorKind::denied},
    {"WRONGTYPE", ErrorKind::wrong_type},
    {"MOVED", ErrorKind::config, Cause::other_node, Retry::never,
     "the server is a node of a cluster"},
    {"ASK", ErrorKind::config, Cause::other_node, Retry::never,
     "the server is a node of a cluster"},
    {"OOM", ErrorKind::unavailable, Cause::out_of_memory, Retry::later},
    {"MISCONF", ErrorKind::unavailable, Cause::cannot_save, Retry::later},
    {"LOADING", ErrorKind::unavailable, Cause::loading, Retry::later},
    {"READONLY", ErrorKind::unavailable, Cause::read_only, Retry::later},
    {"BUSY", ErrorKind::unavailable, Cause::busy_script, Retry::later},
    {"MASTERDOWN", ErrorKind::unavailable, Cause::other, Retry::later},
    {"CLUSTERDOWN", ErrorKind::unavailable, Cause::other, Retry::later},
    {"TRYAGAIN", ErrorKind::unavailable, Cause::other, Retry::later},
    {"UNBLOCKED", ErrorKind::unavailable, Cause::other, Retry::later},
    {"NOREPLICAS", ErrorKind::unavailable, Cause::other, Retry::later},
};

// By the text of a reply whose code says nothing (ERR), or that has none because it comes from a
// proxy. Denials quote names, so they come first.
constexpr KnownError kTexts[] = {
    {"user executing the script", ErrorKind::denied, Cause::command_denied},
    {"acl failure in script", ErrorKind::denied, Cause::command_denied},
    {"protocol error: unauthenticated", ErrorKind::denied},
    {"wrongtype operation", ErrorKind::wrong_type},
    // A server, or a proxy in front of it, that cannot be used: another try or another user does
    // not help.
    {"could not find scripting engine", ErrorKind::config, Cause::other, Retry::never,
     "the server cannot run Lua scripts, which rlock needs: load its Lua module (Valkey: "
     "loadmodule, package valkey-lua), or use another server"},
    {"lua scripting support disabled", ErrorKind::config, Cause::other, Retry::never,
     "the server cannot run Lua scripts, which rlock needs: start it with Lua (Garnet: --lua and "
     "--lua-transaction-mode), or use another server"},
    {"bad lua script for redis cluster", ErrorKind::config, Cause::other, Retry::never,
     "the proxy rejects rlock's scripts: turn its script check off (script_check_enable 0), or "
     "connect without the proxy"},
    {"command called from", ErrorKind::config, Cause::missing_command, Retry::never,
     kMissingCommand},
    // A store adds which URL to use instead.
    {"cluster support disabled", ErrorKind::config, Cause::other_kind, Retry::never,
     "the server is no node of a cluster"},
    {"max number of clients", ErrorKind::unavailable, Cause::too_many_clients, Retry::later},
};

// The code and the text of an error in a script, which Redis 6 quotes after a place:
// `ERR Error running script (call to f_SHA1): @user_script:1: WRONGTYPE Operation against …`
std::string_view without_script(std::string_view text) {
  constexpr std::string_view kPlace = "user_script:";
  if (!text.starts_with("ERR Error ")) return text;
  const size_t place = text.rfind(kPlace);
  const size_t end = place == text.npos ? place : text.find(": ", place);
  if (end == text.npos) return text;
  text.remove_prefix(end + 2);
  if (text.starts_with('-')) text.remove_prefix(1);
  return text;
}

const KnownError* known_error(std::string_view text) {
  const std::string_view code = error_code(text);
  for (const KnownError& known : kCodes) {
    if (code == known.word) return &known;
  }
  const std::string lower = util::lower_case(without_arguments(text));
  for (const KnownError& known : kTexts) {
    if (contains(lower, known.word)) return &known;
  }
  return nullptr;
}

Error decode_known(const KnownError& known, std::string_view text, std::string shown) {
  if (!known.advice.empty()) shown = known.advice;
  Error error{known.kind, std::move(shown), known.retry, Answered::no, known.cause};
  if (known.kind == ErrorKind::wrong_type) {
    error.text = "a key of this lock is used for something else: " + error.text;
  } else if (known.cause == Cause::command_denied) {
    if (contains(text, "permissions to access database")) {
      error.text += ": allow this database in the user's ACL rule (db=), or use another one";
    } else if (contains(text, "permissions to access") && contains(text, "key")) {
      error.cause = Cause::keys_denied;
    }
  }
  return error;
}

}  // namespace

std::string_view proxy_outage(std::string_view text) {
  for (std::string_view part :
       {"no upstream host", "upstream failure", "Connection refused", "Connection timed out"}) {
    if (contains(text, part)) return part;
  }
  return {};
}

std::string_view error_code(std::string_view text) {
  text = without_script(text);
  return text.substr(0, text.find(' '));
}

Millis bounded_span(int64_t millis) {
  constexpr int64_t kMost = int64_t{1} << 53;  // 285,000 years
  return Millis(std::clamp(millis, -kMost, kMost));
}

Error decode_error(std::string_view text) {
  constexpr size_t kLongest = 300;  // genuine texts are shorter, and the message is one line
  std::string shown(without_arguments(without_script_position(text)).substr(0, kLongest));
  if (shown.ends_with('.')) shown.pop_back();  // a message continues after it
  if (const KnownError* known = known_error(text)) {
    return decode_known(*known, text, std::move(shown));
  }
  // The text comes from acl.lua.
  constexpr std::string_view kHasNo = "this server has no command";
  if (size_t at = shown.find(kHasNo); at != shown.npos) {
    return missing_command(std::string(kMissingCommand) + ":" + shown.substr(at + kHasNo.size()));
  }
  // `Unknown sentinel subcommand` comes from Redis 6.
  const std::string lower = util::lower_case(shown);
  for (std::string_view part :
       {"unknown command", "unknown subcommand", "unknown sentinel subcommand"}) {
    if (contains(lower, part)) return unknown_command(quoted_word(shown));
  }
  const Retry retry = proxy_outage(shown).empty() ? Retry::never : Retry::later;
  return {ErrorKind::unavailable, std::move(shown), retry};
}

}  // namespace rlock::redis
