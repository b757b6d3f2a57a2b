// Several holders: limits, slots, nested runs and min-hold.
#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;
using lock::Entry;
using lock::Limit;
using lock::Lost;
using lock::LostHow;
using lock::Renewal;
using lock::Token;

CASE("slots fill up and are handed over") {
  lab.play("ABC granted slots=3");
  need(lab.queued('D', asking("slots=3")).position == 1, "not the head");
  lab.play("B released; D granted slots=3; ACD hold; AC released; E granted slots=3");
}
MUTANT("a shared holder excludes others",
       {"if others + 1 > math.min(limit, least) then", "if true then"});

CASE("the smallest limit applies") {
  lab.play(
      "A granted slots=3; B granted slots=2; C queued slots=5; B released; "
      "C granted slots=5; D granted slots=3; E queued");
}
MUTANT("a newcomer ignores the limits of the holders", {"math.min(limit, least)", "limit"});
MUTANT("a holder leaves its limit", {"call('ZREM', LIMITS, owner)", ""});

// The grant that the newcomer claims immediately would have ended earlier.
CASE("the head is woken only if a lease ends earlier than it knows") {
  lab.play("A granted slots=2; C queued; 1s pass; B granted slots=2 urgent=1h; C asleep");
  lab.play("B released; C asleep; D granted slots=2 ttl=5s urgent=1h; C woken");
}
MUTANT("each grant wakes the head", {"or M.holders.first_end() < at_start.first_end", "or true"});
MUTANT("a shorter lease does not wake the head",
       {"or M.holders.first_end() < at_start.first_end", ""});

CASE("an unknown slot is not granted a second time") {
  lab.play(
      "A granted slots=2; A inner renewed slots=2; who deleted; A inner renewed slots=2; "
      "B queued slots=2; A renewed slots=2 slot=1; B takes: 2 slots=2");
}
MUTANT("a holder without a slot leaves all slots free",
       {"(not line or are_numbered(line.limit))", "not line"});

CASE("a shared waiter behind an exclusive one waits") {
  lab.play(
      "AB granted shared; C queued; D queued shared; CD wait; A released; C queued; "
      "B released; C granted; D queued shared; C released; D granted shared");
}
MUTANT("a release frees the other holders",
       {"call('ZREM', HOLDERS, owner)", "call('DEL', HOLDERS)"});

CASE("the late renewal of a released slot is lost") {
  lab.play("AB granted slots=3; BA released; B lost: released slots=3; nobody holds");
}

CASE("flushed slots are restored, newest first; one newcomer costs one") {
  lab.play(
      "ABC granted slots=3; data lost; 1s pass; C restored slots=3 slot=3; "
      "A restored slots=3 slot=1; B restored slots=3 slot=2");
  lab.play(
      "data lost; 1s pass; D takes: 1 slots=3; C restored slots=3 slot=3; A lost slots=3 slot=1; "
      "B restored slots=3 slot=2");
}

CASE("a nested run restores its outer run too") {
  lab.play(
      "A granted; data lost; 1s pass; A inner restored; A inner released; A holds; "
      "A extended");
}
MUTANT("a nested run does not restore the entry of its outer run",
       {"{['0'] = lease_of(entry), [entry]", "{[entry]"});

CASE("no entry remains after a release outside and a crash inside") {
  lab.play(
      "A granted; A inner renewed; A released; A holds; A lost; A ended; 31s pass; A ended; "
      "A lost; nobody holds");
}
MUTANT("a released entry can be renewed", {"M.tombstones.add(owner .. ':' .. entry, 2)", ""});
MUTANT("a release ends the entries of others", {"others[entry] = nil", "others = {}"});

// An inner run that is killed keeps a lock of a long ttl for a minute at most.
// The long lease of the outer run ends with it.
CASE("when the outer run ends, the lease of the nested run remains") {
  lab.play("A granted ttl=10m; A inner renewed; A released; A holds; 31s pass; B granted");
}
MUTANT("the lease of an outer run outlives it",
       {"M.holders.store(owner, line, latest)",
        "M.holders.store(owner, line, math.max(latest, M.holders.held_until(owner)))"});

