// How an owner ends, and what late or repeated requests may still do.
#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;
using lock::CancelHow;
using lock::CancelReply;
using lock::ForceWhen;
using lock::Lost;
using lock::LostHow;
using lock::OwnerEnd;
using lock::OwnerEnded;

void expect_ended(Lab& lab, char owner, OwnerEnd ending) {
  need(as<OwnerEnded>(lab.acquire(owner), "a late acquire brings the owner back").ending == ending,
       "the late acquire is answered with another end");
  need(lab.holders().find(owner) == std::string::npos, "an ended owner holds the lock");
  need(lab.waiters().find(owner) == std::string::npos, "an ended owner waits");
}

CASE("a late acquire after release, cancel, remove or force-unlock does not acquire") {
  lab.play("Y granted; Y released");
  expect_ended(lab, 'Y', OwnerEnd::released);
  lab.play("A granted; BC queued; A released");
  expect_ended(lab, 'A', OwnerEnd::released);
  need(lab.cancel('B') == CancelReply::was_granted, "B had been granted");
  expect_ended(lab, 'B', OwnerEnd::cancelled);
  lab.play("C granted; D queued; D removed; D woken");
  need(as<OwnerEnded>(lab.acquire('D'), "D is back").note == "by the operator",
       "D does not learn by whom");
  lab.play("all forced now");
  expect_ended(lab, 'C', OwnerEnd::forced);
  lab.cancel('E');
  expect_ended(lab, 'E', OwnerEnd::cancelled);
}
MUTANT(
    "the scripts leave no tombstone",
    {"M.keys.put_score(RELEASED, kept_until * 16 + math.max(kind, kind_of(score) or kind), owner)",
     ""});
MUTANT("acquire does not look for the owner's tombstone",
       {"local ended = ended_reply()", "local ended = nil"});

CASE("a repeated release succeeds and frees no other owner") {
  lab.play(
      "A granted; A released; B granted; B released; A released: released; C granted; "
      "A released: released; C holds");
}

CASE("a holder of a broken lock cannot renew, even after its lease expired") {
  lab.play("A granted; all forced; A woken; A lost: forced; A released: forced; A lost: forced");

  lab.play("B granted; all forced; 40s pass; B lost: forced");
  expect_ended(lab, 'B', OwnerEnd::forced);
}
MUTANT("the holder of a broken lock renews",
       {"if line.state == 'revoked' then return lost('forced', false) end", ""});
MUTANT("the history lists the expired holder of a broken lock as expired",
       {"if line.state == 'revoked' then return 'forced' end", ""});
MUTANT("the holder of a broken lock learns of no break at its release",
       {"local forced = line.state == 'revoked'", "local forced = false"});

CASE("an expired lease is restored only if no other client held the lock since") {
  lab.play("A granted; 31s pass; A restored; A holds; 31s pass; B granted");
  need(as<Lost>(lab.renew('A', lab.token('A')), "renewed though B has it").by.has_value(),
       "by nobody");
  lab.play("B released; A lost: taken");
}
MUTANT("a renewal restores a lease although another owner was granted the lock",
       {"if since > token then return 'taken', forgot end", ""});
MUTANT("a renewal extends an expired lease",
       {"held and held > now and extend(held)", "held and extend(held)"});

CASE("a lease that was restored and then deleted is lost") {
  lab.play("A granted; 31s pass; A renewed; holders deleted; A lost: deleted");
}
MUTANT("a restored lease keeps its tombstone", {"  call('ZREM', RELEASED, owner)\n", ""});

// Only the history still shows it: the tombstone is gone.
CASE("a lease that expired long ago is restored unless it was released or broken since") {
  const std::string expired =
      "A granted min-hold=1h; 31s pass; Z cancelled; 2m pass; Z cancelled; ";
  lab.play(expired + "A restored min-hold=1h; A holds; rows expired -; counts 1 1 1 0 1");
  lab.play("A exit:0; rows released exit:0; counts 1 1 1 0 0; all forced now; data lost; 0s pass");
  for (const std::string end : {"A released: expired; ", "all forced now; "}) {
    lab.play(expired + end +
             "2h pass; Z cancelled; A lost: deleted min-hold=1h; data lost; 0s pass");
  }
}
MUTANT("a renewal restores an expired lease only until its tombstone is gone",
       {"not end_kind and not has_expired(owner, token)", "not end_kind"});
