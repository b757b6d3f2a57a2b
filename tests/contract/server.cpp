// What the server may do to the keys: memory full, wrong types, and parts or any one key deleted.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "contract/lab.hpp"
#include "redis/store/acl.hpp"
#include "util/text.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;
using lock::ForceWhen;

CASE("with memory full everything but a new acquisition works") {
  lab.play("Z granted; memory full; Z renewed");
  const std::string alone = lab.fingerprint();
  need(lab.acquire_error('Y').kind == ErrorKind::unavailable, "a new acquisition is not refused");
  need(lab.fingerprint() == alone, "a refused acquisition wrote something");
  lab.play("Z released: released; memory free; A granted; A inner renewed; BC queued; memory full");
  const std::string before = lab.fingerprint();
  need(lab.acquire_error('D').kind == ErrorKind::unavailable, "a new acquisition is not refused");
  need(lab.fingerprint() == before, "a refused acquisition wrote something");
  lab.play("A renewed");
  Ask changed;
  changed.record = "another record";
  lab.play("A renewed", changed);
  lab.play(
      "B queued; A inner released; A released: released; B granted; C cancelled; B released; "
      "B released: released; nobody holds; nobody waits; memory free");
}
MUTANT("the first write of a renewal needs memory",
       {"M.keys.touch()\nlocal held = M.holders.held_until(owner)",
        "local held = M.holders.held_until(owner)"});
MUTANT("the first write of a claim needs memory",
       {"if held or ticket or done_reply() then M.keys.touch()",
        "if ticket or done_reply() then M.keys.touch()"});
MUTANT("the first write of a waiter's request needs memory",
       {"if held or ticket or done_reply() then M.keys.touch()",
        "if held or done_reply() then M.keys.touch()"});
MUTANT("the first write of a release needs memory",
       {"local function report_absent()\n  M.keys.touch()", "local function report_absent()"});
MUTANT("the first write of the end of an entry needs memory",
       {"local function drop_entry(line, others)\n  M.keys.touch()",
        "local function drop_entry(line, others)"});

CASE("a key of a wrong type stops each script before it writes") {
  for (const char* suffix :
       {"holders", "limits", "queue", "alive", "who", "meta", "released", "history", "once"}) {
    lab.play("A granted; B queued");
    lab.cli({"SET", lab.key(suffix), "not ours"});
    const std::string before = lab.fingerprint();
    need(lab.acquire_error('C').kind == ErrorKind::wrong_type,
         std::string(suffix) + ": not refused as a wrong type");
    for (auto& broken : {+[](Lab& l) { l.release('A'); }, +[](Lab& l) { l.cancel('B'); },
                         +[](Lab& l) { l.force(); }, +[](Lab& l) { l.renew('A', {1}); }}) {
      bool refused = false;
      try {
        broken(lab);
      } catch (const Broken&) {
        refused = true;
      }
      need(refused, std::string(suffix) + ": not refused");
    }
    need(lab.fingerprint() == before, std::string(suffix) + ": something was written");
    lab.play("data lost; 0s pass");
  }
}
MUTANT("a script does not read all keys before its first write", {"call('LLEN', HISTORY)", ""});

CASE("a key of a wrong type is named") {
  for (const char* suffix :
       {"holders", "limits", "queue", "alive", "who", "meta", "released", "history", "once"}) {
    lab.play("A granted; B queued");
    lab.cli({"SET", lab.key(suffix), "not ours"});
    const std::string text = lab.acquire_error('C').text;
    need(text.find("the key " + lab.key(suffix) + " is used") != text.npos, text);
    lab.play("data lost; 0s pass");
  }
}
MUTANT("a line of the script reads two keys",
       {"waiters = call('ZCARD', QUEUE),\n  beats", "waiters = call('ZCARD', QUEUE), beats"});

