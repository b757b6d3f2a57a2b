#include "cli/output/caller.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "util/fd.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// As much as a record may hold of it; empty where /proc does not tell.
std::vector<std::string> command_line(pid_t pid) {
  util::Fd file(open(("/proc/" + std::to_string(pid) + "/cmdline").c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];
  ssize_t length = file ? read(file.get(), text, sizeof text) : -1;
  std::vector<std::string> words;
  std::string_view rest(text, length > 0 ? static_cast<size_t>(length) : 0);
  while (!rest.empty()) {
    words.emplace_back(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(std::min(rest.size(), words.back().size() + 1));
  }
  return words;
}

}  // namespace

Record caller_record(pid_t pid, const Choices& choices) {
  Record record = own_record();
  record.pid = pid;
  if (!choices.has(Opt::hide_command)) record.command = command_text(command_line(pid));
  if (auto reason = choices.last(Opt::reason)) record.reason = util::to_utf8(*reason);
  return record;
}

}  // namespace rlock::cli
