#include "redis/link/server_error.hpp"

#include <string>

namespace rlock::redis {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// Redis 7 adds where in the script it happened, "… script: SHA1, on @user_script:1.": of no use to
// whoever reads the message. Later ones and Valkey have a "script: " in words of their own.
std::string_view without_script_position(std::string_view text) {
  size_t at = text.rfind(" script: ");
  if (at == text.npos || text.find(", on @", at) == text.npos) return text;
  return text.substr(0, at);
}

std::string_view without_arguments(std::string_view text) {
  return text.substr(0, text.find(", with args beginning with:"));
}

// X of `unknown command 'X'`; empty where there is none.
std::string_view quoted_word(std::string_view text) {
  constexpr std::string_view kQuotes = "'`\"";
  size_t from = text.find_first_of(kQuotes);
  if (from == text.npos) return {};
  size_t to = text.find_first_of(kQuotes, from + 1);
  return to == text.npos ? std::string_view() : text.substr(from + 1, to - from - 1);
}

struct KnownError {
  std::string_view sign;  // in lower case
  std::string_view advice;
};

constexpr std::string_view kMissingCommand =
    "it lacks a command that rlock needs; use another server, or let this one have it";

// What no second try and no other user changes: the server, or what stands before it, is unfit.
constexpr KnownError kUnsupported[] = {
    {"could not find scripting engine",
     "it runs no Lua scripts, which rlock needs: load its Lua module (Valkey: loadmodule, package "
     "valkey-lua), or use another server"},
    {"lua scripting support disabled",
     "it runs no Lua scripts, which rlock needs: start it with them (Garnet: --lua and "
     "--lua-transaction-mode), or use another server"},
    {"bad lua script for redis cluster",
     "its proxy inspects scripts and refuses these: switch the inspection off "
     "(script_check_enable 0), or connect without the proxy"},
    {"command called from", kMissingCommand},
};

Error unknown_command(std::string_view command) {
  const std::string name = lower(command);
  if (name == "eval" || name == "evalsha") {
    return {ErrorKind::config,
            "it does not know EVALSHA and EVAL, but rlock needs Lua scripts: use another server, "
            "or connect without the proxy that stands before it"};
  }
  if (name == "scan") {
    return {ErrorKind::config,
            "it does not know SCAN, so the locks cannot be listed: name them, as in `rlock status "
            "NAME`"};
  }
  return {ErrorKind::config, "it does not know the command " +
                                 (command.empty() ? "that it was sent" : std::string(command))};
}

}  // namespace

Error decode_error(std::string_view text) {
  constexpr size_t kLongest = 300;  // a server's own are shorter, and it is told in one line
  std::string words(without_arguments(without_script_position(text)).substr(0, kLongest));
  if (contains(text, "WRONGTYPE")) {
    return {ErrorKind::wrong_type, "a key of this lock holds something else: " + words};
  }
  if (contains(text, "permissions to access database")) {
    return {ErrorKind::denied,
            words + ": let the user's ACL rule have this database (db=), or use another one"};
  }
  for (std::string_view sign : {"NOAUTH", "NOPERM", "WRONGPASS", "unauthenticated",
                                "user executing the script", "ACL failure in script"}) {
    if (contains(text, sign)) return {ErrorKind::denied, words};
  }
  if (text.starts_with("MOVED ") || text.starts_with("ASK ")) {
    return {ErrorKind::unavailable, "it is a node of a cluster: write redis+cluster://HOST"};
  }
  const std::string small = lower(words);
  for (const KnownError& known : kUnsupported) {
    if (contains(small, known.sign)) return {ErrorKind::config, std::string(known.advice)};
  }
  // As rlock's own script says it.
  constexpr std::string_view kHasNo = "this server has no command";
  if (size_t at = words.find(kHasNo); at != words.npos) {
    return {ErrorKind::config,
            std::string(kMissingCommand) + ":" + words.substr(at + kHasNo.size())};
  }
  if (contains(small, "unknown command")) return unknown_command(quoted_word(words));
  for (std::string_view sign : {"LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN",
                                "UNBLOCKED", "READONLY", "NOREPLICAS", "max number of clients"}) {
    if (contains(text, sign)) return {ErrorKind::unavailable, words, Retry::later};
  }
  return {ErrorKind::unavailable, words};
}

}  // namespace rlock::redis