MUTANT("the history counts a run again that was restored late",
       {"if M.history.settle_row(owner) or", "if"});
MUTANT("a renewal restores a lease long after its release",
       {"if entry == '0' then M.history.settle_row(owner) end", ""});
MUTANT("a renewal restores a lease long after its cool-down was broken",
       {"row.note, row.owner = M.history.quoted(note), nil", "row.note = M.history.quoted(note)"});
MUTANT("a settled row still names its owner", {"  row.owner = nil\n", ""});

// Its tombstone still says no more than that the lease expired.
CASE("an expired lease is not restored once an operator has broken its cool-down") {
  const std::string expired = "A granted min-hold=1h; 31s pass; Z cancelled; ";
  lab.play(expired + "all forced now; A lost: forced min-hold=1h; A released: forced");
  lab.play("nobody holds; rows expired - by the operator; counts 1 1 1 0 1; data lost; 0s pass");
  lab.play(expired + "history deleted; all forced now; A lost: forced min-hold=1h");
  // Its own end is stronger, and a repeated release still succeeds.
  lab.play("data lost; 0s pass; A granted min-hold=1h; A released; all forced now");
  lab.play("A released: released; nobody holds");
}
MUTANT("a renewal restores a lease whose cool-down was broken within a minute",
       {"if M.tombstones.kind(owner) == 0 or row and row.owner then", "if false then"});
MUTANT("a renewal restores a lease whose cool-down was broken after its row was gone",
       {"if M.tombstones.kind(owner) == 0 or row and row.owner then", "if row and row.owner then"});
MUTANT("a broken cool-down turns the release before it into a break",
       {"if M.tombstones.kind(owner) == 0 or row and row.owner then", "if true then"});

CASE("a lease that expired long ago is restored with its own token only") {
  lab.play("Z granted; Z released; A granted slots=2; 31s pass; Z cancelled; 2m pass; Z cancelled");
  const Ask ask = asking("slots=2");
  need(
      as<Lost>(lab.renew('A', {lab.token('A').value - 1}, ask), "restored").how == LostHow::deleted,
      "not lost: deleted");
  lab.play("A restored slots=2");
}
MUTANT("a renewal restores an expired lease with any token",
       {"return row and row.token == token", "return row"});

// The success of a run whose lease was lost that long ago.
CASE("a late success counts once") {
  lab.play(
      "A granted once=k; 31s pass; Z cancelled; 2m pass; Z cancelled; A marked once=k; "
      "rows released exit:0; counts 1 1 1 0 0");
}
MUTANT("the history lists a late success as a second run",
       {" or M.history.row_of(request.owner, 'owner')", ""});

// It had asked again since it lost the lock with the server's data.
CASE("a lease is restored although its owner waits in the queue") {
  const lock::Token token = lab.granted('A', asking("slots=2"));
  lab.play(
      "data lost; 1s pass; BC granted slots=2 ttl=5s; A queued slots=2; 6s pass; "
      "A restored slots=2; A holds; nobody waits");
  need(lab.inspect().holders.front().token == token, "it was granted the lock once more");
}
MUTANT("a restored owner stays in the queue",
       {"  M.queue.leave(owner)\n  local ends", "  local ends"});

// A holder that renews rarely learns by its next renewal who broke its lock.
CASE("a holder with a long lease learns late that its lock was broken") {
  lab.play(
      "A granted ttl=1h; all forced now; 20m pass; B granted; B released; "
      "A lost: forced ttl=1h");
}
MUTANT("the tombstone of a broken lease counts for a minute",
       {"M.tombstones.add(owner, 7, ends)", "M.tombstones.add(owner, 7)"});

CASE("a lock deleted by hand is lost") {
  lab.play("A granted; holders deleted; A lost: deleted");
}
MUTANT("a renewal restores a lease that a person deleted",
       {"if is_unknown and memory.grant >= token and "
        "memory.created <= token then return 'deleted' end",
        ""});

