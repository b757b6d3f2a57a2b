#include <sys/stat.h>

#include <algorithm>

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
  Selection locks{};                  // all: what is in use, or ran lately
  std::optional<std::string> file{};  // none: stdout
};

Result<MetricsSettings> metrics_settings(const Invocation& invocation) {
  MetricsSettings settings;
  TRY(auto locks, selection_of(invocation));
  settings.locks = std::move(locks);
  settings.file = invocation.choices.last(Opt::output);
  if (settings.file && settings.file->empty()) {
    return Error{ErrorKind::usage, "--output needs the name of a file"};
  }
  return settings;
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
  TRY_STATUS(add_locks(all, session, settings.locks.names, false));
  if (!settings.locks.is_listing()) return all;
  TRY(auto listed, all_names(session));
  all.missing = std::move(listed.missing);
  std::vector<lock::LockName> names;
  for (const ListedName& one : listed.names) {
    if (settings.locks.lists(one.name)) names.push_back(one.name);
  }
  TRY_STATUS(add_locks(all, session, names, settings.locks.patterns.empty()));
  return all;
}

// A device or a pipe would be missed by others. A link is not followed, either: who may write in
// its folder could have anything replaced.
Status check_replaceable(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return Done{};
  return Error{ErrorKind::usage, "--output replaces FILE, but " + util::printable(path) +
                                     " is not a regular file; redirect standard output instead"};
}

int print_metrics(const std::string& text, const MetricsSettings& settings, const Choices& choices,
                  int code) {
  if (!settings.file) return print_result(text, code);
  auto written = check_replaceable(*settings.file);
  // The collector reads files whose names end in .prom.
  if (written) written = util::replace_file(*settings.file, text);
  return written ? code : fail(written.error(), choices);
}

}  // namespace

int metrics_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto settings = metrics_settings(invocation);
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
