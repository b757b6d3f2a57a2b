#include "cli/settings/config.hpp"

// Headers alone: Debian's shared library would be loaded by every run, even without a file.
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
// Its parser (3.3, 3.4) asserts, or lets the compiler assume, what is not so in malformed files
// (`[#`), before it reports the error that it has for them.
#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#include <toml++/toml.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "cli/options/values.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/view.hpp"
#include "cli/settings/run_settings.hpp"
#include "redis/net/url.hpp"
#include "util/fd.hpp"
#include "util/text.hpp"

namespace rlock::cli {

// ---- the syntax of a file ----

namespace {

bool beyond_ascii(char c) {
  return static_cast<unsigned char>(c) >= 0x80;
}

std::string two_digits(char c, const char* digits) {
  auto byte = static_cast<unsigned char>(c);
  return {digits[byte >> 4], digits[byte & 15]};
}

// As itself, or as the end of an escape such as `\u007e`.
bool contains_mark(char mark, std::string_view text) {
  auto contains = [&](const std::string& part) { return text.find(part) != text.npos; };
  return contains({mark}) || contains("00" + two_digits(mark, "0123456789abcdef")) ||
         contains("00" + two_digits(mark, "0123456789ABCDEF"));
}

// The text for a parser that cannot be trusted with more than ASCII: toml++ (3.3, 3.4) reaches code
// there that it declares unreachable. Each other byte is written as a mark, a character that no
// string of the text contains, and two digits.
class AsciiText {
 public:
  // nullopt: every possible mark occurs in the text.
  static std::optional<AsciiText> of(std::string_view text) {
    AsciiText ascii(text);
    if (std::none_of(text.begin(), text.end(), beyond_ascii)) return ascii;
    // TOML has none of these outside of strings and comments.
    constexpr std::string_view kMarks = "~^|`;!$*?<>";
    auto mark =
        std::find_if(kMarks.begin(), kMarks.end(), [&](char c) { return !contains_mark(c, text); });
    if (mark == kMarks.end()) return std::nullopt;
    ascii.mark_ = *mark;
    ascii.text_.clear();
    for (char c : text) {
      ascii.text_ +=
          beyond_ascii(c) ? *mark + two_digits(c, "0123456789abcdef") : std::string(1, c);
    }
    return ascii;
  }

  const std::string& text() const { return text_; }

  // What a piece of text() stands for.
  std::string original(std::string_view piece) const {
    std::string out;
    while (!piece.empty()) {
      const auto byte = has_mark(piece.substr(0, 1))
                            ? util::parse_number<unsigned char>(piece.substr(1, 2), 16)
                            : std::nullopt;
      const bool marked = byte && piece.size() >= 3;
      out += marked ? static_cast<char>(*byte) : piece.front();
      piece.remove_prefix(marked ? 3 : 1);
    }
    return out;
  }

  bool has_mark(std::string_view piece) const {
    return mark_ != '\0' && piece.find(mark_) != piece.npos;
  }

 private:
  explicit AsciiText(std::string_view text) : text_(text) {}
  std::string text_;
  char mark_ = '\0';  // none: the text was ASCII
};

using Words = std::vector<std::string>;

constexpr std::string_view kRunTable = "run";
constexpr std::string_view kPassword = "password";

std::string_view expected_value(const OptionRow& row) {
  if (!row.takes_value()) return "true or false";
  if (row.id == Opt::contain) return "true, false or \"user\"";
  if (row.value_optional) {
    return row.metavar == "DUR" ? "true, false or a duration such as \"10s\""
                                : "true, false or a whole number";
  }
  if (row.id == Opt::url) return "a string or an array of strings";
  if (row.metavar == "DUR") return "a duration such as \"10s\", or a number of seconds";
  if (row.metavar == "N") return "a whole number";
  return "a string";
}

// The strings of an array; nothing where it is empty or has other elements.
std::optional<Words> strings_of(const toml::array& array) {
  Words words;
  for (const toml::node& node : array) {
    if (!node.is_string()) return std::nullopt;
    words.push_back(node.as_string()->get());
  }
  return words.empty() ? std::nullopt : std::optional(std::move(words));
}

// The value as words of the command line; nothing when it is of the wrong type.
std::optional<Words> words_of(const OptionRow& row, const toml::node& node) {
  if (!row.takes_value() || (row.value_optional && node.is_boolean())) {
    if (!node.is_boolean()) return std::nullopt;
    return node.as_boolean()->get() ? Words{kFlagValue} : Words{};
  }
  bool duration = row.metavar == "DUR";
  if (node.is_integer() && (duration || row.metavar == "N")) {
    return Words{std::to_string(node.as_integer()->get())};
  }
  if (node.is_floating_point() && duration) {
    return Words{std::to_string(node.as_floating_point()->get())};
  }
  if (node.is_array() && row.id == Opt::url) return strings_of(*node.as_array());
  if (!node.is_string() || row.metavar == "N") return std::nullopt;
  return Words{node.as_string()->get()};
}

unsigned line_of(const toml::key& key) {
  return key.source().begin.line;
}

std::string_view line_at(std::string_view text, unsigned number) {
  for (; number > 1; --number) text.remove_prefix(std::min(text.size(), text.find('\n') + 1));
  return text.substr(0, text.find('\n'));
}

class Reader {
 public:
  Reader(const std::string& path, const AsciiText& text)
      : path_(path), folder_(path.substr(0, path.rfind('/') + 1)), text_(text) {}

