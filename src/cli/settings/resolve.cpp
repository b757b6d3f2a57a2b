#include "cli/settings/resolve.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>

#include "cli/options/values.hpp"
#include "cli/output/view.hpp"
#include "cli/settings/config.hpp"
#include "cli/settings/connect.hpp"
#include "redis/net/url.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr const char* kSystemFile = "/etc/rlock/rlock.toml";
constexpr std::string_view kUserFile = "rlock/rlock.toml";

// The value of a variable; an empty one counts as not set.
std::optional<std::string> variable(Getenv getenv, std::string_view name) {
  const char* value = getenv(std::string(name).c_str());
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

// ---- the sources ----

Layer command_line_layer(const Choices& choices) {
  Layer layer;
  for (const OptionRow& row : options()) {
    if (choices.is_flag(row.id)) layer.emplace_back(row.id, choices[row.id]);
  }
  return layer;
}

Result<std::vector<std::string>> flag_words(std::string_view name, const std::string& word) {
  if (word == "0" || word == "no" || word == "false") return std::vector<std::string>{};
  if (word == "1" || word == "yes" || word == "true") return std::vector<std::string>{kFlagValue};
  return usage(std::string(name) + " must be 1 or 0");
}

// Uses the first variable of an option that is set.
Result<Layer> environment_layer(Getenv getenv) {
  Layer layer;
  for (const OptionRow& row : options()) {
    for (std::string_view names = row.environment; !names.empty();) {
      const std::string_view name = util::take_until(names, ',');
      if (names.starts_with(' ')) names.remove_prefix(1);
      auto word = variable(getenv, name);
      if (!word) continue;
      std::vector<std::string> words{*word};
      if (row.kind() == ValueKind::flag) {
        TRY(words, flag_words(name, *word));
      }
      TRY(auto setting,
          make_setting(row, std::move(words), Source::environment, std::string(name)));
      layer.emplace_back(row.id, std::move(setting));
      break;
    }
  }
  return layer;
}

const Setting* find(const Layer& layer, Opt id) {
  auto entry =
      std::find_if(layer.begin(), layer.end(), [&](const auto& one) { return one.first == id; });
  return entry == layer.end() ? nullptr : &entry->second;
}

// ---- precedence ----

// If the stronger source sets one of these options, the other one of a weaker source does not
// apply.
constexpr std::pair<Opt, Opt> kExclusivePairs[] = {{Opt::nonblock, Opt::wait},
                                                   {Opt::nonblock, Opt::ticket},
                                                   {Opt::password, Opt::password_file},
                                                   {Opt::password, Opt::password_command},
                                                   {Opt::password_file, Opt::password_command}};

constexpr bool is_login(Opt id) {
  return id == Opt::user || is_password(id);
}

bool has_own_login(const Setting& url) {
  return std::any_of(url.words.begin(), url.words.end(), [](const std::string& text) {
    auto parsed = redis::parse_url(text);
    return parsed && redis::has_credentials(*parsed);
  });
}

bool same_servers(const Setting& one, const Setting& other) {
  auto same = [](const std::string& text, const std::string& other_text) {
    auto url = redis::parse_url(text), other_url = redis::parse_url(other_text);
    return url && other_url && redis::same_servers(*url, *other_url);
  };
  return std::equal(one.words.begin(), one.words.end(), other.words.begin(), other.words.end(),
                    same);
}

class Resolver {
 public:
  explicit Resolver(Invocation& invocation)
      : choices_(invocation.choices),
        // `config` shows what a run would use, and `doctor` checks some of it.
        command_(invocation.command == CommandId::config ? CommandId::run : invocation.command),
        reads_run_(command_ == CommandId::run || command_ == CommandId::doctor) {}

  bool has(Opt id) const { return choices_.has(id); }

  // Adds the settings that no stronger source has decided.
  Status add(Layer layer) {
    if (!may_log_in(layer)) {
      note_unused(layer);
      std::erase_if(layer, [](const auto& entry) { return is_login(entry.first); });
    }
    std::vector<Opt> set;
    for (auto& [id, setting] : layer) {
      if (is_decided(id) || !is_read(setting, row_of(id))) continue;
      choices_.set(id, std::move(setting));
      set.push_back(id);
    }
    for (Opt id : set) rule_out_others(id);
    return keep_one_password(set);
  }

 private:
  bool is_decided(Opt id) const {
    return choices_[id].source != Source::fallback || ruled_out_[static_cast<size_t>(id)];
  }

  bool is_read(const Setting& setting, const OptionRow& row) const {
    if (setting.source != Source::file) return true;
    const bool of_command = row.applies_to(command_) || !row.on_command_line();
    return of_command && (row.section == Section::general || reads_run_);
  }

  // A user and password from a source that names a server apply to that server only, and no
  // source's apply to a URL that has its own.
  bool may_log_in(const Layer& layer) const {
    const Setting& url = choices_[Opt::url];
    if (url.source == Source::fallback) return true;
    if (has_own_login(url)) return false;
    const Setting* other = find(layer, Opt::url);
    return other == nullptr || (same_servers(url, *other) && same_trust(layer));
  }

  // Whether this host verifies the server as the source of the password requires.
  bool same_trust(const Layer& layer) const {
    constexpr std::array kTrust{Opt::insecure, Opt::cacert, Opt::sni};
    return std::all_of(kTrust.begin(), kTrust.end(), [&](Opt id) {
      const Setting* wanted = find(layer, id);
      return choices_[id].source == Source::fallback ||
             choices_[id].words == (wanted != nullptr ? wanted->words : std::vector<std::string>{});
    });
  }

  void note_unused(const Layer& layer) {
    const Setting* url = find(layer, Opt::url);
    auto password = std::find_if(layer.begin(), layer.end(), [&](const auto& entry) {
      return is_password(entry.first) && !is_decided(entry.first);
    });
    if (url == nullptr || password == layer.end()) return;
    choices_.set_unused_login(util::format(
        "the password of {} is for the server of {}, with the sni, cacert and insecure there, and "
        "not for the server of {}",
        password->second.place, url->place, choices_[Opt::url].place));
  }

  // Keeps one of the passwords that a source has set. REDISCLI_AUTH belongs to redis-cli: rlock
  // uses it if there is no other.
  Status keep_one_password(const std::vector<Opt>& set) {
    const Setting* first = nullptr;
    for (Opt id : set) {
      if (!is_password(id)) continue;
      if (first == nullptr) {
        first = &choices_[id];
      } else if (first->place == "REDISCLI_AUTH") {
        choices_.set(Opt::password, {});
      } else {
        return usage(first->place + " and " + choices_[id].place + " cannot be used together");
      }
    }
    return Done{};
  }

  void rule_out_others(Opt id) {
    if (!has(id)) return;  // a flag that is false excludes nothing
    for (const auto& [one, other] : kExclusivePairs) {
      if (id == one || id == other) rule_out(id == one ? other : one);
    }
    // Options that only the native format supports are not meant for locks of another format.
    if (id == Opt::format && choices_.last(id) != to_string(redis::Format::native)) {
      for (const OptionRow& row : options()) {
        if (is_native_only(row.id)) rule_out(row.id);
      }
    }
  }

  void rule_out(Opt id) { ruled_out_[static_cast<size_t>(id)] = true; }

  Choices& choices_;
  const CommandId command_;
  const bool reads_run_;
  std::array<bool, kOptCount> ruled_out_{};
};

// Only the file that this user may not read can name a server.
Error no_url(Error denied) {
  denied.kind = ErrorKind::config;
  denied.text +=
      "; no other source names a server: use --url or RLOCK_URL, or let this user read the file";
  return denied;
}

// A URL that cannot be parsed is reported elsewhere.
bool shows_password(const Choices& choices) {
  std::vector<std::string> urls = choices.all(Opt::url);
  return choices.is_flag(Opt::url) && std::any_of(urls.begin(), urls.end(), [](std::string& url) {
           return redis::parse_url(url) && redis::mask_passwords(url);
         });
}

// Kubernetes sets such variables next to a Service whose name begins with `rlock`, and the CI
// templates of rlock (packaging/ci) have their inputs in others.
bool is_of_platform(std::string_view name) {
  return name.starts_with("RLOCK_CI_") || name.ends_with("_SERVICE_HOST") ||
         name.find("_SERVICE_PORT") != name.npos || name.ends_with("_PORT") ||
         name.find("_PORT_") != name.npos;
}

}  // namespace

