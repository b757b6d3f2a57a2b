#include "redis/store/versions.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "lua/scripts.hpp"
#include "redis/link/reply.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

constexpr std::string_view kOtherForm = "is stored by another version of rlock";
constexpr std::string_view kNeedsVersion = "can only be acquired by rlock";

// NAME of `prefix{NAME}:suffix`.
std::string_view name_in(std::string_view key) {
  key = key.substr(0, key.rfind("}:"));
  key.remove_prefix(std::min(key.size(), key.find('{') + 1));
  return key;
}

// As a word of a shell.
std::string quoted(std::string_view key) {
  std::string word = "'";
  for (const char c : key) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

bool is_of_other_form(const redisReply& reply) {
  if (is_error(reply)) return text_of(reply).starts_with("WRONGTYPE");
  return reply.type == REDIS_REPLY_STRING && text_of(reply) != std::to_string(lua::form);
}

// Reads the forms of some locks of the page, with one command each.
class FormCheck final : public lock::Reply<lock::NamesPage> {
 public:
  FormCheck(Link& link, lock::NamesPage page, std::vector<std::string> names, Batch commands)
      : link_(link), use_(link), page_(std::move(page)), names_(std::move(names)) {
    link_.start_batch(std::move(commands));
  }
  ~FormCheck() override {
    if (!done_) link_.drop();
  }
  FormCheck(const FormCheck&) = delete;
  FormCheck& operator=(const FormCheck&) = delete;

  void wants(std::vector<pollfd>& out) const override { link_.wants(out); }
  TimePoint due() const override { return link_.due(); }
  Answered answered() const override { return link_.answered(); }
  bool advance(TimePoint now) override {
    if (!done_ && link_.advance(now)) {
      done_ = true;
      read(link_.take_batch());
    }
    return done_;
  }
  Result<lock::NamesPage> take() override { return std::move(page_); }

 private:
  void read(const std::vector<Result<ReplyPtr>>& replies) {
    for (size_t i = 0; i < std::min(names_.size(), replies.size()); ++i) {
      if (!replies[i]) {
        page_ = replies[i].error();
        return;
      }
      if (is_of_other_form(**replies[i])) page_->in_use.push_back(names_[i]);
    }
  }

  Link& link_;
  const LinkUse use_;
  Result<lock::NamesPage> page_;
  const std::vector<std::string> names_;
  bool done_ = false;
};

}  // namespace

int stored_form() {
  return lua::form;
}

std::optional<Error> other_version(std::string_view text, std::span<const std::string> keys) {
  const std::string_view error = util::take_until(text, ' ');
  if ((error != "FORM" && error != "UNKNOWN") || keys.empty()) return std::nullopt;
  const std::string_view name = name_in(keys.front());
  if (error == "UNKNOWN") {
    const std::string_view word = util::take_until(text, ' ');
    return Error{
        ErrorKind::config,
        util::format("\"{}\" {} {} or later, because an rlock of that version uses it in a "
                     "way that this one does not know ({})",
                     name, kNeedsVersion, text, word)};
  }
  std::string deletion = "redis-cli DEL";
  for (const std::string& key : keys) deletion += " " + quoted(key);
  return Error{
      ErrorKind::config,
      util::format("\"{}\" {} (form {}; this one has form {}): when all its runs have ended "
                   "on all hosts, delete its keys: {}",
                   name, kOtherForm, text, lua::form, deletion)};
}

bool is_of_other_version(const Error& error) {
  const auto has = [&](std::string_view part) { return error.text.find(part) != error.text.npos; };
  return error.kind == ErrorKind::config && (has(kOtherForm) || has(kNeedsVersion));
}

lock::InFlight<lock::NamesPage> with_other_forms(Link& link, const std::string& prefix,
                                                 lock::NamesPage page) {
  const std::set<std::string> in_use(page.in_use.begin(), page.in_use.end());
  std::vector<std::string> names;
  Batch commands;
  for (const std::string& name : page.names) {
    if (in_use.contains(name)) continue;
    names.push_back(name);
    commands.push_back({"HGET", util::format("{}{{{}}}:meta", prefix, name), "form"});
  }
  if (names.empty()) return lock::ready<lock::NamesPage>(std::move(page));
  return std::make_unique<FormCheck>(link, std::move(page), std::move(names), std::move(commands));
}

}  // namespace rlock::redis
