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

#include "cli/options/values.hpp"
#include "cli/output/view.hpp"
#include "cli/settings/config_file.hpp"
#include "cli/settings/connect.hpp"
#include "cli/settings/run_settings.hpp"
#include "redis/net/url.hpp"
#include "util/fd.hpp"

namespace rlock::cli {
namespace {

using util::Fd;

constexpr const char* kSystemFile = "/etc/rlock/rlock.toml";
constexpr std::string_view kUserFile = "rlock/rlock.toml";

// Two options for one setting: whichever of them the stronger layer gives rules out both for the
// weaker ones.
constexpr std::pair<Opt, Opt> kExclusivePairs[] = {
    {Opt::nonblock, Opt::wait},        {Opt::slots, Opt::shared},
    {Opt::once, Opt::once_per},        {Opt::once, Opt::once_within},
    {Opt::once_per, Opt::once_within}, {Opt::password_file, Opt::password_command}};

enum class Origin { user, machine, named };

struct ConfigFile {
  std::string path;
  std::vector<Setting> settings;  // in the order of their lines
};

// A malformed URL may contain a password anywhere.
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

// As ssh checks its own files: a user who can write there chooses the server and the files that
// rlock writes. A file that was named on purpose is not checked.
Status check_writers(const std::string& path, const struct stat& info) {
  if (info.st_uid != 0 && info.st_uid != geteuid()) {
    return unreadable(path, "another user owns it");
  }
  if ((info.st_mode & 022) == 0) return Done{};
  return unreadable(path, "other users can write to it; run chmod go-w " + path);
}

// The group may read a file of root, where an administrator chose it (root:rlock, 0640), but not a
// user's own, whose group may be everyone's.
Status check_readers(const std::string& path, const struct stat& info) {
  if (info.st_uid != 0 && info.st_uid != geteuid()) {
    return unreadable(path, "it contains a password, and another user owns it");
  }
  const bool owned_by_root = info.st_uid == 0;
  if ((info.st_mode & (owned_by_root ? 027 : 077)) == 0) return Done{};
  return unreadable(path,
                    std::string("it contains a password, and other users can read it; run chmod ") +
                        (owned_by_root ? "640 " : "600 ") + path + ", or use password-file");
}

// A folder that rlock may not enter (another user's HOME, left in the environment) counts as one
// without a file.
bool is_missing(const std::string& path, int error) {
  struct stat info {};
  return error == ENOENT || error == ENOTDIR ||
         (error == EACCES && stat(path.c_str(), &info) != 0 && errno == EACCES);
}

// Nothing: this default file does not exist.
Result<std::optional<ConfigFile>> load(const std::string& path, Origin origin) {
  constexpr size_t kLongest = size_t{1024} * 1024;  // the path may be /dev/zero
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
  auto options = connection_options(choices, empty_environment);
  return options ? Status(Done{}) : std::move(options).error();
}

Status try_run(const Choices& choices) {
  auto settings = run_settings({CommandId::run, choices, {"name"}, {{"true"}}}, empty_environment);
  return settings ? Status(Done{}) : std::move(settings).error();
}

std::string place_of(const ConfigFile& file, const Setting& setting) {
  return file.path + ":" + std::to_string(setting.line);
}

// Reports bad values with their line at once, not only when a command uses them: a connection
// option is checked by itself, an option of run together with those above it in the file. Files
// that a value names are read, and its commands run, only when they are used.
Status check_values(const ConfigFile& file) {
  Choices run_choices;
  for (const Setting& setting : file.settings) {
    const OptionRow& row = row_of(setting.id);
    const bool used_later = row.metavar == "FILE" || row.metavar == "DIR" || row.metavar == "CMD";
    if (setting.values.empty() || used_later) continue;
    const bool is_run_option = row.section == Section::command;
    const std::string place = place_of(file, setting);
    if (is_run_option) run_choices.set_from_file(setting.id, setting.values, place);
    auto ok = is_run_option ? try_run(run_choices) : try_connection(setting);
    if (ok) continue;
    return Error{ErrorKind::config, place + ": " + ok.error().text};
  }
  return Done{};
}

// ---- precedence ----

// Who logs in. A source that names a server means these for that server alone.
constexpr bool is_login(Opt id) {
  return id == Opt::user || id == Opt::password_file || id == Opt::password_command;
}

// The options that a stronger layer has set or ruled out.
class DecidedOptions {
 public:
  bool has(Opt id) const { return done_[static_cast<size_t>(id)]; }

  void add(Opt id, const std::vector<std::string>& values) {
    mark(id);
    if (values.empty()) return;  // a flag that is false rules out nothing else
    for (const auto& [one, other] : kExclusivePairs) {
      if (id == one || id == other) mark(id == one ? other : one);
    }
    // Options that only the native format supports are not meant for locks of another one.
    if (id == Opt::format && values.back() != to_string(redis::Format::native)) {
      for (const OptionRow& row : options()) {
        if (is_native_only(row.id)) mark(row.id);
      }
    }
    // User and password of a weaker layer are not meant for a URL that has its own.
    if (id == Opt::url && any_credentials(values)) {
      for (const OptionRow& row : options()) {
        if (is_login(row.id)) mark(row.id);
      }
    }
  }