// What nobody knows any more counts as a live run: only its owner, or an operator who does not
// wait, ends it.
CASE("a holder whose line was deleted counts as a live run") {
  const auto held_without_line = [&lab] {
    const lock::Token token = lab.granted('A');
    lab.play("B queued; who deleted");
    return token;
  };
  const lock::Token token = held_without_line();
  need(lab.release('A', lock::Entry::outer(), "-", lock::ReleaseHow::by_id).run.has_value(),
       "it is released by its id");
  need(as<lock::Renewal>(lab.renew('A', token), "lost") == lock::Renewal::extended, "not extended");
  const lock::Holder holder = lab.inspect().holders.at(0);
  need(holder.token == token && holder.record == "record of A", "its line is not as before");
  lab.release('A');
  need(as<lock::Run>(lab.history().at(0), "not listed").token == token, "another token is listed");
  lab.play("B granted; B released");

  lab.play("data lost; 0s pass");
  held_without_line();
  const auto forced = as<lock::Forced>(lab.force(), "not forced");
  need(forced.unconfirmed.size() == 1 && lab.holders() == "A", "freed although it may run");
  need(as<Lost>(lab.renew('A', token), "renewed").how == LostHow::forced, "not reported");
  lab.release('A');
  need(lab.holders() == "B" || lab.woken('B'), "B waits on");

  lab.play("data lost; 1s pass");
  held_without_line();
  lab.play("all forced now");
  need(lab.holders() != "A", "it is not freed at once");
}
MUTANT("a holder without a line does not count",
       {"local ends = call('ZSCORE', HOLDERS, owner)", "local ends = nil"});
MUTANT("a renewal does not write a deleted line again",
       {"line = line_again()\n    line.entries = entries", ""});
MUTANT("force-unlock frees a holder without a line immediately",
       {"responsive = cools and '0' or '2'", "responsive = '0'"});

CASE("a flushed lock is restored unless another client was granted it") {
  lock::Token token = lab.granted('A');
  lab.play("data lost; 0s pass; A restored; A holds; A released");
  lock::Token next = lab.granted('B');
  need(next > token, "the token does not grow over a flush");
  lab.play("data lost; 1s pass");
  lock::Token newcomer = lab.granted('C');
  need(newcomer > next, "the token does not grow over a flush");
  lab.play("B lost: taken");
}
MUTANT("tokens come only from the counter",
       {"math.max(memory.last + 1, now_us)", "memory.last + 1"});

// An eviction takes one key at a time. Where the server lost all its data before, its memory is
// younger than the token and says nothing of it.
CASE("a broken lock stays broken when its tombstone is evicted") {
  lab.play("A granted; data lost; 1s pass; A restored; all forced now");
  lab.cli({"UNLINK", lab.key("released")});
  lab.play("A lost: forced; nobody holds; data lost; 0s pass; A restored");
}
MUTANT("a renewal ignores the operator's note",
       {"if call('HEXISTS', WHO, '!' .. owner) == 1 then return 'forced' end", ""});

// A renewal without the token (`rlock renew --owner`) never puts back.
CASE("without a token nothing is restored") {
  lab.play("A granted; 31s pass");
  need(as<Lost>(lab.renew('A', {}), "put back without a token").how == LostHow::expired,
       "not reported as expired");
}
MUTANT("a renewal restores a lease without a token",
       {"if token == 0 then return end_kind and 'expired' or 'deleted' end", ""});

