#include "cli/settings/config.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "cli/settings/config_file.hpp"
#include "cli/settings/format.hpp"
#include "cli/settings/run_settings.hpp"
#include "redis/net/url.hpp"
#include "util/file.hpp"

namespace rlock::cli {
namespace {

using util::Fd;

constexpr const char* kSystemFile = "/etc/rlock/rlock.toml";
constexpr std::string_view kUserFile = "rlock/rlock.toml";

// Of two options that answer one question the stronger layer's rules, whichever of them it gave.
constexpr std::pair<Opt, Opt> kExclusivePairs[] = {{Opt::nonblock, Opt::wait},
                                                   {Opt::slots, Opt::shared},
                                                   {Opt::password_file, Opt::password_command}};

enum class Origin { user, machine, named };

struct ConfigFile {
  std::string path;
  std::vector<Setting> settings;  // in the order of their lines
};

std::optional<std::string> variable(Getenv getenv, std::string_view name) {
  const char* value = getenv(std::string(name).c_str());
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

const char* no_environment(const char*) {
  return nullptr;
}

// One that is malformed may hold anything.
bool holds_credentials(const std::string& text) {
  auto url = redis::parse_url(text);
  if (!url) return text.find('@') != text.npos;
  if (const auto* single = std::get_if<redis::SingleUrl>(&*url)) {
    return !single->server.user.empty() || !single->server.password.empty();
  }
  if (const auto* sentinel = std::get_if<redis::SentinelUrl>(&*url)) {
    return sentinel->credentials != redis::Credentials{} ||
           sentinel->sentinel_credentials != redis::Credentials{};
  }
  const auto* cluster = std::get_if<redis::ClusterUrl>(&*url);
  return cluster != nullptr && cluster->credentials != redis::Credentials{};
}

bool any_credentials(const std::vector<std::string>& urls) {
  return std::any_of(urls.begin(), urls.end(), holds_credentials);
}

bool holds_password(const std::vector<Setting>& settings) {
  return std::any_of(settings.begin(), settings.end(), [](const Setting& setting) {
    return setting.literal || (setting.id == Opt::url && any_credentials(setting.values));
  });
}

// ---- one file ----

Error unreadable(const std::string& path, const std::string& why) {
  return {ErrorKind::config, "cannot read the configuration file " + path + ": " + why};
}

// As ssh treats its own: whoever can write there chooses the server and the files that rlock
// writes. A file that was named is as trusted as the one who named it.
Status check_writers(const std::string& path, const struct stat& info) {
  if (info.st_uid != 0 && info.st_uid != geteuid()) {
    return unreadable(path, "it belongs to another user");
  }
  if ((info.st_mode & 022) == 0) return Done{};
  return unreadable(path, "others can write it; chmod go-w " + path);
}

// The group of a file of root's is chosen by an administrator (root:rlock, 0640); that of a user's
// own may be everyone's.
Status check_readers(const std::string& path, const struct stat& info) {
  if (info.st_uid != 0 && info.st_uid != geteuid()) {
    return unreadable(path, "it holds a password and belongs to another user");
  }
  const bool roots = info.st_uid == 0;
  if ((info.st_mode & (roots ? 027 : 077)) == 0) return Done{};
  return unreadable(path, std::string("it holds a password and others can open it; chmod ") +
                              (roots ? "640 " : "600 ") + path +
                              ", or put the password in a password-file");
}

// A folder that we may not enter (a HOME that another user's environment left) has no file for us.
bool is_missing(const std::string& path, int error) {
  struct stat info {};
  return error == ENOENT || error == ENOTDIR ||
         (error == EACCES && stat(path.c_str(), &info) != 0 && errno == EACCES);
}

// Nothing: there is no such default file.
Result<std::optional<ConfigFile>> load(const std::string& path, Origin origin) {
  constexpr size_t kLongest = size_t{1024} * 1024;  // /dev/zero must not fill the memory
  Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) {
    const int error = errno;
    if (origin != Origin::named && is_missing(path, error)) return std::optional<ConfigFile>();
    Error refused = unreadable(path, std::strerror(error));
    if (error == EACCES && origin == Origin::machine) refused.kind = ErrorKind::denied;
    return refused;
  }
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return unreadable(path, std::strerror(errno));
  if (origin != Origin::named) {
    TRY_STATUS(check_writers(path, info));
  }
  auto text = util::read_to_end(file, kLongest);
  if (!text) return unreadable(path, text.error().text);
  TRY(auto settings, parse_config(path, *text));
  if (holds_password(settings)) {
    TRY_STATUS(check_readers(path, info));
  }
  std::sort(settings.begin(), settings.end(),
            [](const Setting& one, const Setting& other) { return one.line < other.line; });
  return std::optional(ConfigFile{path, std::move(settings)});
}

// ---- its values ----

Status try_connection(const Setting& setting) {
  Choices choices;
  choices.set(Opt::url, {"local:"});
  choices.set(setting.id, setting.values);
  auto options = connection_options(choices, no_environment);
  return options ? Status(Done{}) : std::move(options).error();
}

Status try_run(const Choices& choices) {
  auto settings = run_settings({CommandId::run, choices, {"name"}, {{"true"}}}, no_environment);
  return settings ? Status(Done{}) : std::move(settings).error();
}

// Told here, with their line, not when a command that uses them comes along: a connection option as
// the command would say it to the value alone, one of run's beside those above it in the file. The
// files that a value names are looked at, and its command runs, when they are used.
Status check_values(const ConfigFile& file) {
  Choices of_run;
  for (const Setting& setting : file.settings) {
    const OptionRow& row = row_of(setting.id);
    const bool used_later = row.metavar == "FILE" || row.metavar == "DIR" || row.metavar == "CMD";
    if (setting.values.empty() || used_later) continue;
    bool runs = row.section == Section::command;
    if (runs) of_run.set(setting.id, setting.values);
    auto ok = runs ? try_run(of_run) : try_connection(setting);
    if (ok) continue;
    return Error{ErrorKind::config,
                 file.path + ":" + std::to_string(setting.line) + ": " + ok.error().text};
  }
  return Done{};
}

// ---- precedence ----

// The options that a stronger layer has answered.
class DecidedOptions {
 public:
  bool has(Opt id) const { return done_[static_cast<size_t>(id)]; }

