#include "contract/mutants.hpp"

namespace rlock::contract {
namespace {

const std::vector<Mutant> kClosureMutants{
    {"a closure ends a live command",
     {{"s.fits(limit, true)", "s.fits(limit)"}},
     "closed: a lease"},
    {"a cool-down is passed with the closure",
     {{"if closed then others = others - 1 end", "if closed then return true end"}},
     "closed: a cool-down"},
    {"who may pass waits behind the others",
     {{"return passes and math.max(1, at - 31536000000000) or at", "return at"}},
     "closed: who may pass waits"},
    {"who may pass moves with each request",
     {{"may_pass and tonumber(at) > now_us - 31536000000000 / 2 and", "may_pass and"}},
     "closed: who may pass and"},
    {"who waited before does not move",
     {{"if ticket and passing(ticket) ~= ticket then", "if false then"}},
     "closed: who may pass and"},
    {"who may pass is served by its own request only",
     {{" and holder[2] ~= 'closed'", ""}},
     "closed: who may pass is"},
    {"who may pass does not pass those that wait",
     {{"if waiters > 0 and may_pass and s.closed_until() then", "if false then"}},
     "closed: who may pass waits"},
    {"nobody may pass in the queue",
     {{"s.fits(line.limit, s.line_word(line, 'while_closed'))", "s.fits(line.limit)"}},
     "closed: who may pass waits"},
    {"a repeated request is refused",
     {{"if how == 'close' and present_id == id then", "if false then"}},
     "closed: a repeated"},
    {"a late copy closes what was opened", {{" or s.tombstone(id))", ")"}}, "closed: a repeated"},
    {"an end that has passed is stored", {{"(ends <= now or ", "("}}, "closed: a repeated"},
    {"a closure is replaced that nobody saw", {{"present_id ~= seen or ", ""}}, "closed: closing"},
    {"opening serves nobody",
     {{"  note('open ' .. now)\n  s.admit()\n", "  note('open ' .. now)\n"}},
     "closed: opening"},
    {"the closure is counted as a holder",
     {{"live - (closed_until and 1 or 0)", "live"}},
     "closed: who holds"},
    {"the closure takes the lock",
     {{"local at = two[1] == '~closed' and 3 or 1", "local at = 1"}},
     "closed: a closure"},
    {"a closed lock is held to an operator",
     {{"local free = not s.some_holder()", "local free = s.n_holders == 0"}},
     "closed: force-unlock"},
    {"what runs is forgotten",
     {{"s.n_holders - (s.closed_until() and 1 or 0)", "s.n_holders"}},
     "closed: what runs"},
};

}  // namespace

const std::vector<Mutant>& closure_mutants() {
  return kClosureMutants;
}

}  // namespace rlock::contract
