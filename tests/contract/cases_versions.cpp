// This rlock beside the last one that stored no version words, on one server: tests/contract/old
// has that one's scripts. [docs/PROTOCOL.md, "Versions"]
#include <array>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;

std::string file(const std::string& name) {
  std::ifstream in(std::string(RLOCK_OLD_SCRIPTS) + "/" + name + ".lua");
  need(in.good(), "no script " + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// What a client of the old rlock sends. A reply is as Lab::cli shows it: elements a line each.
class Old {
 public:
  explicit Old(Lab& lab) : lab_(lab) {}

  std::string acquire(char owner, const std::string& queueing = "wait") {
    return run("acquire", {id(owner), "0", "1", kTtl, "0", "1", queueing, "", "old", "0"});
  }
  std::string renew(char owner, const std::string& token) {
    return run("renew", {id(owner), "0", token, "1", kTtl, "0", "1", "old", "0"});
  }
  std::string release(char owner) { return run("release", {id(owner), "0", "released", "exit:0"}); }
  std::string cancel(char owner) { return run("release", {id(owner), "0", "cancelled", ""}); }
  std::string inspect() { return run("inspect", {"0", "10", "0", "10"}); }

  std::string granted(char owner) {
    const std::string reply = acquire(owner);
    need(reply.starts_with("granted\n"), "the old one is not granted a free lock: " + reply);
    return reply.substr(reply.find('\n') + 1, 16);
  }

 private:
  static constexpr const char* kTtl = "30000";
  static std::string id(char owner) { return Lab::owner(owner).text(); }

  std::string run(const std::string& script, const std::vector<std::string>& arguments) {
    std::string text = file("prelude") + file(script);
    const std::string time = "call('TIME')";
    text.replace(text.find(time), time.size(), "call('LRANGE', 'clock', 0, 1)");
    std::vector<std::string> words{"EVAL", text, "9"};
    for (const char* suffix :
         {"holders", "limits", "queue", "alive", "who", "meta", "released", "history", "never"}) {
      words.push_back(lab_.key(suffix));
    }
    words.insert(words.end(), arguments.begin(), arguments.end());
    return lab_.cli(words);
  }

  Lab& lab_;
};

// Each request of the old one gets WRONGTYPE, for which it ended with exit code 65, and nothing is
// written.
void old_is_refused(Lab& lab, const std::string& token, const char* state) {
  Old old(lab);
  const std::string before = lab.fingerprint();
  const std::array replies{old.acquire('X'),    old.acquire('X', "never"), old.acquire('A'),
                           old.renew('X', "5"), old.renew('A', token),     old.release('X'),
                           old.release('A'),    old.cancel('B'),           old.inspect()};
  for (size_t i = 0; i < replies.size(); ++i) {
    need(replies[i].find("WRONGTYPE") != std::string::npos,
         std::string(state) + ", request " + std::to_string(i) + " of the old one: " + replies[i]);
  }
  need(lab.fingerprint() == before, std::string(state) + ": the old one wrote something");
}

void old_at_new(Lab& lab) {
  const std::string token = std::to_string(lab.granted('A').value);
  old_is_refused(lab, token, "a lone hold");
  lab.queued('B');
  old_is_refused(lab, token, "a lock that is waited for");
  lab.release('A');
  old_is_refused(lab, token, "a grant that is not claimed");
  lab.granted('B');
  lab.release('B');
  old_is_refused(lab, token, "an idle lock");
  Ask shared;
  shared.limit = lock::Limit::shared();
  lab.granted('C', shared);
  lab.granted('D', shared);
  old_is_refused(lab, token, "a shared lock");
  lab.pass(31s);
  old_is_refused(lab, token, "leases that have ended");
}

void new_is_refused(Lab& lab, char owner, const char* state) {
  const std::string before = lab.fingerprint();
  const Error error = lab.acquire_error(owner);
  need(
      error.kind == ErrorKind::wrong_type && error.text.find("an older rlock") != std::string::npos,
      std::string(state) + ": " + error.text);
  for (auto& request : {+[](Lab& l) { l.renew('X', {5}); }, +[](Lab& l) { l.release('X'); },
                        +[](Lab& l) { l.cancel('Y'); }, +[](Lab& l) { l.force('X'); }}) {
    bool refused = false;
    try {
      request(lab);
    } catch (const Broken&) {
      refused = true;
    }
    need(refused, std::string(state) + ": a request is not refused");
  }
  need(lab.fingerprint() == before, std::string(state) + ": something was written");
}

// The old one's lock is left alone until it is free; then its tokens go on, also where the clock
// was set back.
void new_at_old(Lab& lab) {
  Old old(lab);
  const std::string first = old.granted('X');
  new_is_refused(lab, 'A', "held");
  need(lab.holders() == "X", "its holder is not shown");
  need(old.acquire('Y').starts_with("queued\n"), "the old one's own waiter is refused");
  new_is_refused(lab, 'A', "held and waited for");
  need(old.renew('X', first) == "extended", "the old one is not renewed");
  need(old.release('X') == "freed", "the old one is not released");
  new_is_refused(lab, 'A', "granted to its waiter");
  const std::string last = old.granted('Y');
  need(old.release('Y') == "freed", "the old one is not released");
  lab.pass(-1h);
  const lock::Token token = lab.granted('A');
  need(token.value > std::stoull(last), "the token does not grow");
  need(old.renew('Y', last).find("WRONGTYPE") != std::string::npos, "an old lease is put back");
  old_is_refused(lab, last, "a lock that was taken over");
}

// Until when each owner was promised the lock: by the last reply that granted it or extended its
// lease.
class Promises {
 public:
  explicit Promises(Lab& lab) : lab_(lab), old_(lab) {}

  // One request of one owner: A to C are of this rlock, X to Z of the old one.
  void step(char owner, unsigned what) {
    bool has_it = false;
    try {
      if (what == 0) {
        until_.erase(owner);
        owner < 'X' ? void(lab_.release(owner)) : void(old_.release(owner));
      } else if (what == 1 && tokens_.count(owner) > 0) {
        has_it = owner < 'X' ? renews(owner) : old_renews(owner);
      } else {
        has_it = owner < 'X' ? takes(owner) : old_takes(owner);
      }
    } catch (const Broken&) {
      return;  // refused: the promise before stands
    }
    if (has_it) until_[owner] = now_ + 30s;
  }
  void pass(Millis time) {
    lab_.pass(time);
    now_ += time;
  }
  std::string holders() const {
    std::string letters;
    for (const auto& [owner, until] : until_) {
      if (until > now_) letters.push_back(owner);
    }
    return letters;
  }

 private:
  bool takes(char owner) {
    const lock::AcquireReply reply = lab_.acquire(owner);
    const auto* granted = std::get_if<lock::Granted>(&reply);
    if (granted != nullptr) tokens_[owner] = std::to_string(granted->token.value);
    return granted != nullptr;
  }
  bool renews(char owner) {
    return std::holds_alternative<lock::Renewal>(lab_.renew(owner, {std::stoull(tokens_[owner])}));
  }
  bool old_takes(char owner) {
    const std::string reply = old_.acquire(owner);
    if (!reply.starts_with("granted\n")) return false;
    tokens_[owner] = reply.substr(reply.find('\n') + 1, 16);
    return true;
  }
  bool old_renews(char owner) {
    const std::string reply = old_.renew(owner, tokens_[owner]);
    return reply == "extended" || reply == "put_back";
  }

  Lab& lab_;
  Old old_;
  Millis now_{0};
  std::map<char, Millis> until_;
  std::map<char, std::string> tokens_;
};

void side_by_side(Lab& lab) {
  std::mt19937 random(82714);
  size_t holders_seen = 0;
  for (int round = 0; round < 12; ++round) {
    lab.cli({"FLUSHALL"});
    lab.pass(0s);
    Promises promises(lab);
    for (int i = 0; i < 40; ++i) {
      promises.step("ABCXYZ"[random() % 6], random() % 4);
      need(promises.holders().size() <= 1, "two holders: " + promises.holders());
      holders_seen += promises.holders().size();
      if (random() % 8 == 0) promises.pass(Millis(1000 * (random() % 20)));
    }
  }
  need(holders_seen > 100, "hardly anybody held it: " + std::to_string(holders_seen));
}

}  // namespace

const std::vector<NamedCase>& version_cases() {
  static const std::vector<NamedCase> list{
      {"an older rlock is stopped at each lock of this one, and writes nothing", old_at_new},
      {"the lock of the older one is taken over once it is free, with its tokens", new_at_old},
      {"the older rlock and this one, side by side, are never two holders", side_by_side},
  };
  return list;
}

}  // namespace rlock::contract