// An operator's request may come from a user that never acquires, and so is not checked.
CASE("a release that may not read writes nothing") {
  lab.play("A granted; A released; C granted");
  const std::string before = lab.fingerprint();
  for (const char* read : {"hgetall", "zrange", "hlen", "llen", "zcard", "zcount", "zscore"}) {
    lab.cli({"ACL", "SETUSER", "default", std::string("-") + read});
    bool refused = false;
    try {
      lab.release('B');
    } catch (const Broken&) {
      refused = true;
    }
    lab.cli({"ACL", "SETUSER", "default", std::string("+") + read});
    need(refused, std::string("released without ") + read);
    need(lab.fingerprint() == before, std::string("something is written without ") + read);
  }
}
MUTANT("a script does not read the first holder",
       {"found_holders > 0 and tonumber(", "false and tonumber("});

CASE("a number that is none does not stop a script half-way") {
  lab.play("A granted; A exit:1");
  lab.cli({"HSET", lab.key("meta"), "streak", "nan"});
  lab.play(
      "B granted; B exit:1; B released: released; nobody holds; rows released exit:1, released "
      "exit:1");
}

CASE("a token is stored with all of its digits") {
  lab.pass(Millis(20'001 - lab.now() % 10'000));  // the last seven digits are 1000 to 1999
  const lock::Token token = lab.granted('A');
  need(lab.cli({"HGET", lab.key("meta"), "grant"}) == std::to_string(token.value), "rounded");
}
MUTANT("the scripts drop zeros in the middle of a token", {"'%d%07d'", "'%d%d'"});
MUTANT("the scripts round a token",
       {"string.format('%d%07d', math.floor(n / 10000000), n % 10000000)",
        "string.format('%.14g', n)"});

CASE("the records of a lock expire 30 days after its last use") {
  lab.play("A granted; A released; 2h pass; B granted; B released");
  const int64_t days = 24 * 3'600'000;
  for (const char* suffix : {"meta", "history"}) {
    need(lab.end_of(suffix) >= lab.now() + 30 * days,
         std::string(suffix) + " ends less than 30 days after its last use");
  }
  for (const char* steps : {"C granted ttl=40d", "D queued; 5s pass; D queued"}) {
    lab.play(steps);
    need(lab.end_of("meta") >= lab.now() + 39 * days, "the memory ends before the lease");
  }
}
MUTANT("a heartbeat shortens the life of the memory",
       {"math.max(memory.expires, now + 2592000000)", "now + 2592000000"});
MUTANT("the use of a lock does not prolong the life of the memory",
       {"local must_move = needed > memory.expires", "local must_move = memory.expires == 0"});
MUTANT("the memory expires before the lease",
       {"math.max(now, last_lease, memory.lasts)", "math.max(now, memory.lasts)"});
MUTANT("the expiry ignores a lease that the script stores",
       {"math.max(latest_stored, ", "math.max(0, "});

CASE("the keys live as long as a lease whose script failed half-way, even the only one") {
  struct Row {
    const char* before;
    const char* asks;
    const char* after;
  };
  for (const Row& row : {Row{"A granted shared", "shared ttl=60d", "A renewed shared; AB hold"},
                         Row{"A granted; A released", "ttl=60d", "C queued; B holds"}}) {
    lab.play(row.before);
    lab.cli({"ACL", "SETUSER", "default", "-hset"});
    const ErrorKind kind = lab.acquire_error('B', asking(row.asks)).kind;
    lab.cli({"ACL", "SETUSER", "default", "+hset"});
    need(kind == ErrorKind::denied, "not denied");
    lab.play(row.after);
    need(lab.end_of("holders") >= lab.now() + 90 * 86'400'000LL, "the lease expires with its key");
    lab.play("data lost; 0s pass");
  }
}
MUTANT("the keys expire with the lease that expires first",
       {"call('ZRANGE', HOLDERS, -1, -1, 'WITHSCORES')[2]",
        "call('ZRANGE', HOLDERS, 0, 0, 'WITHSCORES')[2]"});
MUTANT("a script that found several holders counts its own leases",
       {"if at_start.holders > 1 then", "if false then"});
MUTANT("the expiry ignores the lease that the script found",
       {"at_start.holders == 1 and at_start.first_end or 0", "0"});

// The wake lists are the only keys that a script computes.
CASE("a server that refuses undeclared keys: the client pushes the wakes") {
  const Mutation refused{"redis.pcall('LPUSH', key, event)", "{err = 'undeclared'}"};
  Lab refusing({refused});
  need(refusing.mutations_applied(), "no place to change");
  refusing.play("A granted; BC queued; A released: released; B woken; B granted");
  refusing.play("all forced; B woken");
}