  void add(Opt id, const std::vector<std::string>& values) {
    mark(id);
    if (values.empty()) return;  // a flag that is false rules nothing else out
    for (const auto& [one, other] : kExclusivePairs) {
      if (id == one || id == other) mark(id == one ? other : one);
    }
    // Nor is what only the native format has room for meant for other clients' locks.
    if (id == Opt::format && values.back() != to_string(redis::Format::native)) {
      for (const OptionRow& row : options()) {
        if (is_native_only(row.id)) mark(row.id);
      }
    }
    // A URL that brings its own user or password is not meant for those of a weaker layer.
    if (id == Opt::url && any_credentials(values)) {
      mark(Opt::user);
      mark(Opt::password_file);
      mark(Opt::password_command);
    }
  }

 private:
  void mark(Opt id) { done_[static_cast<size_t>(id)] = true; }
  std::array<bool, kOptCount> done_{};
};

// The value of the first variable in a row's list that is set.
std::optional<std::string> environment_of(const OptionRow& row, Getenv getenv) {
  for (std::string_view names = row.environment; !names.empty();) {
    size_t end = std::min(names.size(), names.find(", "));
    if (auto value = variable(getenv, names.substr(0, end))) return value;
    names.remove_prefix(std::min(names.size(), end + 2));
  }
  return std::nullopt;
}

DecidedOptions decided_by_caller(const Choices& choices, Getenv getenv) {
  DecidedOptions decided;
  for (const OptionRow& row : options()) {
    if (choices.has(row.id)) {
      decided.add(row.id, choices.all(row.id));
    } else if (auto value = environment_of(row, getenv)) {
      decided.add(row.id, split_urls(*value));
    }
  }
  return decided;
}

void add_layer(Invocation& invocation, const ConfigFile& file, DecidedOptions& decided) {
  for (const Setting& setting : file.settings) {
    const OptionRow& row = row_of(setting.id);
    bool of_run = row.section == Section::command;
    if (of_run && invocation.command != CommandId::run) continue;
    if (decided.has(setting.id) || !row.applies_to(invocation.command)) continue;
    if (setting.literal) {
      invocation.choices.set_password(setting.values.front());
    } else {
      invocation.choices.set_from_file(setting.id, setting.values);
    }
  }
  for (const Setting& setting : file.settings) decided.add(setting.id, setting.values);
}

// What only this file may have said is not known.
Error no_url(Error closed) {
  closed.kind = ErrorKind::config;
  closed.text +=
      "; no other place names a server: use --url or RLOCK_URL, or let this user read it";
  return closed;
}

std::optional<std::string> named_file(const Choices& choices, Getenv getenv) {
  auto flag = choices.last(Opt::config);
  return flag ? flag : environment_of(row_of(Opt::config), getenv);
}

}  // namespace

std::vector<std::string> default_config_files(Getenv getenv) {
  std::vector<std::string> files;
  auto folder = variable(getenv, "XDG_CONFIG_HOME");
  auto home = variable(getenv, "HOME");
  // The XDG specification: a relative path is to be ignored.
  if (!folder || !folder->starts_with('/')) folder.reset();
  if (!folder && home && home->starts_with('/')) folder = *home + "/.config";
  if (folder) files.push_back(*folder + "/" + std::string(kUserFile));
  files.emplace_back(kSystemFile);
  return files;
}

Result<Warnings> apply_config(Invocation& invocation, Getenv getenv,
                              std::span<const std::string> default_files) {
  auto named = named_file(invocation.choices, getenv);
  std::vector<std::string> files(default_files.begin(), default_files.end());
  if (named) files = {*named};
  DecidedOptions decided = decided_by_caller(invocation.choices, getenv);
  Warnings warnings;
  for (const std::string& path : files) {
    const Origin own = &path == &files.back() ? Origin::machine : Origin::user;
    auto file = load(path, named ? Origin::named : own);
    if (!file && file.error().kind == ErrorKind::denied) {
      if (!decided.has(Opt::url)) return no_url(std::move(file).error());
      warnings.push_back("warning: " + file.error().text + "; going on without it");
      continue;
    }
    if (!file) return std::move(file).error();
    if (!*file) continue;
    TRY_STATUS(check_values(**file));
    add_layer(invocation, **file, decided);
  }
  return warnings;
}

}  // namespace rlock::cli