// For the message about a nested run that was killed together with its outer one.
CASE("a release says how long nested runs keep the lock") {
  lab.play("A granted ttl=10m; A inner renewed ttl=30s");
  need(lab.release('A').left == 30s, "not the rest of the nested lease");
  lab.play("31s pass; B granted; B inner renewed ttl=30s; all forced");
  need(lab.release('B').left == 30s, "not the rest of the nested lease of a broken lock");
  lab.play("31s pass; C granted");
  need(lab.release('C').left == 0s, "something is left of a lock that is free");
}
MUTANT("a release does not say how long nested runs keep the lock", {"latest - now", "0"});
MUTANT("a release of a broken lock does not say how long it is held",
       {"M.notes.of(owner), left = left}", "M.notes.of(owner)}"});

CASE("the lease of a nested run is short") {
  lab.play("A granted; A inner renewed ttl=1h; A released; 59s pass; B queued; 1s pass; B granted");
}
MUTANT("a nested run has the lease of its outer run", {"math.min(ttl, INNER_LEASE)", "ttl"});

// An inner run that releases before the outer one has restored its flushed lease.
CASE("a nested run ends only its own entry") {
  lab.play("A granted; A inner renewed; data lost; 1s pass; A inner released; A restored");
}
MUTANT("a nested run ends its outer run, too",
       {"M.tombstones.add(entry == '0' and owner or owner .. ':' .. entry, ended_kind)",
        "M.tombstones.add(owner, ended_kind)"});

// The lock counts as held until the last of those who run under it has confirmed.
CASE("a broken lock is held until the nested and the outer run have confirmed") {
  for (auto [first, last] :
       {std::pair{Lab::inner(), Entry::outer()}, {Entry::outer(), Lab::inner()}}) {
    lab.play("A granted; A inner renewed; all forced; A woken");
    need(lab.release('A', first).ending == lock::OwnerEnd::forced, "not reported as forced");
    lab.play("A holds; A woken");
    need(as<Lost>(lab.renew('A', lab.token('A'), {}, last), "renewed").how == LostHow::forced,
         "not forced");
    need(lab.release('A', last).ending == lock::OwnerEnd::forced, "not reported as forced");
    lab.play("nobody holds; data lost; 1s pass");
  }
}
MUTANT("the first run to end under a broken lock frees it",
       {"if ending == 'released' and next(others) then",
        "if ending == 'released' and line.state ~= 'revoked' and next(others) then"});
MUTANT("a release does not wake the other runs under a broken lock",
       {"M.wakes.add(owner, 'revoked')\n  return", "return"});

// The longest --min-hold of all who run under it counts.
CASE("the cool-down of a nested run counts") {
  lab.play(
      "A granted min-hold=5s; A inner renewed min-hold=60s; A inner released; "
      "A renewed min-hold=5s; A released; 59s pass; B queued; 1s pass; B granted");
}
MUTANT("the scripts ignore the min-hold of a nested run",
       {"if min_hold > line.min_hold then", "if false then"});

CASE("exclusive inside shared is an upgrade") {
  lab.play("A granted shared");
  as<lock::Upgrade>(lab.renew('A', lab.token('A'), {}, Lab::inner()), "an upgrade is let in");
}
MUTANT("an exclusive run enters a shared lock", {"if line.limit > limit then", "if false then"});

CASE("a short lease does not shorten the expiry of the keys") {
  lab.play("A granted shared ttl=1s; B granted shared ttl=40d; C granted shared ttl=1s");
  for (const char* suffix : {"holders", "limits", "who"}) {
    long long left = std::stoll(lab.cli({"PTTL", lab.key(suffix)}));
    need(left > Millis(39 * 24h).count(), std::string(suffix) + " expires with the shorter lease");
  }
}

CASE("a cool-down keeps the lock, and the head starts on time") {
  lab.play("A granted min-hold=60s; B queued; 1s pass; A released");
  const auto waiting = lab.queued('B');
  need(waiting.look_again && *waiting.look_again <= 59s, "the head does not know when it ends");
  need(lab.inspect().holders.at(0).state == lock::HolderState::cooldown, "no cooldown");
  lab.play("59s pass; B granted");
}
MUTANT("a release leaves no cool-down",
       {"if not unused and line.min_hold > 0 then M.cooldowns.start(owner, line) end", ""});

// The reply was lost, and the request came again when another held the lock already.
CASE("a cool-down is broken by its owner, once") {
  lab.play("A granted min-hold=60s; A released; B queued");
  const auto first = as<lock::Forced>(lab.force('A'), "not forced");
  need(first.broken.size() == 1 && first.next == Lab::owner('B').text(), "B is not the next");
  const auto again = as<lock::Forced>(lab.force('A'), "denied");
  need(again.broken.empty() && lab.holders() == "B", "B was broken for A");
}

