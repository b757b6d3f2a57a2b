#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The opaque bytes that a lock carries for people: who holds it, who waits, who broke it. Written
// by one rlock, read by another: nothing in it can be trusted.
namespace rlock::cli {

struct Record {
  std::optional<std::string> host;
  std::optional<std::string> user;
  std::optional<int64_t> pid;
  std::optional<std::string> command;
  std::optional<std::string> reason;
  std::optional<std::string> at;  // RFC 3339; only in an operator's note
  // Of a holder whose command is over but whose processes are not: `cannot end pid 4711 of root`.
  std::optional<std::string> ending{};
};

// JSON, valid UTF-8.
std::string encode_record(const Record& record);

// Whatever can be read: not JSON, wrong types, oversized or broken text leave the fields empty.
// Strings are valid UTF-8 but may hold control characters: print them through util::printable.
Record decode_record(std::string_view bytes);

// Host, user and pid of this process.
Record own_record();

// A word as a shell reads it.
std::string shell_quoted(std::string_view word);

// The command line as a shell would read it, at most 200 bytes, cut at a character.
std::string command_text(const std::vector<std::string>& argv);

// The longest front of `text` of at most `limit` bytes that does not split a character.
std::string_view cut_at_character(std::string_view text, size_t limit);

// `alice@web1`, `web1`, or empty when nothing is known. Printable.
std::string who_text(const Record& record);

// `by alice@web1: host is gone`, for the notes of operators; empty when nothing is known.
// Printable.
std::string note_text(std::string_view note);

}  // namespace rlock::cli