  Status read(const toml::table& table, Section section) {
    for (auto&& [key, node] : table) {
      if (auto ok = read_key(key, node, section); !ok) return ok;
    }
    return Done{};
  }

  // The parser's message quotes the text that it could not read: not where that may be a password.
  Error syntax_error(const toml::parse_error& error) const {
    unsigned line = error.source().begin.line;
    std::string_view shown = line_at(text_.text(), line);
    bool secret = shown.find("pass") != shown.npos || shown.find("://") != shown.npos;
    const std::string key(shown.substr(0, shown.find_first_of(" \t=")));
    const size_t value = shown.find_first_not_of(" \t=", key.size());
    const bool unquoted =
        value != shown.npos && std::isalpha(static_cast<unsigned char>(shown[value]));
    if (find_option(key) != nullptr && unquoted) {
      return at(line,
                "invalid TOML: write the value of " + key + " in quotes: " + key + " = \"...\"");
    }
    if (secret) return at(line, "invalid TOML");
    if (text_.has_mark(error.description())) {
      return at(line, "invalid TOML: a character that is not ASCII, outside a string");
    }
    return at(line, "invalid TOML: " + util::printable(error.description()));
  }

  std::vector<Setting> take() { return std::move(settings_); }

 private:
  Status read_key(const toml::key& key, const toml::node& node, Section section) {
    if (section == Section::general && key.str() == kRunTable) {
      if (node.is_table()) return read(*node.as_table(), Section::command);
      return at(line_of(key), "run must be a table: [run]");
    }
    if (section == Section::general && key.str() == kPassword) {
      return add(row_of(Opt::password_file), key, node);
    }
    const OptionRow* row = find_option(key.str());
    const bool known = row != nullptr && is_key(*row) && row->section == section;
    if (!known) return unknown_key(key, section);
    return add(*row, key, node);
  }

  Status add(const OptionRow& row, const toml::key& key, const toml::node& node) {
    const std::string name(key.str());
    auto words = words_of(row, node);
    if (!words) return at(line_of(key), name + " must be " + std::string(expected_value(row)));
    bool literal = name == kPassword;
    for (std::string& word : *words) {
      word = text_.original(word);
      if (word.find('\0') != word.npos)
        return at(line_of(key), name + " must not contain a NUL character");
    }
    if (row.id == Opt::url) words = split_urls(*words);
    if (!literal) {
      for (std::string& word : *words) word = resolve_path(row, word);
    }
    if (literal && words->front().empty()) return at(line_of(key), "password is empty");
    auto password = [](Opt id) { return id == Opt::password_file || id == Opt::password_command; };
    auto conflicts = [&](const Setting& other) { return password(other.id) && password(row.id); };
    if (std::any_of(settings_.begin(), settings_.end(), conflicts)) {
      return at(line_of(key),
                "password, password-file and password-command cannot be used together");
    }
    settings_.push_back({row.id, *std::move(words), line_of(key), literal});
    return Done{};
  }

  Error at(unsigned line, const std::string& what) const {
    return {ErrorKind::config, path_ + ":" + std::to_string(line) + ": " + what};
  }