CASE("a wake of a wrong type does not stop a release") {
  lab.play("A granted; B queued");
  lab.cli({"SET", lab.key("wake:" + Lab::owner('B').text()), "not ours"});
  lab.play("A released: released; B granted");
}
MUTANT("the scripts push a wake before the new state",
       {"function add(owner, event)\n",
        "function add(owner, event) call('LPUSH', string.sub(HOLDERS, 1, -8) "
        ".. 'wake:' .. owner, event)\n"});

// Whoever deletes `holders` frees the lock. A holder whose limit was deleted excludes all others
// until it renews.
CASE("with holders or limits deleted nobody joins an exclusive run") {
  const std::array<std::string, 3> modes{"", " shared", " slots=3"};
  for (const std::string& first : modes) {
    for (const std::string& second : modes) {
      const bool fits = !first.empty() && !second.empty();
      const std::string holders = (first.empty() ? "A granted" : "AD granted") + first;
      lab.play(holders + "; limits deleted; B queued" + second);
      if (fits) lab.play("A renewed" + first + "; B queued" + second + "; D renewed" + first);
      lab.play((fits ? "B granted" : "B queued") + second + "; data lost; 0s pass");
      lab.play(holders + "; holders deleted; B granted" + second);
      lab.play((fits ? "C granted" : "C queued") + first + "; data lost; 0s pass");
    }
  }
}
MUTANT("a holder without a limit shares the lock",
       {" or call('ZCARD', LIMITS) < others then return false end", " then return false end"},
       {"call('ZRANGE', LIMITS, 0, 0, 'WITHSCORES')[2]",
        "call('ZRANGE', LIMITS, 0, 0, 'WITHSCORES')[2] or limit"});
MUTANT("a new holder keeps the limits of holders that were deleted",
       {"if at_start.limits > 0 and count() == (held_until('~closed') and 1 or 0) "
        "then call('DEL', LIMITS) end",
        ""});
MUTANT("a renewal does not store the limit again",
       {"if line.limit > 1 then", "if line.state == 'held' and count() == 1 then"});

CASE("with a holder deleted from a closed lock nobody joins an exclusive run") {
  lab.play("c1 closed 1m; A granted shared while-closed");
  lab.cli({"ZREM", lab.key("holders"), Lab::owner('A').text()});
  lab.play("B granted while-closed; C queued shared while-closed");
}
MUTANT("a closure keeps the limits of holders that were deleted",
       {"(held_until('~closed') and 1 or 0)", "0"});

CASE("a head whose heartbeat was deleted is skipped") {
  lab.play("A granted; BC queued");
  lab.cli({"ZREM", lab.key("alive"), Lab::owner('B').text()});
  lab.play("A released; C holds");
}
MUTANT("admit grants the lock to a head without a heartbeat",
       {"if beat_ends <= now then", "if false then"},
       {"math.floor(beat_ends) - now <= 15000 * (M.beats.slices_of(beat_ends) - 1)", "false"});

CASE("SCRIPT FLUSH goes unnoticed") {
  lab.granted('A');
  lab.cli({"SCRIPT", "FLUSH"});
  lab.queued('B');
  lab.cli({"SCRIPT", "FLUSH"});
  lab.play("A released; B granted");
}

std::string line_of(Lab& lab, char owner) {
  return lab.cli({"HGET", lab.key("who"), Lab::owner(owner).text()});
}
void add_words(Lab& lab, char owner, const std::string& words) {
  lab.cli({"HSET", lab.key("who"), Lab::owner(owner).text(), words + line_of(lab, owner)});
}
bool has(const std::string& line, const std::string& word) {
  return line.substr(0, line.find('|')).find(word + " ") != std::string::npos;
}

