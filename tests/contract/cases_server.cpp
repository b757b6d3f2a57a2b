// What the server may do to the keys: memory full, wrong types, parts deleted.
#include "contract/lab.hpp"

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
void undeclared_keys_refused(Lab& any) {
  const Mutation refused{"redis.pcall('LPUSH', key, event)", "{err = 'undeclared'}"};
  Lab lab(any.way(), {refused});
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

// The first rlock had no version word: its memory is a hash, and it stops at a string.
void older_rlock(Lab& lab) {
  lab.cli({"HSET", lab.key("meta"), "last", "4000000000000000", "grant", "4000000000000000",
           "exclusive", "4000000000000000", "created", "1", "head", "", "hold", "0"});
  lab.cli({"PEXPIRE", lab.key("meta"), "100000"});
  const lock::Token token = lab.granted('A');
  need(token.value > 4'000'000'000'000'000, "the token does not grow");
  need(lab.cli({"HLEN", lab.key("meta")}).find("WRONGTYPE") != std::string::npos,
       "the old one goes on");
  lab.release('A');
  need(lab.cli({"HLEN", lab.key("meta")}).find("WRONGTYPE") != std::string::npos,
       "the old one goes on");
  lab.cli({"DEL", lab.key("meta")});
  lab.cli({"HSET", lab.key("meta"), "last", "5", "grant", "5", "exclusive", "5", "created", "1"});
  lab.cli({"ZADD", lab.key("holders"), "99999999999999", Lab::owner('X').text()});
  const std::string before = lab.fingerprint();
  const Error error = lab.acquire_error('B');
  need(error.kind == ErrorKind::wrong_type, "another kind of error");
  need(error.text.find("an older rlock") != std::string::npos, "not named: " + error.text);
  need(lab.fingerprint() == before, "something was written");
  need(lab.inspect().holders.size() == 1, "its holder is not shown");
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
  lab.granted('C');
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
      {"the lock of an older rlock is left alone, and named", older_rlock},
      {"what the ACL allows is asked once an hour", acl_verdict},
  };
  return cases;
}

}  // namespace rlock::contract