// A caller that sends it has it from elsewhere, or mistyped it.
CASE("a token that was never issued is not restored") {
  constexpr lock::Token kWrong{9'007'199'254'740'991};
  need(as<Lost>(lab.renew('A', kWrong), "put back").how == LostHow::unissued,
       "not for that reason");
  lock::Token before{};
  for (char owner : {'B', 'C', 'D'}) {
    const lock::Token token = lab.granted(owner);
    need(token > before && token < kWrong, "tokens do not grow any more");
    need(as<lock::Renewal>(lab.renew(owner, kWrong), "lost") == lock::Renewal::extended,
         "a holder that brings another token is not renewed");
    lab.release(owner);
    before = token;
  }
  lab.play("E granted; 31s pass");
  lab.acquire('F');
  need(as<Lost>(lab.renew('E', kWrong), "put back").how == LostHow::unissued,
       "not for that reason");
}
MUTANT("a renewal restores a token that was never issued",
       {"if token > greatest then return 'unissued' end", ""});

CASE("a lock deleted and then taken is reported as taken") {
  lock::Token token = lab.granted('A');
  lab.play("holders deleted");
  const auto alone = as<Lost>(lab.renew('A', lab.token('A')), "renewed");
  need(alone.how == LostHow::deleted && alone.later_holder == lock::LaterHolder::nobody,
       "not deleted alone");
  token = lab.granted('B');
  lab.play("holders deleted");
  need(lab.inspect().last_grant == token, "the last grant is not shown");
  lab.granted('C');
  const auto lost = as<Lost>(lab.renew('B', lab.token('B')), "two hold it");
  need(lost.how == LostHow::taken && lost.by && lost.later_holder == lock::LaterHolder::unknown,
       "B does not learn that C has it");
  lab.play("C released; B lost: taken");
}
MUTANT("a renewal reports a lock as deleted that another owner was granted",
       {"if since > token then", "if since > token and end_kind then"});

CASE("a lock taken after the server lost its data is reported so") {
  lab.granted('A');
  lab.play("data lost; 1s pass; B granted");
  need(as<Lost>(lab.renew('A', lab.token('A')), "two hold it").data_lost, "the loss is not seen");
  need(lab.ends_run('A').ending == OwnerEnd::forgotten, "A is known");
  // B, which has restored its lease since, loses it in another way.
  lab.play("data lost; 1s pass; B restored; 31s pass");
  lab.granted('C');
  need(!as<Lost>(lab.renew('B', lab.token('B')), "two hold it").data_lost, "lost with the data");
}
MUTANT("a renewal takes every lease that is lost after a loss of data for lost with it",
       {"local forgot = is_unknown and", "local forgot ="});

CASE("a live run is not released by its id") {
  const auto by_id = [&lab](char owner) {
    return lab.release(owner, lock::Entry::outer(), "-", lock::ReleaseHow::by_id);
  };
  lab.granted('A', {.responsive = lock::Responsive::run});
  const std::string before = lab.fingerprint();
  const auto refused = by_id('A');
  need(refused.run && refused.run->owner == Lab::owner('A').text(), "a live run is released");
  need(lab.fingerprint() == before, "a refused release wrote something");
  lab.force();
  need(by_id('A').run.has_value() && lab.holders() == "A", "a revoked run is confirmed for it");
  lab.play("A released: forced; nobody holds");
  need(!by_id('A').run, "a run that has ended is taken for a live one");
  lab.granted('B');
  need(by_id('B').ending == OwnerEnd::released && lab.holders().empty(),
       "steps cannot be released");
  need(by_id('B').ending == OwnerEnd::released, "a repeated release is refused");
  lab.play("C granted; 31s pass");
  for (int i = 0; i < 3; ++i) {
    need(by_id('C').ending == OwnerEnd::expired, "a repeated release hides that the lease expired");
  }
}
MUTANT("a repeated release does not know that the lease had expired",
       {"M.tombstones.add(owner .. ':lost', 0)", "local _ = nil"});
MUTANT("a release by id ends the lease of a live run",
       {"if held_now and by_id and line.responsive == "
        "'2' then return M.replies.encoded({'runs', holder = "
        "M.views.of(owner, held)}) end",
        ""});

// The lease of a revoked holder lapsed, and its release came late.
CASE("the later of two ends of an owner stays") {
  lab.play("A granted; all forced; 31s pass");
  lab.cancel('Z');  // sweeps
  lab.play("50s pass; A released: forced; 11s pass");
  lab.cancel('Y');  // sweeps
  expect_ended(lab, 'A', OwnerEnd::forced);
}
MUTANT("a weaker end does not prolong a tombstone",
       {"  local kept_until = math.max(now + 60000",
        "  if score and (kind_of(score) or -1) > kind then return end\n  local kept_until = "
        "math.max(now + 60000"});

CASE("a holder changes what others see of it") {
  lab.granted('A');
  Ask changed;
  changed.record = "A cannot end";
  lab.play("A renewed");
  need(lab.inspect().holders.front().record == "record of A", "the record changed by itself");
  lab.play("A renewed", changed);
  need(lab.inspect().holders.front().record == "A cannot end", "others see the old record");
  lab.play("31s pass; A renewed", changed);
  need(lab.inspect().holders.front().record == "A cannot end", "put back with the old record");
}
MUTANT("a renewal does not store a changed record",
       {"if args.store_record then line.record = record end", ""});

// Nobody starts beside the revoked holder until it confirmed or its lease ended.
CASE("the holder of a broken lock counts until it confirms or its lease expires") {
  lab.play("A granted; B queued");
  const auto forced = as<lock::Forced>(lab.force(), "not forced");
  need(forced.broken.size() == 1 && forced.unconfirmed.size() == 1 && !forced.next,
       "freed at once");
  lab.woken('A');  // the wake is lost
  lab.play(
      "8s pass; B queued; all forced; B queued; A holds; 8s pass; B queued; A lost; "
      "8s pass; B queued; 7s pass; B granted");
}
MUTANT("force-unlock frees a holder that responds",
       {"local counts = line.responsive ~= '0' and not args.now", "local counts = false"});
MUTANT("a second force-unlock frees the holder of a broken lock",
       {"line.responsive ~= '0' and not args.now",
        "line.responsive ~= '0' and line.state ~= 'revoked' and not args.now"});

// The grant was revoked while the claim's reply was under way: the claim does not stand.
CASE("a grant broken before its claim is gone") {
  lab.play(
      "A granted; B queued; A released; all forced; B ended: forced; C queued; B cancelled; "
      "C holds");
}
MUTANT("an owner claims a broken grant",
       {"if line.state == 'revoked' then return {'gone'", "if false then return {'gone'"});

// Its lease ends in the very acquire that comes to claim it.
CASE("a broken grant that expired is gone for the acquire that finds it") {
  lab.play(
      "A granted; B queued; A released; all forced; 2s pass; B ended: forced; nobody holds; "
      "nobody waits");
}
MUTANT("an owner whose broken grant expired acquires the lock again",
       {"ended, held, ticket = ended_reply(),", "ended, held, ticket = nil,"});

CASE("a grant that was broken before its claim ran nothing") {
  lab.play("A granted; B queued; A released; all forced; 3s pass; C granted; counts 1 0 0 0 0");
}
MUTANT("the history lists a broken grant as a run", {"or line.unclaimed or", "or"});

// More owners, whose leases expired before all others, than one script sweeps.
void add_expired_crowd(Lab& lab) {
  lab.cli({"EVAL", R"(for i = 1, 300 do
             redis.call('ZADD', KEYS[1], i, 'x' .. i)
             redis.call('ZADD', KEYS[2], 1000000, 'x' .. i)
             redis.call('HSET', KEYS[3], 'x' .. i,
                        'state=held limit=1000000 token=1 since=1 ttl=1 min_hold=0 | x')
           end)",
           "3", lab.key("holders"), lab.key("limits"), lab.key("who")});
}