// A later version may store more: words `key=value`, which this one keeps.
CASE("fields that this version does not know are kept") {
  lab.play("A granted ttl=60s");
  add_words(lab, 'A', "shade=new ");
  lab.cli({"HSET", lab.key("meta"), "rank", "5"});
  lab.play("A renewed ttl=60s; B queued");
  need(has(line_of(lab, 'A'), "shade=new"), "the words of a hold are lost: " + line_of(lab, 'A'));
  add_words(lab, 'B', "rank=7 ");
  lab.play("B queued; A released; B granted");
  need(has(line_of(lab, 'B'), "rank=7"), "the words of a waiter are lost: " + line_of(lab, 'B'));
  need(lab.cli({"HGET", lab.key("meta"), "rank"}) == "5", "the words of the memory are lost");
}
MUTANT("the scripts drop unknown words of a holder",
       {"if name ~= 'record' then list", "if name ~= 'record' and name ~= 'shade' then list"});
MUTANT("a grant drops unknown words of the waiter",
       {"line.state = 'granted'\n", "line.state, line.rank = 'granted', nil\n"});

constexpr const char* kUpgrade = ": upgrade rlock on this host";
constexpr const char* kDelete = " DEL 'rlock:{job}:holders' ";

// Every request is refused for that reason, and writes nothing.
void need_other_form(Lab& lab, const std::string& form, const std::string& advice) {
  const std::string before = lab.fingerprint();
  const Error error = lab.acquire_error('C');
  const auto says = [&](const std::string& part) {
    need(error.text.find(part) != error.text.npos, "\"" + part + "\" is not in: " + error.text);
  };
  need(error.kind == ErrorKind::config, "another kind of error: " + error.text);
  says("\"job\" is stored " + form);
  says(advice);
  need((error.text.find(" DEL ") != error.text.npos) == (advice != kUpgrade), "DEL: " + error.text);
  for (auto& request :
       {+[](Lab& l) { l.release('A'); }, +[](Lab& l) { l.cancel('B'); },
        +[](Lab& l) { l.force(ForceWhen::now); }, +[](Lab& l) { l.renew('A', {1}); },
        +[](Lab& l) { l.forget(); }, +[](Lab& l) { l.close("c1", 1h); },
        +[](Lab& l) { l.move_first('B'); }, +[](Lab& l) { l.inspect(); }}) {
    bool refused = false;
    try {
      request(lab);
    } catch (const Broken& broken) {
      refused = std::string(broken.what()).find(" is stored ") != std::string::npos;
    }
    need(refused, "not refused");
  }
  need(lab.fingerprint() == before, "something was written");
}

CASE("a lock of another form is left alone") {
  lab.play("A granted; B queued");
  for (const std::string form : {"2", "10"}) {
    lab.cli({"HSET", lab.key("meta"), "form", form});
    need_other_form(lab, "by a newer rlock (form " + form + "; ", kUpgrade);
  }
  for (const std::string form : {"x", "1.5", "-1", ""}) {
    lab.cli({"HSET", lab.key("meta"), "form", form});
    need_other_form(lab, "in an unknown form (\"" + form + "\"; ", kDelete);
  }
  // As rlock stored it before 1.0: idle, held, and held with the memory deleted.
  const std::string owner = Lab::owner('A').text();
  const std::string older = "by an older rlock (form 0; ";
  lab.play("data lost; 0s pass");
  lab.cli({"SET", lab.key("meta"), "1 5 5 5 5 0 0 -"});
  need_other_form(lab, older, kDelete);
  lab.cli({"SET", lab.key("holders"), "1 " + owner + " 1 42 500 1000 2 1500 | {}"});
  need_other_form(lab, older, kDelete);
  lab.cli({"DEL", lab.key("meta")});
  need_other_form(lab, older, kDelete);
}
MUTANT("the scripts do not read the form of the memory",
       {"if memory.form ~= 1 then", "if false then"});
MUTANT("the scripts do not report a form that is no number",
       {"= tonumber(value) or value", "= tonumber(value)"});
MUTANT("the scripts round a form between two numbers",
       {"'FORM ' .. memory.form", "'FORM ' .. int(memory.form)"});
MUTANT("the scripts change the form of a lock under its holder",
       {"if memory.form ~= 1 then", "memory.form = 1 if false then"});

