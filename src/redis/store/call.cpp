#include "redis/store/call.hpp"

#include <algorithm>
#include <span>

#include "redis/net/redis_cli.hpp"
#include "redis/store/versions.hpp"

namespace rlock::redis {
namespace {

// Adds the source line at which a script failed, and the command that an ACL denies or the server
// lacks, if the error does not name it.
Error script_error(std::string_view text, const lua::Script* script) {
  Error error = decode_error(text);
  if (script != nullptr) error.text = with_sources(error.text, script->text);
  const bool of_command = error.kind == ErrorKind::denied || error.kind == ErrorKind::config;
  if (!of_command || script == nullptr) return error;
  if (std::string command = command_at(text, script->text); !command.empty()) {
    error.text += ": " + command;
  }
  return error;
}

// The keys in EVALSHA or EVAL.
std::span<const std::string> keys_in(const std::vector<std::string>& words) {
  constexpr size_t kCount = 2;
  const size_t most = words.size() > kCount ? words.size() - kCount - 1 : 0;
  const size_t count = most > 0 ? util::parse_number<size_t>(words[kCount]).value_or(0) : 0;
  return std::span(words).last(most).first(std::min(most, count));
}

// `: use redis+cluster://db1:6379` for the node to which `link` leads; `kind` is `+cluster`, or
// empty for a server.
std::string other_url(const Link& link, std::string_view kind) {
  const std::string node = link.node();
  const std::string host = node.substr(0, node.find('/'));
  return util::format(": use redi{}{}://{}", link.uses_tls() ? "ss" : "s", kind,
                      host.empty() ? "HOST:PORT" : host);
}

// Adds the server to an error reply; errors of the transport name it already.
Error with_server(const Link& link, Error error) {
  error.text = util::format("{}: {}", link.node(), redact(link, error.text));
  error.answered = Answered::yes;
  return error;
}

// Adds what to do with a key that another program has stored: rlock deletes none.
void add_key(Error& error, const Link& link, std::string_view text, const lua::Script* script,
             const std::vector<std::string>& words) {
  const std::string key = script == nullptr ? "" : key_at(text, script->text, keys_in(words));
  if (error.kind != ErrorKind::wrong_type || key.empty()) return;
  error.text = util::format(
      "the key {} is used for something else: use another NAME or --prefix, or, if no program "
      "needs the key, delete it: {}",
      key, redis_cli(link.node_server(), "DEL " + util::shell_quoted(key)));
  error.cause = Cause::blocking_key;
}

}  // namespace

Error with_action(const std::string& what, Error error) {
  error.text = util::format("cannot {}: {}", what, error.text);
  return error;
}

Error refusal(const Link& link, const std::string& what, std::string_view text,
              const lua::Script* script, const std::vector<std::string>& words) {
  Error error = script_error(text, script);
  if (error.cause == Cause::other_node) error.text += other_url(link, "+cluster");
  if (error.cause == Cause::other_kind) error.text += other_url(link, "");
  add_key(error, link, text, script, words);
  if (auto other = script != nullptr ? other_version(text, keys_in(words), link.node_server())
                                     : std::nullopt) {
    error = *std::move(other);
  }
  return with_action(what, with_server(link, std::move(error)));
}

Error unexpected_reply(const Link& link, const std::string& what) {
  return with_action(
      what, with_server(link, {ErrorKind::unavailable, "unexpected reply to a command of rlock"}));
}

bool is_noscript(const redisReply& reply) {
  return is_error(reply) && text_of(reply).starts_with("NOSCRIPT");
}

bool is_demoted(const redisReply& reply) {
  if (!is_error(reply)) return false;
  const std::string_view code = error_code(text_of(reply));
  return code == "READONLY" || code == "UNBLOCKED" || code == "MASTERDOWN";
}

bool has_wakes(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements < 4) return false;
  return text_of(*reply.element[0]) == "wakes";
}