const char* system_getenv(const char* name) {
  return ::getenv(name);
}

std::vector<std::string> default_config_files(Getenv getenv) {
  std::vector<std::string> files;
  auto folder = variable(getenv, "XDG_CONFIG_HOME");
  auto home = variable(getenv, "HOME");
  // The XDG specification requires a relative path to be ignored.
  if (!folder || !folder->starts_with('/')) folder.reset();
  if (!folder && home && home->starts_with('/')) folder = *home + "/.config";
  if (folder) files.push_back(*folder + "/" + std::string(kUserFile));
  files.emplace_back(kSystemFile);
  return files;
}

std::vector<std::string> unreachable_files(Getenv getenv) {
  std::vector<std::string> sentences;
  for (const std::string& path : default_config_files(getenv)) {
    if (!is_out_of_reach(path)) continue;
    sentences.push_back(util::format("this user cannot enter the folder of {}", path));
  }
  return sentences;
}

std::vector<std::string> environment_names() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

std::span<const std::string_view> command_variables() {
  static constexpr std::string_view kVariables[] = {
      "RLOCK_NAME",      "RLOCK_OWNER",    "RLOCK_TOKEN", "RLOCK_SLOT",
      "RLOCK_WAITED_MS", "RLOCK_UNLOCKED", "RLOCK_HELD"};
  return kVariables;
}