// A later version may store a rule that all have to keep: `!word`, and the version that knows it.
CASE("a lock with an unknown rule is granted to no client, and its leases still expire") {
  lab.play("A granted; B queued");
  lab.cli({"HSET", lab.key("meta"), "!calendar", "1.4"});
  const Error error = lab.acquire_error('C');
  need(error.kind == ErrorKind::config && error.text.find("rlock 1.4 or later") != error.text.npos,
       "another error: " + error.text);
  lab.play("A renewed; B queued; A holds; B waits; A released; B queued; nobody holds; B waits");
  lab.cli({"HDEL", lab.key("meta"), "!calendar"});
  lab.play("B granted; C queued");
  add_words(lab, 'C', "!calendar=1.4 ");
  lab.play("all forced now; C queued; nobody holds; C waits");
}
MUTANT("the scripts ignore an unknown rule of a lock",
       {"if stored[name] == nil and string.sub(name, 1, 1) == '!' then", "if false then"});
MUTANT("the scripts ignore an unknown rule of a waiter", {"M.words.unknown_rules(line) or", ""});

// Whether a later grant left room for it, only the rule says.
CASE("a lease under an unknown rule is restored only if nobody was granted the lock since") {
  lab.play("AB granted shared ttl=1h");
  lab.cli({"HSET", lab.key("meta"), "!weights", "1.4"});
  lab.play("30m pass; A renewed shared ttl=1h; 31m pass; B restored shared ttl=1h; AB hold");
  lab.play("31m pass; A lost: taken shared; B holds");
}
MUTANT("a renewal restores a lease beside a later grant under an unknown rule",
       {"(limit == 1 or unknown_rules) and memory.grant", "limit == 1 and memory.grant"});
MUTANT("a renewal restores no lease under an unknown rule",
       {"if since > token then", "if unknown_rules or since > token then"});

// `1.10 !calendar !weights`, or nothing.
std::string text_of(const std::optional<lock::NewerRules>& needs) {
  return needs ? needs->version + " " + util::joined(needs->words, " ") : "";
}

CASE("the rules that this version does not know are shown, with the version that knows all") {
  const auto shown = [&lab](const std::string& lock, const std::string& holder,
                            const std::string& waiter) {
    const lock::Snapshot seen = lab.inspect();
    need(text_of(seen.needs) == lock, "of the lock: " + text_of(seen.needs));
    const auto queued = lab.queued('B');
    need(text_of(queued.needs) == lock, "in the reply to a waiter: " + text_of(queued.needs));
    const std::string held = text_of(seen.holders.at(0).needs);
    need(held == holder, "of the holder: " + held);
    const std::string waits = text_of(seen.waiters.at(0).needs);
    need(waits == waiter, "of the waiter: " + waits);
  };
  lab.play("A granted; B queued");
  shown("", "", "");
  lab.cli({"HSET", lab.key("meta"), "!weights", "1.10", "!calendar", "1.9"});
  shown("1.10 !calendar !weights", "", "");
  lab.cli({"HDEL", lab.key("meta"), "!weights", "!calendar"});
  add_words(lab, 'A', "!held=2.0 !calendar=1.9 ");
  add_words(lab, 'B', "!waits=1.4 ");
  shown("", "2.0 !calendar !held", "1.4 !waits");
}
MUTANT("inspect shows only one of several rules of a lock",
       {"(unknown_rules and unknown_rules .. ' ' or '') .. name", "name"});
MUTANT("inspect shows only one of several rules of a holder",
       {"rules[#rules + 1] =", "rules[1] ="});
MUTANT("inspect does not show the rules of a lock", {"needs = unknown_rules,", ""});
MUTANT("acquire does not tell a waiter of the rules", {", needs = unknown_rules}", "}"});
MUTANT("inspect does not show the rules of a holder",
       {"holder.needs = M.words.unknown_rules(holder)", ""});
MUTANT("inspect does not show the rules of a waiter",
       {"line.needs = M.words.unknown_rules(line)", ""});