std::vector<std::string> script_call(const lua::Script& script,
                                     const std::vector<std::string>& keys,
                                     const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"EVALSHA", std::string(script.sha1), std::to_string(keys.size())};
  words.insert(words.end(), keys.begin(), keys.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

std::vector<std::string> wake_call(const std::vector<std::string>& words, const redisReply& reply) {
  constexpr size_t kKeyCount = 2;
  constexpr size_t kFirstKey = 3;
  constexpr size_t kFirstOwner = 2;
  auto first = words.begin() + kFirstKey;
  std::vector<std::string> keys(first, first + std::stoi(words[kKeyCount]));
  std::string base = keys.front().substr(0, keys.front().rfind(':') + 1);
  std::vector<std::string> arguments;
  for (size_t i = kFirstOwner; i + 1 < reply.elements; i += 2) {
    const std::string owner(text_of(*reply.element[i]));
    const std::string event(text_of(*reply.element[i + 1]));
    if (owner.empty() || event.empty()) continue;
    keys.push_back(base + "wake:" + owner);
    arguments.push_back(owner);
    arguments.push_back(event);
  }
  return script_call(lua::wake, keys, arguments);
}

CallCore::CallCore(Link& link, std::vector<std::string> words, std::string what,
                   const lua::Script* script, Delivery delivery)
    : link_(link),
      use_(link),
      words_(std::move(words)),
      what_(std::move(what)),
      script_(script),
      unsent_text_(script) {
  if (delivery == Delivery::last_words) {
    link_.start_last_words(words_, script_->text);
  } else if (delivery == Delivery::following) {
    link_.follow(words_);
  } else {
    link_.start(words_);
  }
}

CallCore::~CallCore() {
  if (!done_) link_.drop();
}

bool CallCore::advance(TimePoint now) {
  while (!done_ && link_.advance(now)) {
    auto reply = link_.take();
    if (reply && unsent_text_ != nullptr && is_noscript(**reply)) {
      send_text();
      continue;
    }
    done_ = reply_ != nullptr || !reply || !has_unpushed_wakes(**reply);
    keep(std::move(reply));
    if (!done_) push_wakes();
  }
  return done_;
}

bool CallCore::finish_reading() {
  if (!done_ && link_.settle()) {
    keep(link_.take());
    done_ = true;
  }
  return done_;
}

Result<const redisReply*> CallCore::take() {
  if (!reply_) return with_action(what_, std::move(error_));
  if (is_error(*reply_)) return refusal(link_, what_, text_of(*reply_), script_, words_);
  return has_unpushed_wakes(*reply_) ? reply_->element[1] : reply_.get();
}

void CallCore::keep(Result<ReplyPtr> reply) {
  if (reply_) return;
  if (!reply) {
    error_ = std::move(reply).error();
    return;
  }
  if (is_demoted(**reply)) link_.drop();
  reply_ = std::move(*reply);
}

bool CallCore::has_unpushed_wakes(const redisReply& reply) const {
  return script_ != nullptr && has_wakes(reply);
}

void CallCore::push_wakes() {
  words_ = wake_call(words_, *reply_);
  unsent_text_ = &lua::wake;
  link_.start(words_);
}

void CallCore::send_text() {
  words_ = with_text(std::move(words_), unsent_text_->text);
  unsent_text_ = nullptr;
  link_.start(words_);
}

BatchCore::BatchCore(Link& link, std::vector<CallItem> items, const lua::Script* script)
    : link_(link), use_(link), items_(std::move(items)), script_(script) {
  for (size_t i = 0; i < items_.size(); ++i) {
    open_.push_back(i);
    replies_.emplace_back(Error{});
  }
  done_ = open_.empty();
  if (!done_) send();
}

BatchCore::~BatchCore() {
  if (!done_) link_.drop();
}

bool BatchCore::advance(TimePoint now) {
  while (!done_ && link_.advance(now)) read(link_.take_batch());
  return done_;
}

Result<std::vector<Result<ReplyPtr>>> BatchCore::take() {
  if (failure_) return with_action("read the locks", *failure_);
  return std::move(replies_);
}

void BatchCore::send() {
  Batch batch;
  for (size_t i : open_) batch.push_back(items_[i].words);
  if (rounds_ > 0) batch.front() = with_text(std::move(batch.front()), script_->text);
  ++rounds_;
  link_.start_batch(std::move(batch));
}

void BatchCore::read(std::vector<Result<ReplyPtr>> replies) {
  // Each round brings the text of the script to one more node of a cluster.
  constexpr int kMostRounds = 64;
  auto failed = [](const Result<ReplyPtr>& reply) { return !reply; };
  if (replies.size() == items_.size() && std::all_of(replies.begin(), replies.end(), failed)) {
    failure_ = replies.front().error();
  }
  std::vector<size_t> without_script;
  for (size_t i = 0; i < open_.size(); ++i) {
    Result<ReplyPtr>& reply = replies[i];
    if (reply && script_ != nullptr && is_noscript(**reply) && rounds_ < kMostRounds) {
      without_script.push_back(open_[i]);
    } else {
      replies_[open_[i]] = checked(items_[open_[i]], std::move(reply));
    }
  }
  open_ = std::move(without_script);
  done_ = open_.empty();
  if (!done_) send();
}

Result<ReplyPtr> BatchCore::checked(const CallItem& item, Result<ReplyPtr> reply) {
  if (!reply) return with_action(item.what, std::move(reply).error());
  if (is_demoted(**reply)) link_.drop();
  if (is_error(**reply)) return refusal(link_, item.what, text_of(**reply), script_, item.words);
  return reply;
}

}  // namespace rlock::redis
