#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/commands/commands.hpp"
#include "cli/commands/session.hpp"
#include "cli/output/console.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/metrics_text.hpp"
#include "util/fd.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr size_t kMostLocks = 1000;

struct MetricsSettings {
  std::vector<lock::LockName> names;
  std::vector<std::string> patterns;  // neither: what is in use, or ran lately
  std::optional<std::string> file;    // none: stdout
};

Result<MetricsSettings> settings_of(const Invocation& invocation) {
  MetricsSettings settings;
  std::vector<std::string> texts = invocation.names;
  const auto& more = invocation.after_dashes;
  if (more) texts.insert(texts.end(), more->begin(), more->end());
  for (const std::string& text : texts) {
    TRY(auto name, lock::LockName::parse(text));
    if (text.find_first_of("*?") == text.npos) {
      settings.names.push_back(std::move(name));
    } else {
      settings.patterns.push_back(text);
    }
  }
  settings.file = invocation.choices.last(Opt::output);
  if (settings.file && settings.file->empty()) {
    return Error{ErrorKind::usage, "--output needs the name of a file"};
  }
  return settings;
}

bool is_wanted(const std::string& name, const MetricsSettings& settings) {
  const auto& patterns = settings.patterns;
  return patterns.empty() ||
         std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return util::matches(pattern, name); });
}

bool ran_lately(const lock::Snapshot& lock) {
  constexpr int64_t kDay = 24 * 3600 * 1000;
  auto lately = [&](const auto& last) { return last && lock.now.ms - last->at.ms <= kDay; };
  return lately(lock.last_success) || lately(lock.last_failure);
}

struct Collected {
  std::vector<LockView> locks{};
  uint64_t omitted = 0;
  std::vector<Error> missing{};
};

// A key of the wrong type concerns one lock; other errors concern the server.
Status add_locks(Collected& all, Session& session, const std::vector<lock::LockName>& names,
                 bool only_busy) {
  auto snapshots = inspect_first_waiter(session, names);
  for (size_t i = 0; i < names.size(); ++i) {
    LockView lock{names[i].text(), std::move(snapshots[i])};
    if (!lock.snapshot && lock.snapshot.error().kind != ErrorKind::wrong_type) {
      return lock.snapshot.error();
    }
    if (!lock.snapshot) {
      all.missing.push_back(lock.snapshot.error());
      continue;
    }
    if (only_busy && is_idle(lock) && !ran_lately(*lock.snapshot)) continue;
    if (all.locks.size() < kMostLocks) {
      all.locks.push_back(std::move(lock));
    } else {
      ++all.omitted;
    }
  }
  return Done{};
}

Result<Collected> collect(Session& session, const MetricsSettings& settings) {
  Collected all;
  TRY_STATUS(add_locks(all, session, settings.names, false));
  if (!settings.names.empty() && settings.patterns.empty()) return all;
  TRY(auto listed, all_names(session));
  all.missing = std::move(listed.missing);
  std::vector<lock::LockName> names;
  for (const ListedName& one : listed.names) {
    const bool named =
        std::find(settings.names.begin(), settings.names.end(), one.name) != settings.names.end();
    if (!named && is_wanted(one.name.text(), settings)) names.push_back(one.name);
  }
  TRY_STATUS(add_locks(all, session, names, settings.patterns.empty()));
  return all;
}

Error file_error(const std::string& what, const std::string& path) {
  return {ErrorKind::system,
          "cannot " + what + " " + util::printable(path) + ": " + std::strerror(errno)};
}

Status write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Error{ErrorKind::system, ""};
    text.remove_prefix(static_cast<size_t>(written));
  }
  return Done{};
}

// A device or a pipe would be missed by others. A link is not followed, either: who may write in
// its folder could have anything replaced.
Status check_replaceable(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return Done{};
  return Error{ErrorKind::usage, "--output replaces FILE, but " + util::printable(path) +
                                     " is not a regular file; redirect standard output instead"};
}

// Written beside and renamed, so that a collector never reads half of it. The collector reads
// files whose names end in .prom.
Status write_file(const std::string& path, const std::string& text) {
  TRY_STATUS(check_replaceable(path));
  const std::string beside = path + "." + std::to_string(getpid()) + ".tmp";
  util::Fd file(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file) return file_error("write", beside);
  const bool written = write_all(file.get(), text).operator bool();
  if (written && rename(beside.c_str(), path.c_str()) == 0) return Done{};
  Error error = file_error("write", path);
  unlink(beside.c_str());
  return error;
}

int print_metrics(const std::string& text, const MetricsSettings& settings, const Choices& choices,
                  int code) {
  if (!settings.file) return print_result(text, code);
  auto written = write_file(*settings.file, text);
  return written ? code : fail(written.error(), choices);
}

}  // namespace

int metrics_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto settings = settings_of(invocation);
  if (!settings) return fail(settings.error(), choices);
  auto session = Session::open(choices);
  if (!session) return fail(session.error(), choices);
  auto all = collect(*session, *settings);
  if (!all) {
    print_error(all.error());
    return print_metrics(metrics_of_no_server(), *settings, choices, exit_code(all.error().kind));
  }
  for (const Error& why : all->missing) print_error(why);
  const int code = all->missing.empty() ? 0 : exit_code(all->missing.front().kind);
  return print_metrics(metrics_text(all->locks, all->omitted), *settings, choices, code);
}

}  // namespace rlock::cli