// Else the row of the run is written, and its counters are lost.
CASE("a newcomer that meets an unknown rule sweeps nothing") {
  lab.play("A granted; B queued ttl=1h; A released; B granted; C queued; 40s pass");
  lab.cli({"HSET", lab.key("meta"), "!calendar", "1.4"});
  for (char owner : {'B', 'D'}) {
    const std::string before = lab.fingerprint();
    need(lab.acquire_error(owner).kind == ErrorKind::config, "another error");
    need(lab.fingerprint() == before, "something was written");
  }
  lab.play("Z cancelled; nobody holds; counts 2 1 1 0 1; rows expired -, released -");
}
MUTANT("acquire refuses a newcomer only after the sweep",
       {"local refusal = not ticket", "M.sweep.run() local refusal = not ticket"});
MUTANT("an owner whose grant expired is no newcomer",
       {"not ticket and (held or 0) <= now and", "not ticket and not held and"});

// It is no longer in the queue, but its heartbeat is still there.
CASE("a waiter that is granted the lock after its queue was evicted stays a holder") {
  lab.play(
      "A granted; B queued; queue deleted; A released; B granted; 16s pass; C queued; B exit:0; "
      "rows released exit:0, released -");
}
MUTANT("the sweep takes a holder with a heartbeat for a dead waiter",
       {"if M.holders.held_until(owner) then\n      M.queue.leave(owner)",
        "if false then\n      M.queue.leave(owner)"});

// By the clock of the tests PEXPIRETIME stands for PTTL.
CASE("a new key expires even if the ACL denies a later command") {
  for (const std::string denied : {"hdel", "pexpiretime"}) {
    lab.play("data lost; 0s pass; A granted once=k");
    lab.cli({"ACL", "SETUSER", "default", "-" + denied});
    bool refused = false;
    try {
      lab.play("A marked once=k");
    } catch (const Broken&) {
      refused = true;
    }
    lab.cli({"ACL", "SETUSER", "default", "+" + denied});
    need(refused, denied + " is not needed");
    for (const std::string suffix : {"history", "once"}) {
      need(lab.end_of(suffix) != -1, "without " + denied + " " + suffix + " does not expire");
    }
  }
}
MUTANT("a new history has no expiry until the end of the script",
       {"call('PEXPIREAT', HISTORY, now + 2592000000)", ""});
MUTANT("the script asks for the expiry of the marks after the write",
       {"local left = call('PTTL', ONCE)", "local left"},
       {"if left < mark", "if call('PTTL', ONCE) < mark"});

CASE("a new tombstone expires even if the ACL denies the note that follows it") {
  lab.play("A granted; B queued");
  lab.cli({"ACL", "SETUSER", "default", "-hset"});
  bool refused = false;
  try {
    lab.cancel('B', lock::CancelHow::removed);
  } catch (const Broken&) {
    refused = true;
  }
  lab.cli({"ACL", "SETUSER", "default", "+hset"});
  need(refused && lab.end_of("released") > 0, "the tombstone stays");
}
MUTANT("a new tombstone has no expiry until the end of the script",
       {"if at_start.tombstones == 0 then call('PEXPIREAT', RELEASED, now + 2592000000) end", ""});

// For each user the server's rules are asked once an hour.
CASE("the script asks once an hour what the ACL allows") {
  lab.play("A granted; A released");
  lab.cli({"ACL", "SETUSER", "default", "-lset"});
  lab.play("B granted; B released; 1h1s pass");
  const ErrorKind kind = lab.acquire_error('C').kind;
  lab.cli({"ACL", "SETUSER", "default", "+lset"});
  need(kind == ErrorKind::denied, "another kind of error");
  lab.play("60d pass; C granted; C released; -60d pass");
  lab.cli({"ACL", "SETUSER", "default", "-lset"});
  const ErrorKind later = lab.acquire_error('D').kind;
  lab.cli({"ACL", "SETUSER", "default", "+lset"});
  need(later == ErrorKind::denied, "a clock that was ahead allows it for long");
  lab.cli({"HSET", lab.key("meta"), "acl:other", std::to_string(lab.now() - 1)});
  lab.play("1h1s pass; D granted");
  const std::string fields = lab.cli({"HKEYS", lab.key("meta")});
  need(fields.find("acl:default") != fields.npos, "it is not known what the ACL allows");
  need(fields.find("acl:other") == fields.npos, "a user who comes no more is never forgotten");
}
MUTANT("acquire never checks old results of the ACL",
       {"not is_fresh(until_ms) then memory[name] = false", "false then memory[name] = false"});
