#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/output/record.hpp"
#include "cli/output/view.hpp"
#include "redis/open.hpp"

namespace rlock::test {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline lock::LockName name(const char* text) {
  return *lock::LockName::parse(text);
}

inline const std::string kOwner = "6f1c9a0e5d3b4872a1908f7e6d5c4b3a";
inline const std::string kOther = "0123456789abcdef0123456789abcdef";

// The servers of single URLs.
inline std::vector<std::string> labels(const redis::OpenOptions& options) {
  std::vector<std::string> out;
  for (const redis::Url& url : options.urls) {
    out.push_back(std::get<redis::Server>(url).label());
  }
  return out;
}

inline lock::Holder holder() {
  lock::Holder out;
  out.owner = kOwner;
  out.token = {1'763'690'000'123'456};
  out.since = {1'795'229'580'007};
  out.held = Millis(123'000);
  out.left = Millis(25'000);
  out.ttl = Millis(30'000);
  out.entries = 1;
  out.record =
      cli::encode_record({"web1", "alice", 4711, "make deploy", "release 7", std::nullopt});
  return out;
}

inline lock::Closure closure() {
  lock::Closure out{"c1", {1'795'229'580'007}, {1'795'229'940'007}, Millis(300'000)};
  out.record = cli::encode_record({"ops1", "ann", std::nullopt, std::nullopt, "upgrade", {}});
  return out;
}

inline lock::Waiter waiter() {
  lock::Waiter out;
  out.owner = kOther;
  out.since = {1'795'229'580'007};
  out.waiting = Millis(1'500);
  out.record = cli::encode_record({"web2", "bob", 99, "make test", std::nullopt, std::nullopt});
  return out;
}

inline lock::Snapshot snapshot(std::vector<lock::Holder> holders, uint64_t waiters) {
  lock::Snapshot out;
  out.known = true;
  out.live_holders = holders.size();
  out.holders = std::move(holders);
  out.live_waiters = waiters;
  return out;
}

// What a broken or malicious client may have left at the server.
inline lock::Holder hostile_holder() {
  lock::Holder out = holder();
  out.owner = "\x1b]0;x\x07\xff";
  out.token = {UINT64_MAX};
  out.since = {-1};
  out.record =
      "{\"host\":\"\\u001b[2J\xff\",\"user\":\"\\u202eroot\",\"pid\":\"x\",\"command\":\"" +
      std::string(5'000, 'w') + "\\n\"}";
  return out;
}

// The committed text that `actual` must equal. With RLOCK_UPDATE_GOLDEN set in the environment
// `actual` is written there first: the change is then reviewed as a diff.
inline std::string golden(const std::string& file, const std::string& actual) {
  const std::string path = std::string(RLOCK_GOLDEN) + "/" + file;
  if (std::getenv("RLOCK_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << actual;
  std::ifstream stored(path);
  std::ostringstream text;
  text << stored.rdbuf();
  return text.str();
}

}  // namespace rlock::test