  Error unknown_key(const toml::key& key, Section section) const {
    const std::string name = util::shortened(text_.original(key.str()), 60);
    const std::string text =
        "unknown key " + in_quotes(name) + (section == Section::command ? " in [run]" : "");
    const OptionRow* row = find_option(key.str());
    if (row != nullptr && !is_key(*row)) {
      return at(line_of(key), text + "; it can be given on the command line only");
    }
    if (row != nullptr && row->section == Section::command) {
      return at(line_of(key), text + "; put it in the table [run]");
    }
    if (row != nullptr || key.str() == kPassword) {
      return at(line_of(key), text + "; put it at the top, before any [table]");
    }
    std::vector<std::string_view> names;
    if (section == Section::general) names = {kRunTable, kPassword};
    for (const OptionRow& option : options()) {
      if (is_key(option) && option.section == section) names.push_back(option.name);
    }
    auto meant = suggestion(key.str(), names);
    return at(line_of(key), meant ? text + " (did you mean " + std::string(*meant) + "?)" : text);
  }

  // Relative paths start at the folder of the configuration file, not at the current one.
  std::string resolve_path(const OptionRow& row, const std::string& value) const {
    constexpr std::string_view kLocal = "local:";
    bool local = row.id == Opt::url && value.starts_with(kLocal);
    if (!local && row.metavar != "FILE" && row.metavar != "DIR") return value;
    size_t start = local ? kLocal.size() : 0;
    if (value.size() == start || value[start] == '/') return value;
    return value.substr(0, start) + folder_ + value.substr(start);
  }

  std::string path_;
  std::string folder_;
  const AsciiText& text_;  // what the parser read: its strings and messages are translated back
  std::vector<Setting> settings_;
};

Error not_utf8(const std::string& path, std::string_view text) {
  const char* begin = text.data();
  while (size_t length = util::utf8_length(text)) text.remove_prefix(length);
  auto line = 1 + std::count(begin, text.data(), '\n');
  return {ErrorKind::config, path + ":" + std::to_string(line) + ": invalid TOML: not UTF-8"};
}

}  // namespace

bool is_key(const OptionRow& row) {
  constexpr std::array kOfOneCall{Opt::config,  Opt::json, Opt::quiet,
                                  Opt::verbose, Opt::help, Opt::version};
  const bool of_one_call =
      std::find(kOfOneCall.begin(), kOfOneCall.end(), row.id) != kOfOneCall.end();
  const bool of_run = row.section == Section::general || row.applies_to(CommandId::run);
  return !row.name.empty() && of_run && !of_one_call;
}

Result<std::vector<Setting>> parse_config(const std::string& path, std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (!util::is_utf8(text)) return not_utf8(path, text);
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  auto ascii = AsciiText::of(text);
  if (!ascii)
    return Error{
        ErrorKind::config,
        path +
            ": rlock cannot read a file that contains characters outside ASCII and also each of "
            "~^|`;!$*?<>"};
  Reader reader(path, *ascii);
  toml::table table;
  try {
    table = toml::parse(ascii->text());
  } catch (const toml::parse_error& error) {
    return reader.syntax_error(error);
  }
  TRY_STATUS(reader.read(table, Section::general));
  return reader.take();
}

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
  const auto* group = std::get_if<redis::SentinelGroup>(&*url);
  return redis::has_credentials(*url) ||
         (group != nullptr && redis::has_credentials(group->sentinels.front()));
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
  choices.set(Opt::url, {"redis://localhost"});  // the one server with which all options work
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
    std::string_view name = util::take_until(names, ',');
    if (name.starts_with(' ')) name.remove_prefix(1);
    if (auto value = variable(getenv, name)) return Variable{name, *std::move(value)};
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
  // `config` shows what a run would use, and `doctor` checks some of it.
  const CommandId command =
      invocation.command == CommandId::config ? CommandId::run : invocation.command;
  const bool reads_run = command == CommandId::run || command == CommandId::doctor;
  for (const Setting& setting : file.settings) {
    const OptionRow& row = row_of(setting.id);
    const bool is_run_option = row.section == Section::command;
    if (is_run_option && !reads_run) continue;
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
  auto named = choice_or_variable(invocation.choices, Opt::config, getenv);
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
  EffectiveSetting setting{row.section, row.name, {}, Source::fallback, {}};
  if (is_login(id)) getenv = credentials_environment(choices, getenv);
  auto found = environment_of(row, getenv);
  if (choices.has(id)) {
    setting.value = util::joined(choices.all(id), " ");
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