CASE("a cool-down survives a crash and takes one slot") {
  const Ask slots = asking("slots=2 min-hold=60s");
  lab.play(
      "A granted slots=2 min-hold=60s; 31s pass; B granted slots=2 min-hold=60s; "
      "C queued slots=2 min-hold=60s; 20s pass");
  lab.renew('B', {}, slots);
  lab.play("C queued slots=2 min-hold=60s; 9s pass; C granted slots=2 min-hold=60s");
}
MUTANT("a crash leaves no cool-down",
       {"    M.cooldowns.start(owner, line)\n    M.tombstones", "    M.tombstones"});

// Longer than the keys outlive the lease: a holder that crashes leaves it all the same.
CASE("the keys live as long as a cool-down") {
  lab.play("A granted shared min-hold=40d");
  for (const char* suffix : {"holders", "limits", "who"}) {
    long long left = std::stoll(lab.cli({"PTTL", lab.key(suffix)}));
    need(left > Millis(39 * 24h).count(),
         std::string(suffix) + " expires before the min-hold is over");
  }
}
MUTANT("the keys expire before the cool-down",
       {"math.max(now, last_lease, memory.lasts)", "math.max(now, last_lease)"});

CASE("a cool-down is not longer if the server's clock is set back") {
  lab.play(
      "A granted; -60s pass; A released; nobody holds; B granted min-hold=1s; -60s pass; "
      "B released; 1s pass; C granted");
}
MUTANT("a cool-down counts from a start in the future",
       {"math.min(line.since, now) + line.min_hold", "line.since + line.min_hold"});

CASE("a command that never started has no cool-down") {
  lab.play("A granted min-hold=60s");
  lab.release('A', lock::Entry::outer(), "exit:127", lock::ReleaseHow::unused);
  lab.play("nobody holds");
  need(as<lock::Run>(lab.history().at(0), "no run").result == "exit:127",
       "it is not in the history");
}
MUTANT("a run that never started leaves a cool-down", {"if not unused and line", "if line"});

CASE("a grant that was never claimed has no cool-down") {
  lab.play("A granted; B queued min-hold=60s; C queued; A released; 2001ms pass; C granted");
}
MUTANT("an unclaimed grant leaves a cool-down",
       {"line.state ~= 'held' or ends <= now", "ends <= now"});

CASE("slots: each holder has the lowest free slot") {
  lab.play(
      "A takes: 1 slots=3; A takes: 1 slots=3; B takes: 2 slots=3; C takes: 3 slots=3; "
      "DEF queued slots=3; BA released; slots 1 2 3; D takes: 2 slots=3; E takes: 1 slots=3; "
      "C released; 3s pass; D released; G takes: 2 slots=3");
  need(lab.inspect().holders.size() == 2, "another number of holders");
}
MUTANT("two holders have the same slot",
       {"while used[line.slot] do line.slot = line.slot + 1 end", ""});
MUTANT("a holder has a slot that is not the lowest free one",
       {"while used[line.slot] do line.slot = line.slot + 1 end",
        "for slot in pairs(used) do line.slot = math.max(line.slot, slot + 1) end"});
MUTANT(
    "a repeated acquire names another slot",
    {"M.stamps.store(request.owner, request.stamp) end\n  return {'granted', token = line.token, "
     "slot = line.slot}",
     "M.stamps.store(request.owner, request.stamp) end\n  return {'granted', token = line.token}"});

// Two that end at once beside a third are followed by two of different slots.
CASE("slots: holders granted at the same time have different slots") {
  lab.play(
      "A granted slots=3 ttl=1h; BC granted slots=3; DE queued slots=3; 10s pass; "
      "DE queued slots=3; 10s pass; DE queued slots=3; 11s pass; F queued slots=3; ADE hold; "
      "slots 1 2 3");
}

CASE("slots: only locks of several holders have slots, each within its own limit") {
  lab.play(
      "A takes: 1 slots=3; B takes: 2 slots=3; A released; C takes: 1 slots=2; BC released; "
      "D takes: 0 shared; E takes: 1 slots=2; DE released; F takes: 0; F released; "
      "G takes: 0 slots=1025; H takes: 1 slots=1024");
}
MUTANT("shared holders have slots", {"limit > 1 and limit <= 1024", "limit > 1"});
MUTANT("exclusive holders have slots", {"limit > 1 and limit <= 1024", "limit <= 1024"});

