#include "contract/mutants.hpp"

namespace rlock::contract {
namespace {

const std::vector<Mutant> kUsualWay{
    {"two holders of one slot",
     {{"while used[slot] do slot = slot + 1 end", ""}},
     "slots: each holder"},
    {"not the least that is free",
     {{"while used[slot] do slot = slot + 1 end",
       "for s in pairs(used) do slot = math.max(slot, s + 1) end"}},
     "slots: each holder"},
    {"those granted at once share a slot",
     {{"    used[slot] = true\n", ""},
      {"if slots_used then slots_used[slot_of(line.words)] = true end", ""}},
     "slots: those"},
    {"shared holders have slots",
     {{"return limit > 1 and limit <= MOST_SLOTS", "return limit > 1"}},
     "slots: only"},
    {"exclusive holders have slots",
     {{"return limit > 1 and limit <= MOST_SLOTS", "return limit <= MOST_SLOTS"}},
     "slots: only"},
    {"the cool-down has no slot",
     {{"words = with_slot('', slot_of(line.words))", "words = ''"}},
     "slots: renewals"},
    {"put back although the slot is taken",
     {{"if not why and slot > 0 and used_slots()[slot] then why = 'taken' end", ""}},
     "slots: a lease"},
    {"put back without the slot",
     {{"words = with_slot('', slot)}", "words = ''}"}},
     "slots: a lease"},
    {"one that is admitted has the slot of one that was put back",
     {{"if slots_used then slots_used[slot_of(line.words)] = true end", ""}},
     "slots: beside"},
    {"the slot of a repeated acquire is another",
     {{"slot_of(line.words)})", "0})"}},
     "slots: each holder"},
};

const std::vector<Mutant> kShortWays{
    {"a lone hold has no slot", {{"(slot and 'slot=1 | ' or '| ')", "'| '"}}, "slots: a lone"},
    {"a lone hold has a slot in any case",
     {{"limit ~= '1' and tonumber(limit) <= MOST_SLOTS", "true"}},
     "slots: only"},
    {"the slot is not replied",
     {{"{'granted', tonumber(token), slot and 1 or 0}", "{'granted', tonumber(token)}"}},
     "slots: each holder"},
};

}  // namespace

const std::vector<Mutant>& slot_mutants(Way way) {
  return way == Way::usual ? kUsualWay : kShortWays;
}

}  // namespace rlock::contract