MUTANT("acquire never removes old results of the ACL", {"call('HDEL', META, name)", ""});
MUTANT("acquire asks the ACL each time",
       {"return now < tonumber(until_ms)", "return now >= tonumber(until_ms)"});
MUTANT("acquire asks the ACL only once",
       {"return now < tonumber(until_ms)", "return 0 < tonumber(until_ms)"});
MUTANT("acquire believes a result of the ACL from the future",
       {" and tonumber(until_ms) <= now + 3600000", ""});

// 60 days in which a clock is ahead, and a month of hourly runs after that.
CASE("tokens grow although the clock was ahead") {
  lab.pass(24h * 60);
  lock::Token before = lab.granted('A');
  lab.play("A released; -60d pass; Z granted ttl=30d; Z released");
  for (int hour = 0; hour < 32 * 24; ++hour) {
    const char owner = static_cast<char>('B' + hour % 20);
    const lock::Token token = lab.granted(owner);
    need(token > before, "the token falls after " + std::to_string(hour) + " hours");
    lab.release(owner);
    before = token;
    lab.pass(1h);
  }
}

// In its first hour, of which there is a longer one here.
CASE("a clock near zero leaves no key without an expiry") {
  Lab longer({Mutation{"3600000", "1e14"}});
  need(longer.mutations_applied(), "no place to change");
  longer.play("A granted; A released");
  for (const char* key : {"meta", "history"}) {
    need(longer.end_of(key) > 0, std::string(key) + " has no end");
  }
}

// The ACL check with BODY in its place, which has what is asked in `command` and `...`.
std::vector<Mutation> acl_check(const std::string& body) {
  return {{"pcall(redis.acl_check_cmd,", "pcall(function(command, ...) " + body + " end,"}};
}

std::string acquired_with(const std::string& body) {
  Lab lab(acl_check(body));
  need(lab.mutations_applied(), "no place to change");
  try {
    lab.granted('A');
  } catch (const Broken&) {
    return lab.acquire_error('A').text;
  }
  return "granted";
}

// A server that counts the arguments, whatever the one at hand does.
CASE("the ACL is asked about each command with arguments that it takes") {
  const std::string count =
      "local arity, n = redis.call('COMMAND', 'INFO', command)[1][2], select('#', command, ...)"
      " redis.call('SADD', (arity < 0 and n >= -arity or n == arity) and 'right' or 'wrong',"
      " string.lower(command)) return true";
  need(acquired_with(count) == "granted", "the lock is not granted");
  need(lab.cli({"SMEMBERS", "wrong"}).empty(),
       "with a wrong number of arguments: " + lab.cli({"SMEMBERS", "wrong"}));
  std::stringstream rule(redis::least_acl(""));
  const std::set<std::string> direct{"+eval", "+evalsha", "+scan", "+select"};
  for (std::string word; rule >> word;) {
    if (!word.starts_with("+") || word.find('|') != word.npos || direct.contains(word)) continue;
    need(lab.cli({"SISMEMBER", "right", word.substr(1)}) == "1", "not checked: " + word);
  }
}

CASE("an ACL that cannot be asked refuses nothing") {
  const auto raising = [](const std::string& text) { return "error({err = '" + text + "'})"; };
  const std::string other = "ERR Wrong number of args for redis.acl_check_cmd()";
  const std::string missing = "ERR Invalid command passed to redis.acl_check_cmd()";
  need(acquired_with(raising(other)) == "granted", "an unknown error refuses the lock");
  need(acquired_with("error('" + other + "')") == "granted", "a text refuses the lock");
  need(acquired_with("if command == 'BLPOP' then " + raising(missing) + " end return true") ==
           "granted",
       "a server without BLPOP is refused");
  const std::string refused =
      acquired_with("if command == 'LSET' then " + raising(missing) + " end return true");
  need(refused.find("LSET") != refused.npos, "a missing command: " + refused);
}

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
  lab.play("data lost; 10ms pass");
  Sequence story(lab, ask);
  for (size_t i = 0; i < Sequence::steps().size(); ++i) {
    if (i == at) lab.cli({"DEL", lab.key(deleted)});
    if (i == at && deleted == "holders") story.all_are_freed();
    Sequence::steps()[i](story);
    lab.pass(10ms);
  }
  story.end();
  lab.play("all keys end");
}