 private:
  void mark(Opt id) { done_[static_cast<size_t>(id)] = true; }
  std::array<bool, kOptCount> done_{};
};

struct Variable {
  std::string_view name;
  std::string value;
};

// The first variable that is set, of those that the row lists.
std::optional<Variable> environment_of(const OptionRow& row, Getenv getenv) {
  for (std::string_view names = row.environment; !names.empty();) {
    size_t end = std::min(names.size(), names.find(", "));
    const std::string_view name = names.substr(0, end);
    if (auto value = variable(getenv, name)) return Variable{name, *std::move(value)};
    names.remove_prefix(std::min(names.size(), end + 2));
  }
  return std::nullopt;
}

DecidedOptions decided_by_caller(const Choices& choices, Getenv getenv) {
  DecidedOptions decided;
  const Getenv login_getenv = credentials_environment(choices, getenv);
  for (const OptionRow& row : options()) {
    if (choices.has(row.id)) {
      decided.add(row.id, choices.all(row.id));
    } else if (auto found = environment_of(row, is_login(row.id) ? login_getenv : getenv)) {
      decided.add(row.id, split_urls(found->value));
    }
  }
  return decided;
}

void add_layer(Invocation& invocation, ConfigFile file, DecidedOptions& decided) {
  const bool names_another =
      decided.has(Opt::url) &&
      std::any_of(file.settings.begin(), file.settings.end(),
                  [](const Setting& setting) { return setting.id == Opt::url; });
  if (names_another) {
    std::erase_if(file.settings, [](const Setting& setting) { return is_login(setting.id); });
  }
  // `config` shows what a run would use.
  const CommandId command =
      invocation.command == CommandId::config ? CommandId::run : invocation.command;
  for (const Setting& setting : file.settings) {
    const OptionRow& row = row_of(setting.id);
    const bool is_run_option = row.section == Section::command;
    if (is_run_option && command != CommandId::run) continue;
    if (decided.has(setting.id) || !row.applies_to(command)) continue;
    if (setting.literal) {
      invocation.choices.set_password(setting.values.front(), place_of(file, setting));
    } else {
      invocation.choices.set_from_file(setting.id, setting.values, place_of(file, setting));
    }
  }
  for (const Setting& setting : file.settings) decided.add(setting.id, setting.values);
}

// Only the file that this user may not read can have named a server.
Error no_url(Error denied) {
  denied.kind = ErrorKind::config;
  denied.text +=
      "; no other source names a server: use --url or RLOCK_URL, or let this user read the file";
  return denied;
}

std::string joined(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : " ") + value;
  return text;
}

std::optional<std::string> named_file(const Choices& choices, Getenv getenv) {
  auto flag = choices.last(Opt::config);
  return flag ? flag : variable(getenv, row_of(Opt::config).environment);
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
  if (invocation.choices.is_flag(Opt::url)) {
    auto urls = invocation.choices.all(Opt::url);
    // One that is not understood is reported as such.
    if (std::any_of(urls.begin(), urls.end(), [](std::string& url) {
          return redis::parse_url(url) && redis::mask_passwords(url);
        })) {
      warnings.emplace_back(
          "warning: --url contains a password, which other users of this host can see in the list "
          "of processes until rlock has hidden it: use --password-file, RLOCK_URL or rlock.toml");
    }
  }
  for (const std::string& path : files) {
    const Origin default_origin = &path == &files.back() ? Origin::machine : Origin::user;
    auto file = load(path, named ? Origin::named : default_origin);
    if (!file && file.error().kind == ErrorKind::denied) {
      if (!decided.has(Opt::url)) return no_url(std::move(file).error());
      warnings.push_back("warning: " + file.error().text + "; continuing without it");
      continue;
    }
    if (!file) return std::move(file).error();
    if (!*file) continue;
    TRY_STATUS(check_values(**file));
    add_layer(invocation, std::move(**file), decided);
  }
  return warnings;
}

EffectiveSetting effective_setting(Opt id, const Choices& choices, Getenv getenv) {
  const OptionRow& row = row_of(id);
  EffectiveSetting setting{row.name, {}, Source::fallback, {}};
  if (is_login(id)) getenv = credentials_environment(choices, getenv);
  auto found = environment_of(row, getenv);
  if (choices.has(id)) {
    setting.value = joined(choices.all(id));
    setting.source = choices.is_flag(id) ? Source::option : Source::file;
    setting.place = choices.is_flag(id) ? shown_name(id) : choices.place(id);
  } else if (found && !(id == Opt::password_file && choices.has(Opt::password_command))) {
    setting.value = found->value;
    setting.source = Source::environment;
    setting.place = found->name;
  } else if (id == Opt::password_file && choices.password()) {
    setting.source = Source::file;
    setting.place = choices.password_place();
  } else {
    setting.value = text_for(row, CommandId::run).fallback;
  }
  // What these sources contain is the password itself.
  if (id == Opt::password_file && !choices.has(id) && setting.source != Source::fallback) {
    setting.name = "password";
    setting.value = "(hidden)";
  }
  redis::mask_passwords(setting.value);
  return setting;
}

}  // namespace rlock::cli