CASE("slots: renewals and the cool-down keep the slot") {
  lab.play("A granted slots=2; B granted slots=2 min-hold=60s");
  for (int i = 0; i < 3; ++i) {
    lab.play("20s pass; A extended slots=2");
    if (i == 1) lab.release('B');
    if (i < 2) lab.play("slots 1 2");
  }
  lab.play("C takes: 2 slots=2; slots 1 2");
}
MUTANT("the cool-down has no slot",
       {"slot = line.slot, record = line.record}, ends", "record = line.record}, ends"});

CASE("slots: a single holder keeps its slot") {
  lab.play("A granted slots=2; 20s pass; A renewed slots=2; slots 1; B takes: 2 slots=2");
}
MUTANT("a renewal loses the slot", {"if entry == '0' then line.ttl = ttl end", "line.slot = nil"});

CASE("slots: a lease that is restored has its slot, or is lost") {
  lab.play(
      "AB granted slots=3; data lost; 1s pass; C takes: 1 slots=3; D queued; "
      "B restored slots=3 slot=2; slots 1 2; A lost: taken slots=3 slot=1; D cancelled; "
      "E takes: 3 slots=3");
}
MUTANT("a renewal restores a lease although another holder has its slot",
       {"if not why and slot and M.slots.used()[slot] then why = 'taken' end", ""});
MUTANT("a renewal restores a lease without its slot",
       {"responsive = args.responsive, slot = slot,", "responsive = args.responsive,"});

// A script that puts one back and admits others gives them other slots.
CASE("slots: other runs are admitted next to a restored one") {
  lab.play("AB granted slots=2; C queued slots=2");
  lab.cli({"ZREM", lab.key("holders"), Lab::owner('A').text(), Lab::owner('B').text()});
  lab.play("meta deleted; A restored slots=2 slot=1; AC hold; slots 1 2");
}

CASE("slots: no run takes the slot of a deleted record") {
  lab.play(
      "AY granted slots=2; Y released; who deleted; B queued slots=2; "
      "A extended slots=2 slot=1; AB hold; B takes: 2 slots=2");
}
MUTANT("a newcomer is granted the slot of a holder without a line",
       {"not (are_numbered(limit) and used().unknown)", "true"});

// Its lease has ended, with or without a script that found it.
CASE("min-hold: a run's own cool-down does not prevent its lease") {
  for (const char* others : {"", "C queued; C cancelled; "}) {
    lab.play(std::string("A granted min-hold=5m; 31s pass; ") + others + "A restored min-hold=5m");
    const auto holders = lab.inspect().holders;
    need(holders.size() == 1 && holders[0].state == lock::HolderState::held, "its cool-down stays");
    lab.play("A released; B busy; 5m pass; B granted; B released; 1h pass");
  }
  lab.play("A granted min-hold=5m; 31s pass");
  need(as<Lost>(lab.renew('A', {}), "put back without a token").how == LostHow::expired, "lost");
  lab.play("B busy; 4m28s pass; B busy; 1s pass; B granted");
}

// Those who look see what keeps the lock.
CASE("min-hold: the cool-down of a run that died is seen before a script has found it") {
  lab.play("A granted min-hold=5m; 31s pass");
  const auto cools = [&] {
    const lock::Snapshot seen = lab.inspect();
    return seen.live_holders == 1 && seen.holders.size() == 1 &&
           seen.holders[0].state == lock::HolderState::cooldown &&
           seen.holders[0].left == 5min - 31s && seen.holders[0].record == "record of A";
  };
  const std::string before = lab.fingerprint();
  need(cools(), "it is not seen");
  need(lab.fingerprint() == before, "a look writes");
  lab.play("B busy");
  need(cools(), "another one");
}

// It was granted the lock again during its cool-down.
CASE("min-hold: two cool-downs of an owner count once") {
  lab.play(
      "A granted slots=3 min-hold=10m; 31s pass; A granted slots=3 min-hold=10m; "
      "B granted slots=3 ttl=1h; C queued slots=3; A released; C woken; ABC hold");
}

CASE("min-hold: a second cool-down of an owner leaves the other slots free") {
  lab.play(
      "A granted slots=2 min-hold=70s; 31s pass; A granted slots=2 min-hold=10m; 40s pass; "
      "B granted slots=2");
}

CASE("slots: a claim that finds an ended lease serves the next one") {
  lab.play(
      "A granted slots=2 ttl=10s; B granted slots=2; CD queued slots=2; 9s pass; B released; "
      "1s pass; C granted slots=2; CD hold; D woken");
}

}  // namespace
}  // namespace rlock::contract