CASE("whichever key vanishes, two never hold the lock, and waiters keep their positions") {
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

CASE("a single key that vanished is made again with an expiry") {
  for (const char* key : {"who", "queue", "alive"}) {
    lab.play(std::string("data lost; 0s pass; A granted ttl=1h; B queued; ") + key +
             " deleted; C queued; all keys end");
  }
}

// Also one that ran empty, or was deleted, and was made again.
CASE("all keys of a lock expire together after each step") {
  constexpr std::array kKeys{"holders", "limits",   "queue",   "alive",
                             "who",     "released", "history", "meta"};
  using Step = void (*)(Lab&);
  const Step steps[] = {
      [](Lab& l) { l.acquire('A', asking("ttl=1h")); },
      [](Lab& l) { l.acquire('B', asking("attempt=1")); },
      [](Lab& l) { l.acquire('C'); },
      [](Lab& l) { l.renew('A', {1}, asking("ttl=1h")); },
      [](Lab& l) { l.acquire('C'); },
      [](Lab& l) { l.release('A'); },
      [](Lab& l) { l.acquire('B', asking("attempt=1")); },
      [](Lab& l) { l.cancel_attempt('B', 1, {5}); },
      [](Lab& l) { l.cancel('B'); },
      [](Lab& l) { l.acquire('C'); },
      [](Lab& l) { l.release('C'); },
      [](Lab& l) { l.acquire('D'); },
      [](Lab& l) { l.close("c1", 24h * 60); },
      [](Lab& l) { l.release('D'); },
      [](Lab& l) { l.acquire('E'); },
      [](Lab& l) { l.acquire('F'); },
      [](Lab& l) { l.move_first('F'); },
      [](Lab& l) { l.cancel('F', lock::CancelHow::removed); },
      [](Lab& l) { l.open("c1"); },
      [](Lab& l) { l.acquire('E'); },
  };
  for (const char* deleted : kKeys) {
    for (size_t at = 0; at < std::size(steps); ++at) {
      lab.play("data lost; 0s pass");
      for (size_t step = 0; step < std::size(steps); ++step) {
        if (step == at) lab.cli({"DEL", lab.key(deleted)});
        steps[step](lab);
        const int64_t together = lab.end_of("meta");
        for (const char* key : kKeys) {
          const int64_t end = lab.end_of(key);
          const bool lives = end == together && end >= lab.now() + 720 * 3'600'000LL;
          need(end == -2 || lives, util::format("{} after step {}, with {} deleted before step {}: "
                                                "{}, and the memory {}",
                                                key, step, deleted, at, end, together));
        }
        lab.pass(1s);
      }
    }
  }
}
MUTANT("a line that is written again has no expiry",
       {"call('HSET', key, field, text) == 1", "call('HSET', key, field, text) > 1"});
MUTANT("a queue that is written again has no expiry",
       {"M.keys.put_score(QUEUE, int(number), owner)", "call('ZADD', QUEUE, int(number), owner)"});
MUTANT("heartbeats that are written again have no expiry",
       {"M.keys.put_score(ALIVE, ends, owner)", "call('ZADD', ALIVE, ends, owner)"});
MUTANT("a history that is written again has no expiry",
       {"call('PEXPIREAT', HISTORY, now + 2592000000)", ""}, {"M.keys.note_new(HISTORY)", ""});

// Either it is moved, or nothing is changed.
CASE("first: it does not fail half-way if the heartbeats vanished") {
  lab.play("A granted; BC queued; alive deleted");
  const bool moved = lab.move_first('C') == lock::MoveReply::moved;
  lab.play("BC queued");
  need(lab.waiters() == (moved ? "CB" : "BC"), "another order: " + lab.waiters());
}

}  // namespace
}  // namespace rlock::contract
