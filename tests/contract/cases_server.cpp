// What the server may do to the keys: memory full, wrong types, parts deleted.
#include <set>
#include <sstream>

#include "contract/lab.hpp"
#include "redis/store/acl.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;

void memory_full(Lab& lab) {
  lock::Token token = lab.granted('Z');
  lab.cli({"CONFIG", "SET", "maxmemory", "1"});
  need(std::holds_alternative<lock::Renewal>(lab.renew('Z', token)), "a renewal is refused");
  const std::string alone = lab.fingerprint();
  need(lab.acquire_error('Y').kind == ErrorKind::unavailable, "a new acquisition is not refused");
  need(lab.fingerprint() == alone, "a refused acquisition wrote something");
  need(lab.release('Z').ending == lock::OwnerEnd::released, "a release is refused");
  lab.cli({"CONFIG", "SET", "maxmemory", "0"});
  token = lab.granted('A');
  lab.queued('B');
  lab.queued('C');
  lab.cli({"CONFIG", "SET", "maxmemory", "1"});
  const std::string before = lab.fingerprint();
  need(lab.acquire_error('D').kind == ErrorKind::unavailable, "a new acquisition is not refused");
  need(lab.fingerprint() == before, "a refused acquisition wrote something");
  need(std::holds_alternative<lock::Renewal>(lab.renew('A', token)), "a renewal is refused");
  Ask changed;
  changed.record = "another record";
  need(std::holds_alternative<lock::Renewal>(lab.renew('A', token, changed)),
       "a record is refused");
  lab.queued('B');
  need(lab.release('A').ending == lock::OwnerEnd::released, "a release is refused");
  lab.granted('B');
  lab.cancel('C');
  lab.release('B');
  need(lab.holders().empty() && lab.waiters().empty(), "something is left");
  lab.cli({"CONFIG", "SET", "maxmemory", "0"});
}

void wrong_types(Lab& lab) {
  for (const char* suffix :
       {"holders", "limits", "queue", "alive", "who", "meta", "released", "history"}) {
    lab.granted('A');
    lab.queued('B');
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
    lab.cli({"FLUSHALL"});
    lab.pass(0s);
  }
}

// The wake lists are the only keys that a script computes.
void undeclared_keys_refused(Lab&) {
  const Mutation refused{"redis.pcall('LPUSH', key, event)", "{err = 'undeclared'}"};
  Lab lab({refused});
  need(lab.mutations_applied(), "no place to change");
  lab.granted('A');
  lab.queued('B');
  lab.queued('C');
  need(lab.release('A').ending == lock::OwnerEnd::released, "the release is not reported");
  need(lab.woken('B'), "nobody pushed the wake");
  lab.granted('B');
  need(std::holds_alternative<lock::Forced>(lab.force()), "the force-unlock is not reported");
  need(lab.woken('B'), "the holder is not woken");
}

void wrong_wake(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  lab.cli({"SET", lab.key("wake:" + Lab::owner('B').text()), "not ours"});
  need(lab.release('A').ending == lock::OwnerEnd::released, "the release fails");
  lab.granted('B');
}

void limits_deleted(Lab& lab) {
  lab.granted('A');
  lab.cli({"DEL", lab.key("limits")});
  Ask shared;
  shared.limit = lock::Limit::shared();
  lab.queued('B', shared);
  need(lab.holders() == "A", "shared joined exclusive");
  lab.release('A');
  lab.granted('B', shared);
  Ask two;
  two.limit = lock::Limit::slots(2);
  lab.granted('C', two);
  lab.cli({"DEL", lab.key("limits")});
  lab.queued('D', shared);
  need(lab.holders() == "BC", "a third joined two slots");
}

void heartbeat_deleted(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  lab.queued('C');
  lab.cli({"ZREM", lab.key("alive"), Lab::owner('B').text()});
  lab.release('A');
  need(lab.holders() == "C", "a head without a heartbeat is in the way");
}

void script_flush(Lab& lab) {
  lab.granted('A');
  lab.cli({"SCRIPT", "FLUSH"});
  lab.queued('B');
  lab.cli({"SCRIPT", "FLUSH"});
  lab.release('A');
  lab.granted('B');
}

std::string field(Lab& lab, const char* name) {
  return lab.cli({"HGET", lab.key("who"), name + Lab::owner('B').text()});
}

// A later version may store more: words `key=value`, which this one keeps.
void unknown_words(Lab& lab) {
  Ask longer;
  longer.ttl = 60s;
  const lock::Token token = lab.granted('A', longer);
  if (lab.cli({"TYPE", lab.key("holders")}) == "string") {
    std::string hold = lab.cli({"GET", lab.key("holders")});
    lab.cli(
        {"SET", lab.key("holders"), hold.insert(hold.find('|'), "slot=3 kind=new "), "KEEPTTL"});
  } else {
    const std::string line = "+" + Lab::owner('A').text();
    lab.cli({"HSET", lab.key("who"), line,
             lab.cli({"HGET", lab.key("who"), line}) + " slot=3 kind=new"});
  }
  lab.cli({"APPEND", lab.key("meta"), " rank=5"});
  as<lock::Renewal>(lab.renew('A', token, longer), "not renewed");
  lab.queued('B');
  const std::string line = lab.cli({"HGET", lab.key("who"), "+" + Lab::owner('A').text()});
  need(line.ends_with(" slot=3 kind=new"), "the words of a hold are lost: " + line);
  lab.cli({"HSET", lab.key("who"), "+" + Lab::owner('B').text(), field(lab, "+") + " rank=7"});
  lab.queued('B');
  lab.release('A');
  lab.granted('B');
  need(field(lab, "+").ends_with(" rank=7"), "the words of a waiter are lost: " + field(lab, "+"));
  const std::string memory = lab.cli({"GET", lab.key("meta")});
  need(memory.find(" rank=5") != std::string::npos, "the words of the memory are lost: " + memory);
}

