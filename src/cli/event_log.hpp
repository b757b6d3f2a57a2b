#pragma once

#include <string>

#include "run/run.hpp"
#include "util/fd.hpp"

namespace rlock::cli {

// The word of an event in the log and in -v lines: `renew-failed`. [CLI.md, --event-log]
std::string_view word_of(run::EventKind kind);

// One JSON object a line, each appended with a single write, so that several runs may share a file.
// A write that fails is dropped: a full disk must not end the command.
class EventLog {
 public:
  // ErrorKind::config when the file cannot be opened; nothing is locked yet then.
  static util::Result<EventLog> open(const std::string& path, const lock::AcquireCall& claim);

  void append(const run::Event& event);

 private:
  EventLog(util::Fd file, std::string name, std::string owner)
      : file_(std::move(file)), name_(std::move(name)), owner_(std::move(owner)) {}

  util::Fd file_;
  std::string name_;
  std::string owner_;
};

}  // namespace rlock::cli