std::vector<std::string_view> variables_of(const OptionRow& row) {
  std::vector<std::string_view> variables;
  for (std::string_view rest = row.environment; !rest.empty();) {
    variables.push_back(util::take_until(rest, ','));
    if (rest.starts_with(' ')) rest.remove_prefix(1);
  }
  return variables;
}

std::vector<std::string> unknown_variables(std::span<const std::string> names) {
  const auto exports = command_variables();
  std::vector<std::string_view> known(exports.begin(), exports.end());
  known.push_back(kUnstableVariable);
  for (const OptionRow& row : options()) {
    for (std::string_view variable : variables_of(row)) known.push_back(variable);
  }
  std::vector<std::string> unknown;
  std::copy_if(names.begin(), names.end(), std::back_inserter(unknown), [&](const auto& name) {
    return name.starts_with("RLOCK_") && !is_of_platform(name) &&
           std::find(known.begin(), known.end(), name) == known.end();
  });
  return unknown;
}

Warnings variable_warnings(std::span<const std::string> names) {
  if (std::find(names.begin(), names.end(), "RLOCK_HELD") != names.end()) return {};
  Warnings warnings;
  for (const std::string& name : unknown_variables(names)) {
    warnings.push_back(
        util::format("warning: rlock does not know {}; ENVIRONMENT in rlock(1) lists what it "
                     "reads, such as RLOCK_URL for the server",
                     util::printable(name)));
  }
  return warnings;
}

std::vector<std::string> ignored_settings(const Choices& choices) {
  std::vector<std::string> sentences;
  if (!choices.unused_login().empty()) sentences.push_back(choices.unused_login());
  const auto unknown = unknown_variables(environment_names());
  if (!unknown.empty()) {
    sentences.push_back("rlock does not know these variables: " + util::joined(unknown, " "));
  }
  if (choices.has(Opt::config)) return sentences;
  for (std::string& sentence : unreachable_files(system_getenv)) {
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

Result<Warnings> resolve(Invocation& invocation, Getenv getenv,
                         std::span<const std::string> default_files) {
  Layer given = command_line_layer(std::exchange(invocation.choices, {}));
  Resolver resolver(invocation);
  TRY_STATUS(resolver.add(std::move(given)));
  TRY(auto environment, environment_layer(getenv));
  TRY_STATUS(resolver.add(std::move(environment)));
  Warnings warnings;
  if (shows_password(invocation.choices)) {
    warnings.emplace_back(
        "warning: --url contains a password, which other users of this host can see in the list of "
        "processes until rlock has hidden it: use --password-file, RLOCK_URL or rlock.toml");
  }
  const auto named = invocation.choices.last(Opt::config);
  std::vector<std::string> files(default_files.begin(), default_files.end());
  if (named) files = {*named};
  for (const std::string& path : files) {
    const Origin default_origin = &path == &files.back() ? Origin::machine : Origin::user;
    auto layer = load_config(path, named ? Origin::named : default_origin);
    if (!layer && layer.error().kind == ErrorKind::denied) {
      if (!resolver.has(Opt::url)) return no_url(std::move(layer).error());
      warnings.push_back("warning: " + layer.error().text + "; continuing without it");
      continue;
    }
    if (!layer) return std::move(layer).error();
    if (*layer) TRY_STATUS(resolver.add(**std::move(layer)));
  }
  return warnings;
}

}  // namespace rlock::cli
