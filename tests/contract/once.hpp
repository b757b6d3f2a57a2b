#pragma once

#include <string>

#include "contract/lab.hpp"

// What the cases of what is done once share.
namespace rlock::contract {

using namespace std::chrono_literals;
using lock::AlreadyDone;
using lock::FailedTooOften;
using lock::Marked;
using lock::Once;
using lock::OnceKind;
using lock::OnceResult;
using lock::Token;

inline constexpr Millis kDay = 24h;
inline constexpr Millis kMonth = 30 * kDay;

inline Once key(const std::string& text, std::optional<uint64_t> max_failures = {}) {
  return {OnceKind::key, text, 0ms, max_failures};
}
inline Once day(const std::string& date, std::optional<uint64_t> max_failures = {}) {
  return {OnceKind::period, "day:" + date, 25h, max_failures};
}
inline Once within(Millis span, std::optional<uint64_t> max_failures = {}) {
  return {OnceKind::within, "", span, max_failures};
}

inline Ask asks(const Once& once, Millis asked = 0ms) {
  Ask ask;
  ask.once = once;
  ask.asked = asked;
  return ask;
}

inline AlreadyDone done(Lab& lab, char owner, const Ask& ask) {
  return as<AlreadyDone>(lab.acquire(owner, ask), std::string(1, owner) + " is to run");
}

inline Marked succeeds(Lab& lab, char owner, const Once& once, Token token, Millis asked = 0ms) {
  return lab.ends(owner, {once, asked, token, true, {}}).marked;
}

inline void fails(Lab& lab, char owner, const Once& once, Token token, Millis asked = 0ms) {
  need(lab.ends(owner, {once, asked, token, false, {}}).marked == Marked::no,
       "a failure is marked");
}

inline void runs(Lab& lab, char owner, const Once& once) {
  need(succeeds(lab, owner, once, lab.granted(owner, asks(once))) == Marked::yes, "not marked");
}

}  // namespace rlock::contract