void newer_form(Lab& lab) {
  for (const char* suffix : {"meta", "holders"}) {
    lab.granted('A');
    std::string stored = lab.cli({"TYPE", lab.key(suffix)}) == "string"
                             ? lab.cli({"GET", lab.key(suffix)})
                             : "1 of a lone hold";
    need(stored.starts_with("1 "), "no version word: " + stored);
    lab.cli({"SET", lab.key(suffix), "2" + stored.substr(1)});
    const std::string before = lab.fingerprint();
    for (char owner : {'A', 'B'}) {
      need(lab.acquire_error(owner).kind == ErrorKind::wrong_type,
           std::string(suffix) + ": not refused as a wrong type");
    }
    need(lab.fingerprint() == before, std::string(suffix) + ": something was written");
    lab.cli({"FLUSHALL"});
    lab.pass(0s);
  }
}

// For each user the server's rules are asked once an hour.
void acl_verdict(Lab& lab) {
  lab.granted('A');
  lab.release('A');
  lab.cli({"ACL", "SETUSER", "default", "-lset"});
  lab.granted('B');
  lab.release('B');
  lab.pass(1h + 1s);
  const ErrorKind kind = lab.acquire_error('C').kind;
  lab.cli({"ACL", "SETUSER", "default", "+lset"});
  need(kind == ErrorKind::denied, "another kind of error");
  lab.pass(24h * 60);
  lab.granted('C');
  lab.release('C');
  lab.pass(-24h * 60);
  lab.cli({"ACL", "SETUSER", "default", "-lset"});
  const ErrorKind later = lab.acquire_error('D').kind;
  lab.cli({"ACL", "SETUSER", "default", "+lset"});
  need(later == ErrorKind::denied, "a clock that was ahead allows it for long");
}

// 60 days in which a clock is ahead, and a month of hourly runs after that.
void clock_was_ahead(Lab& lab) {
  lab.pass(24h * 60);
  lock::Token before = lab.granted('A');
  lab.release('A');
  lab.pass(-24h * 60);
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
void clock_that_begins(Lab&) {
  Lab lab({Mutation{"3600000", "1e14"}});
  need(lab.mutations_applied(), "no place to change");
  lab.granted('A');
  lab.release('A');
  need(std::stoll(lab.cli({"PTTL", lab.key("meta")})) > 0, "the memory has no end");
  need(std::stoll(lab.cli({"PTTL", lab.key("history")})) > 0, "the history has no end");
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
void acl_words(Lab& any) {
  const std::string count =
      "local arity, n = redis.call('COMMAND', 'INFO', command)[1][2], select('#', command, ...)"
      " redis.call('SADD', (arity < 0 and n >= -arity or n == arity) and 'right' or 'wrong',"
      " string.lower(command)) return true";
  need(acquired_with(count) == "granted", "the lock is not granted");
  need(any.cli({"SMEMBERS", "wrong"}).empty(),
       "with a wrong number of arguments: " + any.cli({"SMEMBERS", "wrong"}));
  std::stringstream rule(redis::least_acl(""));
  const std::set<std::string> direct{"+eval", "+evalsha", "+lrange", "+scan", "+select"};
  for (std::string word; rule >> word;) {
    if (!word.starts_with("+") || word.find('|') != word.npos || direct.contains(word)) continue;
    need(any.cli({"SISMEMBER", "right", word.substr(1)}) == "1", "not checked: " + word);
  }
}

void acl_not_checked(Lab&) {
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

}  // namespace

const std::vector<NamedCase>& server_cases() {
  static const std::vector<NamedCase> cases{
      {"with memory full everything but a new acquisition works", memory_full},
      {"a key of a wrong type stops each script before it writes", wrong_types},
      {"a wake of a wrong type does not stop a release", wrong_wake},
      {"a server that refuses undeclared keys: the client pushes the wakes",
       undeclared_keys_refused},
      {"with the limits deleted shared does not join exclusive", limits_deleted},
      {"a head whose heartbeat was deleted is skipped", heartbeat_deleted},
      {"SCRIPT FLUSH is invisible", script_flush},
      {"words that this version does not know are kept", unknown_words},
      {"the memory or the hold of a newer form is left alone", newer_form},
      {"tokens grow although the clock was ahead", clock_was_ahead},
      {"a clock that begins leaves no key without an end", clock_that_begins},
      {"what the ACL allows is asked once an hour", acl_verdict},
      {"the ACL is asked about each command with arguments that it takes", acl_words},
      {"an ACL that cannot be asked refuses nothing", acl_not_checked},
  };
  return cases;
}

}  // namespace rlock::contract