CASE("an owner whose lease expired is no holder, however many leases expired before") {
  lab.play("A granted shared");
  const lock::Token first = lab.token('A');
  add_expired_crowd(lab);
  lab.play("31s pass; A granted shared");
  need(lab.token('A') != first, "it has its old token");
}
MUTANT("an owner claims an expired lease", {"if (held or 0) > now then", "if held then"});

CASE("a lease that expired is restored, however many leases expired before") {
  lab.play("A granted shared");
  add_expired_crowd(lab);
  lab.play("31s pass; A restored shared; A holds");
}
MUTANT("a renewal leaves its owner's expired lease to a later sweep",
       {"if is_due then M.sweep.run(owner) end\nreturn M.finish.with(reply or restore(), owner)",
        "if is_due then M.sweep.run() end\nreturn M.finish.with(reply or restore(), owner)"});

CASE("a late success counts, however many leases expired before") {
  lab.play("A granted shared once=k");
  add_expired_crowd(lab);
  lab.play("31s pass; A marked once=k");
}
MUTANT("a release leaves its owner's expired lease to a later sweep",
       {"  if is_due then M.sweep.run(owner) end\nend", "  if is_due then M.sweep.run() end\nend"});

CASE("force-unlock frees a lock that no process renews immediately") {
  lab.play("A granted unrenewed; B queued");
  const auto forced = as<lock::Forced>(lab.force(), "not forced");
  need(forced.unconfirmed.empty(), "a holder without renewal counts on");
  need(forced.next == Lab::owner('B').text(), "the next is not granted");
  lab.granted('B');
}

