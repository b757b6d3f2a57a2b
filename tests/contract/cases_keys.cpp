// Any one key of a lock may vanish at any time, by eviction or by hand.
#include <algorithm>
#include <functional>
#include <map>

#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;

struct Actor {
  lock::Ticket ticket{};
  lock::Token token{};
  bool runs = false;  // it believes that it holds the lock
  bool over = false;
};

// Three owners, one after the other, with an operator: what each of them does next, whatever the
// replies are.
class Sequence {
 public:
  Sequence(Lab& lab, const Ask& ask) : lab_(lab), ask_(ask) {}

  using Step = std::function<void(Sequence&)>;
  static const std::vector<Step>& steps() {
    static const std::vector<Step> all{
        [](Sequence& s) { s.asks('A'); },           [](Sequence& s) { s.asks('B'); },
        [](Sequence& s) { s.asks('C'); },           [](Sequence& s) { s.renews('A'); },
        [](Sequence& s) { s.asks('B'); },           [](Sequence& s) { s.ends('A'); },
        [](Sequence& s) { s.asks('B'); },           [](Sequence& s) { s.renews('B'); },
        [](Sequence& s) { s.asks('C'); },           [](Sequence& s) { (void)s.lab_.force(); },
        [](Sequence& s) { s.renews('B'); },         [](Sequence& s) { s.ends('B'); },
        [](Sequence& s) { (void)s.lab_.forget(); }, [](Sequence& s) { s.asks('C'); },
        [](Sequence& s) { s.renews('C'); },         [](Sequence& s) { s.ends('C'); },
    };
    return all;
  }

  // Of a lock whose `holders` is deleted nobody is a holder: its commands learn of it.
  void all_are_freed() {
    for (auto& [owner, actor] : actors_) actor.runs = false;
  }

  void end() {
    for (char owner : {'A', 'B', 'C'}) {
      for (int i = 0; i < 40 && !actors_[owner].over; ++i) {
        asks(owner);
        ends(owner);
        lab_.pass(1s);
      }
      need(actors_[owner].over, std::string(1, owner) + " is never served");
    }
  }

 private:
  void asks(char owner) {
    Actor& actor = actors_[owner];
    if (actor.runs || actor.over) return;
    Ask ask = ask_;
    if (actor.ticket.value > 0) ask.ticket = actor.ticket;
    const auto reply = lab_.acquire(owner, ask);
    if (const auto* granted = std::get_if<lock::Granted>(&reply)) {
      begins(owner, granted->token);
    } else if (const auto* queued = std::get_if<lock::Queued>(&reply)) {
      need(actor.ticket.value == 0 || queued->ticket == actor.ticket,
           std::string(1, owner) + " loses its place");
      actor.ticket = queued->ticket;
    } else {
      actor.over = true;
    }
  }

  void begins(char owner, lock::Token token) {
    Actor& actor = actors_[owner];
    need(token > last_ || ask_.limit.value() > 1, "tokens do not grow");
    last_ = actor.token = token;
    actor.runs = true;
    const auto running = std::count_if(actors_.begin(), actors_.end(),
                                       [](const auto& one) { return one.second.runs; });
    need(static_cast<uint64_t>(running) <= ask_.limit.value(), "too many run at once");
    if (ask_.attempt > 0) renews(owner);
  }

  void renews(char owner) {
    Actor& actor = actors_[owner];
    if (!actor.runs) return;
    Ask ask = ask_;
    ask.attempt = 0;
    const auto reply = lab_.renew(owner, actor.token, ask);
    if (std::holds_alternative<lock::Lost>(reply)) ends(owner);
  }

  void ends(char owner) {
    Actor& actor = actors_[owner];
    if (!actor.runs) return;
    actor.runs = false;
    actor.over = true;
    if (ask_.once) {
      lab_.ends(owner, {*ask_.once, {}, actor.token, true, {}});
    } else {
      lab_.release(owner);
    }
  }

  Lab& lab_;
  const Ask ask_;
  std::map<char, Actor> actors_;
  lock::Token last_{};
};

void play(Lab& lab, const Ask& ask, const std::string& deleted, size_t at) {
  lab.cli({"FLUSHALL"});
  lab.pass(10ms);
  Sequence story(lab, ask);
  for (size_t i = 0; i < Sequence::steps().size(); ++i) {
    if (i == at) lab.cli({"DEL", lab.key(deleted)});
    if (i == at && deleted == "holders") story.all_are_freed();
    Sequence::steps()[i](story);
    lab.pass(10ms);
  }
  story.end();
  lab.cli({"DEL", "clock"});
  need(lab.fingerprint().find(" false") == std::string::npos, "a key lives for ever");
}

void any_key_vanishes(Lab& lab) {
  Ask slots, once, supersede, quorum;
  slots.limit = lock::Limit::slots(2);
  once.once = lock::Once{lock::OnceKind::key, "k", {}, {}};
  supersede.supersede = lock::Supersede{};
  quorum.attempt = 1;
  quorum.ticket = {1000};
  const std::pair<const char*, Ask> modes[] = {{"exclusive", {}},
                                               {"slots", slots},
                                               {"once", once},
                                               {"supersede", supersede},
                                               {"quorum", quorum}};
  for (const auto& [mode, ask] : modes) {
    for (const char* key :
         {"holders", "limits", "queue", "alive", "who", "meta", "released", "history", "once"}) {
      for (size_t at = 0; at < Sequence::steps().size(); ++at) {
        try {
          play(lab, ask, key, at);
        } catch (const Broken& broken) {
          throw Broken(std::string(mode) + ", " + key + " deleted before step " +
                       std::to_string(at) + ": " + broken.what());
        }
      }
    }
  }
}

}  // namespace

const std::vector<NamedCase>& key_cases() {
  static const std::vector<NamedCase> cases{
      {"whichever key vanishes, never two hold the lock, and nobody loses its place",
       any_key_vanishes},
  };
  return cases;
}

}  // namespace rlock::contract
