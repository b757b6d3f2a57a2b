// The steps of a case, in words.
#include <functional>
#include <sstream>

#include "contract/lab.hpp"
#include "util/duration.hpp"

namespace rlock::contract {
namespace {

Millis time_of(const std::string& text) {
  const auto time = util::parse_duration(text);
  need(bool(time), "no duration: " + text);
  return *time;
}

void once_in(Ask& ask, lock::OnceKind kind, const std::string& key, Millis span) {
  ask.once = lock::Once{kind, key, span, {}};
}

const std::map<std::string, std::function<void(Ask&, const std::string&)>> kWords{
    {"slots",
     [](Ask& ask, const std::string& n) { ask.limit = lock::Limit::slots(std::stoull(n)); }},
    {"shared", [](Ask& ask, const std::string&) { ask.limit = lock::Limit::shared(); }},
    {"ttl", [](Ask& ask, const std::string& time) { ask.ttl = time_of(time); }},
    {"min-hold", [](Ask& ask, const std::string& time) { ask.min_hold = time_of(time); }},
    {"unrenewed", [](Ask& ask, const std::string&) { ask.responsive = lock::Responsive::no; }},
    {"at-once", [](Ask& ask, const std::string&) { ask.queueing = lock::Queueing::never; }},
    {"max-queue", [](Ask& ask, const std::string& n) { ask.max_queue = std::stoull(n); }},
    {"ticket", [](Ask& ask, const std::string& n) { ask.ticket = {std::stoull(n)}; }},
    {"attempt",  // as to a server of a quorum
     [](Ask& ask, const std::string& n) {
       ask.attempt = std::stoull(n);
       ask.ticket = {1000};
     }},
    {"ahead", [](Ask& ask, const std::string& time) { ask.ahead = time_of(time); }},
    {"rows", [](Ask& ask, const std::string& n) { ask.history_rows = std::stoull(n); }},
    {"slot", [](Ask& ask, const std::string& n) { ask.slot = std::stoull(n); }},
    {"while-closed", [](Ask& ask, const std::string&) { ask.while_closed = true; }},
    {"urgent", [](Ask& ask, const std::string& time) { ask.urgent = time_of(time); }},
    {"supersede",
     [](Ask& ask, const std::string& n) {
       ask.supersede = lock::Supersede{};
       if (!n.empty()) ask.supersede->number = std::stoull(n);
     }},
    {"once",
     [](Ask& ask, const std::string& key) { once_in(ask, lock::OnceKind::key, key, Millis(0)); }},
    {"day",
     [](Ask& ask, const std::string& date) {
       once_in(ask, lock::OnceKind::period, "day:" + date, std::chrono::hours(25));
     }},
    {"month",
     [](Ask& ask, const std::string& month) {
       once_in(ask, lock::OnceKind::period, "month:" + month, std::chrono::hours(720));
     }},
    {"within",
     [](Ask& ask, const std::string& time) {
       once_in(ask, lock::OnceKind::within, "", time_of(time));
     }},
    {"tries", [](Ask& ask, const std::string& n) { ask.once->max_failures = std::stoull(n); }},
    {"asked", [](Ask& ask, const std::string& time) { ask.asked = time_of(time); }},
};

void apply_words(Ask& ask, std::istream& words) {
  for (std::string word; words >> word;) {
    const size_t end = word.find('=');
    const auto known = kWords.find(word.substr(0, end));
    need(known != kWords.end(), "unknown word: " + word);
    known->second(ask, end == word.npos ? "" : word.substr(end + 1));
  }
}

const std::map<std::string, lock::LostHow> kLost{
    {"deleted", lock::LostHow::deleted}, {"taken", lock::LostHow::taken},
    {"expired", lock::LostHow::expired}, {"released", lock::LostHow::released},
    {"forced", lock::LostHow::forced},   {"unissued", lock::LostHow::unissued},
};
const std::map<std::string, lock::OwnerEnd> kEnds{
    {"expired", lock::OwnerEnd::expired},     {"released", lock::OwnerEnd::released},
    {"cancelled", lock::OwnerEnd::cancelled}, {"removed", lock::OwnerEnd::removed},
    {"forced", lock::OwnerEnd::forced},
};

}  // namespace

Ask asking(const std::string& text) {
  Ask ask;
  std::istringstream words(text);
  apply_words(ask, words);
  return ask;
}

void Lab::play(const std::string& steps, const Ask& ask) {
  std::istringstream text(steps);
  for (std::string step; std::getline(text >> std::ws, step, ';');) {
    try {
      perform(step, ask);
    } catch (const Broken& broken) {
      throw Broken("`" + step + "` of `" + steps + "`: " + broken.what());
    }
  }
}

void Lab::perform(const std::string& step, Ask ask) {
  std::istringstream words(step);
  std::string who, verb, how;
  words >> who >> verb;
  lock::Entry entry = lock::Entry::outer();
  if (verb == "inner") {
    entry = inner();
    words >> verb;
  }
  if (verb.ends_with(':')) {
    verb.pop_back();
    words >> how;
  } else if (verb == "times" || who == "all") {
    words >> how;
  }
  if (verb == "forgotten") {
    const auto gone = who == "all" ? forget() : forget(who);
    std::ostringstream said;
    said << who << " forgotten " << gone.marks << ' ' << gone.failures << ' ' << gone.numbers;
    return need(step == who + " forgotten" || step == said.str(), said.str());
  }
  if (who == "counts") return need("counts " + counts() == step, counts());
  if (who == "rows") return need("rows " + rows() == step, rows());
  if (who == "slots") return need("slots " + slots() == step, slots());
  if (verb == "opened") return need(open(who) == lock::ClosureReply::done, "not opened");
  if (verb == "closed") {
    std::string length, over, seen;
    words >> length >> over >> seen;
    const auto before = over.empty() ? std::nullopt : std::optional(seen);
    return need(close(who, time_of(length), before) == lock::ClosureReply::done, "not closed");
  }
  apply_words(ask, words);
  const std::string whom = who == "nobody" ? "" : who;
  if (verb == "hold" || verb == "holds") return need(holders() == whom, "held by " + holders());
  if (verb == "wait" || verb == "waits") return need(waiters() == whom, "waiting: " + waiters());
  if (verb == "pass") return pass(who[0] == '-' ? -time_of(who.substr(1)) : time_of(who));
  if (verb == "deleted") return (void)cli({"DEL", key(who)});
  if (step == "data lost") return (void)cli({"FLUSHALL"});
  if (who == "memory") return (void)cli({"CONFIG", "SET", "maxmemory", verb == "full" ? "1" : "0"});
  if (step == "all keys end") {
    cli({"DEL", "clock"});
    need(fingerprint().find(" false") == std::string::npos, "a key lives for ever");
    return set_clock();
  }
  if (who == "all" && verb == "forced") {
    const auto when = how == "now" ? lock::ForceWhen::now : lock::ForceWhen::confirmed;
    return (void)as<lock::Forced>(force(when), "not forced");
  }
  for (char letter : who) perform(letter, entry, verb, how, ask);
}

void Lab::perform(char letter, const lock::Entry& entry, const std::string& verb,
                  const std::string& how, const Ask& ask) {
  const auto asks = [&] { return acquire(letter, ask); };
  const auto renews = [&] { return renew(letter, token(letter), ask, entry); };
  const auto end = [&](bool succeeded) {
    return ends(letter, {ask.once.value(), ask.asked, token(letter), succeeded, {}}).marked;
  };
  const std::string other = "another reply";
  if (verb == "granted") {
    granted(letter, ask);
  } else if (verb == "takes") {
    const uint64_t slot = as<lock::Granted>(asks(), other).slot;
    need(slot == std::stoull(how), "slot " + std::to_string(slot));
  } else if (verb == "confirmed") {
    granted(letter, ask);
    as<lock::Renewal>(renews(), other);
  } else if (verb == "withdraws") {
    cancel_attempt(letter, ask.attempt, ask.ticket);
  } else if (verb == "queued") {
    queued(letter, ask);
  } else if (verb == "busy") {
    Ask at_once = ask;
    at_once.queueing = lock::Queueing::never;
    as<lock::Busy>(acquire(letter, at_once), other);
  } else if (verb == "done") {
    const auto by = as<lock::AlreadyDone>(asks(), other).record;
    need(how.empty() || by == "record of " + how, "by " + by);
  } else if (verb == "refused") {
    as<lock::FailedTooOften>(asks(), other);
  } else if (verb == "ended") {
    const auto ended = as<lock::OwnerEnded>(asks(), other);
    need(how.empty() || ended.ending == kEnds.at(how), "another end");
  } else if (verb == "superseded") {
    const auto by = as<lock::Superseded>(asks(), other).record;
    need(by == "record of " + how, "by " + by);
  } else if (verb == "renewed") {
    as<lock::Renewal>(renews(), other);
  } else if (verb == "extended") {
    need(as<lock::Renewal>(renews(), other) == lock::Renewal::extended, "restored");
  } else if (verb == "restored") {
    need(as<lock::Renewal>(renews(), other) == lock::Renewal::restored, "extended");
  } else if (verb == "lost") {
    const auto lost = as<lock::Lost>(renews(), other);
    need(how.empty() || lost.how == kLost.at(how), lock::to_string(lost.how));
    need(how != "forced" || lost.note == "by the operator", "it is not said by whom");
  } else if (verb == "released") {
    const auto reply = release(letter, entry);
    need(how.empty() || reply.ending == kEnds.at(how), "another end");
  } else if (verb.starts_with("exit:") || verb.starts_with("signal:")) {
    release(letter, entry, verb);
  } else if (verb == "ends") {
    release(letter, entry, how);
  } else if (verb == "times") {
    cancel(letter, lock::CancelHow::timed_out);
  } else if (verb == "cancelled") {
    cancel(letter);
  } else if (verb == "removed") {
    need(cancel(letter, lock::CancelHow::removed) == lock::CancelReply::was_queued, "not queued");
  } else if (verb == "moved") {
    need(move_first(letter) == lock::MoveReply::moved, "not queued");
  } else if (verb == "runs" || verb == "marked") {
    if (verb == "runs") granted(letter, ask);
    need(end(true) == (how.empty() ? lock::Marked::yes : lock::Marked::no_room), "otherwise");
  } else if (verb == "unmarked" || verb == "fails") {
    need(end(verb == "unmarked") == lock::Marked::no, "marked");
  } else {
    need(verb == "woken" || verb == "asleep", "unknown verb");
    need(woken(letter) == (verb == "woken"), verb == "woken" ? "asleep" : "woken");
  }
}

}  // namespace rlock::contract