CASE("force-unlock breaks only the owner that was named") {
  as<lock::NotHeld>(lab.force(), "a free lock is forced");
  lock::Token token = lab.granted('A');
  as<lock::NoMatch>(lab.force('B'), "another's lock is forced");
  as<lock::NoMatch>(lab.force('A', {token.value + 1}), "another token is forced");
  lab.play("A holds");
  as<lock::Forced>(lab.force('A', token), "its token is refused");
  lab.play("A released; BC granted shared");
  need(as<lock::Forced>(lab.force('B'), "not forced").broken.size() == 1, "not one");
}
MUTANT("force-unlock does not check the token",
       {"(token == 0 or M.lines.read(holder).token == token)", "true"});

// The reply was lost, the request came again: the reply says what it did, and it is done to nobody
// else.
CASE("a repeated force-unlock or removal succeeds and hits no other owner") {
  lab.play("A granted; BC queued");
  for (int time = 1; time <= 2; ++time) lab.play("C removed");
  const auto first = as<lock::Forced>(lab.force('A', {}, ForceWhen::now), "not forced");
  need(first.broken.size() == 1 && first.next == Lab::owner('B').text(), "B is not the next");
  lab.granted('B');
  const auto again = as<lock::Forced>(lab.force('A', {}, ForceWhen::now), "denied");
  need(again.broken.empty() && !again.next && lab.holders() == "B", "B was broken for A");
}

// One operator has revoked it; another does not wait for the holder.
CASE("force-unlock: a second operator who frees a broken lock is named, and may repeat it") {
  lab.play("A granted; all forced");
  for (int time = 1; time <= 2; ++time) {
    as<lock::Forced>(lab.force('A', {}, ForceWhen::now, "by another"), "denied");
  }
  lab.play("nobody holds; rows forced - by another");
  lab.play("B granted; all forced");
  as<lock::Forced>(lab.force('B', {}, ForceWhen::confirmed, "by another"), "not forced");
  lab.play(
      "B lost: forced; B released: forced; rows forced - by the operator, forced - by another");
}
MUTANT("the note does not name the operator who frees a broken lock",
       {"if not counts or line.state ~= 'revoked' then", "if line.state ~= 'revoked' then"});
MUTANT("a second operator replaces the note while the holder counts",
       {"if not counts or line.state ~= 'revoked' then", "if true then"});

// It had missed its heartbeat once.
CASE("an operator's note outlives an earlier tombstone of the owner") {
  lab.play(
      "A granted ttl=1h; B queued; 16s pass; A renewed ttl=1h; B queued ttl=1h; A released; "
      "B granted ttl=1h; all forced; 61s pass; C queued; B lost: forced");
}
MUTANT("the sweep removes the note of an owner that came back",
       {"if not (M.holders.held_until(owner) or M.queue.ticket(owner)) then call('HDEL'",
        "if true then call('HDEL'"});

CASE("a release without a result ends the lease") {
  lab.play("A granted");
  lab.raw(&redis::Scripts::release,
          {"owner", Lab::owner('A').text(), "entry", "0", "how", "released"});
  lab.play("nobody holds; rows released -");
}
MUTANT("a release without a result fails half-way", {"args.note or '-'", "args.note"});

}  // namespace
}  // namespace rlock::contract
