#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "cli/commands/commands.hpp"
#include "cli/options/completion/completion.hpp"
#include "cli/options/help.hpp"
#include "cli/output/console.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/settings/config.hpp"
#include "cli/settings/connect.hpp"
#include "lock/poller.hpp"
#include "redis/store/acl.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// Somebody pressed TAB and is waiting: a completion never takes longer, whatever the server does.
constexpr Millis kTotalTimeout{200};
constexpr Millis kRequestTimeout{150};
constexpr size_t kMostNames = 1000;

// Name resolution and the file system have no time limit of their own.
void exit_silently_after(Millis timeout) {
  struct sigaction action {};
  action.sa_handler = [](int) { _exit(kSuccess); };
  sigaction(SIGALRM, &action, nullptr);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &alarm, nullptr);
  itimerval timer{};
  timer.it_value.tv_usec = std::chrono::microseconds(timeout).count();
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// A name that a terminal can show, and that is not taken for an option when it is typed.
bool can_be_offered(const std::string& name) {
  return lock::LockName::parse(name) && util::printable(name) == name && name.front() != '-';
}

// As many names as arrive in time: of all locks, or of those that are held.
class NameReader {
 public:
  NameReader(lock::LockInspector& inspector, bool only_held)
      : inspector_(inspector), only_held_(only_held) {}

  std::set<std::string> read() {
    std::set<std::string> names;
    std::string cursor;
    do {
      auto page = finish(inspector_.list_names(cursor));
      if (!page) break;
      const auto more = only_held_ ? held(page->in_use) : std::move(page->names);
      std::copy_if(more.begin(), more.end(), std::inserter(names, names.end()), can_be_offered);
      cursor = page->cursor;
    } while (!cursor.empty() && names.size() < kMostNames);
    return names;
  }

 private:
  template <class T>
  Result<T> finish(lock::InFlight<T> request) {
    return lock::finish(poller_, std::move(request), deadline_, inspector_.server());
  }

  // Of a page with locks that are held, waited for, or were until a moment ago.
  std::vector<std::string> held(const std::vector<std::string>& in_use) {
    std::vector<lock::InspectCall> calls;
    for (const std::string& text : in_use) {
      auto name = lock::LockName::parse(text);
      if (!name || calls.size() == kMostNames) continue;
      calls.push_back({*std::move(name)});
      calls.back().holders_page = 1;
    }
    if (calls.empty()) return {};
    auto locks = finish(inspector_.inspect_all(calls));
    std::vector<std::string> names;
    for (size_t i = 0; locks && i < locks->size(); ++i) {
      const auto& lock = (*locks)[i];
      if (lock && !lock->holders.empty()) names.push_back(calls[i].name.text());
    }
    return names;
  }

  lock::LockInspector& inspector_;
  const bool only_held_;
  lock::SystemPoller poller_;
  const TimePoint deadline_ = poller_.now() + kRequestTimeout;
};

// `words` are those typed before the name, which may set the server and the prefix. Errors are not
// printed: they would garble the line that is being completed.
int print_names(std::span<const std::string> words) {
  exit_silently_after(kTotalTimeout);
  auto command_line = parse(words);
  auto* invocation = command_line ? std::get_if<Invocation>(&*command_line) : nullptr;
  if (invocation == nullptr) return kSuccess;
  auto configured = apply_config(*invocation, system_getenv, default_config_files(system_getenv));
  if (!configured) return kSuccess;
  auto settings = connection_options(invocation->choices, system_getenv);
  if (!settings) return kSuccess;
  settings->connect_timeout = kRequestTimeout;
  settings->local_start = redis::LocalStart::forbidden;
  auto make_server = redis::open(*settings);
  if (!make_server) return kSuccess;
  std::string lines;
  auto server = (*make_server)();
  NameReader reader(*server, invocation->command == CommandId::force_unlock);
  for (const std::string& name : reader.read()) lines += name + "\n";
  return print_result(lines);
}

std::string read_standard_input() {
  std::string text;
  char buffer[4096];
  while (true) {
    ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
}

// The committed files: a completion script, or the manual page whose template is on stdin.
int generate(std::string_view what) {
  if (auto shell = find_shell(what)) return print_result(completion_script(*shell));
  auto page =
      what == "man" ? manual_page(read_standard_input(), redis::least_acl("rlock:")) : std::nullopt;
  if (page) return print_result(*page);
  print_message("usage: rlock --generate bash|zsh|fish, or rlock --generate man <TEMPLATE");
  return kUsage;
}

Error bad_shell(const std::string& what) {
  return {ErrorKind::usage, what + ": rlock completion bash|zsh|fish"};
}

Result<Shell> shell_of(const Invocation& invocation) {
  const auto& words = invocation.names;
  if (words.size() != 1 || invocation.after_dashes) return bad_shell("name a shell");
  auto shell = find_shell(words.front());
  if (shell) return *shell;
  return bad_shell("there is no completion script for \"" +
                   util::printable(util::shortened(words.front(), 60)) + "\"");
}

}  // namespace

int completion_command(const Invocation& invocation) {
  auto shell = shell_of(invocation);
  if (!shell) return fail(shell.error(), invocation.choices);
  return print_result(completion_script(*shell));
}

std::optional<int> hidden_command(std::span<const std::string> words) {
  if (words.empty()) return std::nullopt;
  if (words.front() == "__complete") return print_names(words.subspan(1));
  if (words.front() == "--generate" && words.size() == 2) return generate(words[1]);
  return std::nullopt;
}

}  // namespace rlock::cli
