#include "cli/settings/config.hpp"

// Only the headers, because every run would load Debian's shared library, even without a file.
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
// The parser (3.3, 3.4) asserts, or lets the compiler assume, things that are not true in malformed
// files (`[#`), before it reports its own error for them.
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
#include "cli/settings/connect.hpp"
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

// Whether the text contains the mark itself, or as the end of an escape such as `\u007e`.
bool contains_mark(char mark, std::string_view text) {
  auto contains = [&](const std::string& part) { return text.find(part) != text.npos; };
  return contains({mark}) || contains("00" + two_digits(mark, "0123456789abcdef")) ||
         contains("00" + two_digits(mark, "0123456789ABCDEF"));
}

// The text for a parser that cannot be trusted with more than ASCII: toml++ (3.3, 3.4) reaches code
// for other characters that it declares unreachable. Each other byte becomes a mark, a character
// that no string of the text contains, and two digits.
class AsciiText {
 public:
  // nullopt: every possible mark occurs in the text.
  static std::optional<AsciiText> of(std::string_view text) {
    AsciiText ascii(text);
    if (std::none_of(text.begin(), text.end(), beyond_ascii)) return ascii;
    // TOML contains none of these outside strings and comments.
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

  // The original of a piece of text().
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
  char mark_ = '\0';  // none: the text was ASCII only
};

using Words = std::vector<std::string>;

constexpr std::string_view kRunTable = "run";

std::string_view expected_value(const OptionRow& row) {
  if (!row.takes_value()) return "true or false";
  if (row.id == Opt::contain) return "true, false or \"user\"";
  if (row.id == Opt::url) return "a string or an array of strings";
  if (row.kind() == ValueKind::duration)
    return "a duration such as \"10s\", or a number of seconds";
  return row.kind() == ValueKind::number ? "a whole number" : "a string";
}

// The strings of an array; nullopt if it is empty or has other elements.
std::optional<Words> strings_of(const toml::array& array) {
  Words words;
  for (const toml::node& node : array) {
    if (!node.is_string()) return std::nullopt;
    words.push_back(node.as_string()->get());
  }
  return words.empty() ? std::nullopt : std::optional(std::move(words));
}

// The value as words of the command line; nullopt if it has the wrong type.
std::optional<Words> words_of(const OptionRow& row, const toml::node& node) {
  if (!row.takes_value() || (row.value_optional && node.is_boolean())) {
    if (!node.is_boolean()) return std::nullopt;
    return node.as_boolean()->get() ? Words{kFlagValue} : Words{};
  }
  const bool number = row.kind() == ValueKind::number;
  const bool duration = row.kind() == ValueKind::duration;
  if (node.is_integer() && (duration || number)) {
    return Words{std::to_string(node.as_integer()->get())};
  }
  if (node.is_floating_point() && duration) {
    return Words{std::to_string(node.as_floating_point()->get())};
  }
  if (node.is_array() && row.id == Opt::url) return strings_of(*node.as_array());
  if (!node.is_string() || number) return std::nullopt;
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

  // The parser's message quotes the text that it could not read; this leaves out the quote if it
  // may contain a password.
  Error syntax_error(const toml::parse_error& error) const {
    unsigned line = error.source().begin.line;
    std::string_view shown = line_at(text_.text(), line);
    bool secret = shown.find("pass") != shown.npos || shown.find("://") != shown.npos;
    const std::string key(shown.substr(0, shown.find_first_of(" \t=")));
    const size_t value = shown.find_first_not_of(" \t=", key.size());
    const bool unquoted =
        value != shown.npos && std::isalnum(static_cast<unsigned char>(shown[value]));
    if (find_option(key) != nullptr && unquoted) {
      return at(line,
                "invalid TOML: write the value of " + key + " in quotes: " + key + " = \"...\"");
    }
    if (secret) {
      return at(line,
                "invalid TOML; rlock does not show the line, because it may contain a password: "
                "check its quotes, and whether the file has the key twice");
    }
    if (text_.has_mark(error.description())) {
      return at(line,
                "invalid TOML: a character that is not ASCII, outside a string; put it in quotes");
    }
    return at(line, "invalid TOML: " + util::printable(error.description()));
  }

  Layer take() { return std::move(layer_); }

 private:
  Status read_key(const toml::key& key, const toml::node& node, Section section) {
    if (section == Section::general && key.str() == kRunTable) {
      if (node.is_table()) return read(*node.as_table(), Section::command);
      return at(line_of(key), "run must be a table: [run]");
    }
    const OptionRow* row = find_option(key.str());
    const bool known = row != nullptr && row->in_file && row->section == section;
    if (!known) return unknown_key(key, section);
    return add(*row, key, node);
  }

  Status add(const OptionRow& row, const toml::key& key, const toml::node& node) {
    const std::string name(key.str());
    auto words = words_of(row, node);
    if (!words) return at(line_of(key), name + " must be " + std::string(expected_value(row)));
    for (std::string& word : *words) {
      word = text_.original(word);
      if (word.find('\0') != word.npos)
        return at(line_of(key), name + " must not contain a NUL character");
    }
    if (row.id == Opt::url) words = split_urls(*words);
    for (std::string& word : *words) word = resolve_path(row, word);
    if (row.id == Opt::password && words->front().empty()) {
      return at(line_of(key), "password is empty: write it, or remove the line");
    }
    auto conflicts = [&](const auto& other) { return is_password(other.first); };
    if (is_password(row.id) && std::any_of(layer_.begin(), layer_.end(), conflicts)) {
      return at(line_of(key),
                "password, password-file and password-command cannot be used together");
    }
    auto setting = make_setting(row, *std::move(words), Source::file, place(line_of(key)));
    if (!setting) return at(line_of(key), setting.error().text);
    if (auto ok = check_connection_setting(row.id, setting->words); !ok) {
      return at(line_of(key), ok.error().text);
    }
    layer_.emplace_back(row.id, *std::move(setting));
    return Done{};
  }

  std::string place(unsigned line) const { return path_ + ":" + std::to_string(line); }

  Error at(unsigned line, const std::string& what) const {
    return {ErrorKind::config, place(line) + ": " + what};
  }

  Error unknown_key(const toml::key& key, Section section) const {
    const std::string name = util::shortened(text_.original(key.str()), 60);
    const std::string text =
        "unknown key " + in_quotes(name) + (section == Section::command ? " in [run]" : "");
    const OptionRow* row = find_option(key.str());
    if (row != nullptr && !row->in_file) {
      return at(line_of(key), in_quotes(name) +
                                  " cannot be a setting of all runs: give it on the command line "
                                  "of those that need it");
    }
    if (row != nullptr && row->section == Section::command) {
      return at(line_of(key), text + "; put it in the table [run]");
    }
    if (row != nullptr) {
      return at(line_of(key), text + "; put it at the top, before any [table]");
    }
    std::vector<std::string_view> names;
    if (section == Section::general) names = {kRunTable};
    for (const OptionRow& option : options()) {
      if (option.in_file && option.section == section) names.push_back(option.name);
    }
    auto meant = suggestion(key.str(), names);
    return at(line_of(key), meant ? text + " (did you mean " + std::string(*meant) + "?)"
                                  : text + "; rlock.toml(5) lists the keys");
  }

  // Relative paths start at the folder of the configuration file, not at the current one.
  std::string resolve_path(const OptionRow& row, const std::string& value) const {
    constexpr std::string_view kLocal = "local:";
    bool local = row.id == Opt::url && value.starts_with(kLocal);
    if (!local && row.metavar != "FILE") return value;
    size_t start = local ? kLocal.size() : 0;
    if (value.size() == start || value[start] == '/') return value;
    return value.substr(0, start) + folder_ + value.substr(start);
  }

  std::string path_;
  std::string folder_;
  // The text that the parser read: its strings and messages are translated back.
  const AsciiText& text_;
  Layer layer_;
};

Error not_utf8(const std::string& path, std::string_view text) {
  const char* begin = text.data();
  while (size_t length = util::utf8_length(text)) text.remove_prefix(length);
  auto line = 1 + std::count(begin, text.data(), '\n');
  return {ErrorKind::config,
          path + ":" + std::to_string(line) + ": invalid TOML: not UTF-8; save the file as UTF-8"};
}

}  // namespace

Result<Layer> parse_config(const std::string& path, std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (!util::is_utf8(text)) return not_utf8(path, text);
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  auto ascii = AsciiText::of(text);
  if (!ascii)
    return Error{
        ErrorKind::config,
        path +
            ": rlock cannot read a file that contains characters outside ASCII and also each of "
            "~^|`;!$*?<>; leave one of these out"};
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

// A malformed URL may contain a password anywhere.
bool holds_credentials(const std::string& text) {
  auto url = redis::parse_url(text);
  if (!url) return text.find('@') != text.npos;
  const auto* group = std::get_if<redis::SentinelGroup>(&*url);
  return redis::has_credentials(*url) ||
         (group != nullptr && redis::has_credentials(group->sentinels.front()));
}

bool holds_password(const Layer& layer) {
  return std::any_of(layer.begin(), layer.end(), [](const auto& entry) {
    const auto& [id, setting] = entry;
    return id == Opt::password ||
           (id == Opt::url &&
            std::any_of(setting.words.begin(), setting.words.end(), holds_credentials));
  });
}

Error unreadable(const std::string& path, const std::string& why) {
  return {ErrorKind::config, "cannot read the configuration file " + path + ": " + why};
}

// Checks the file as ssh checks its own files, because a user with write permission there chooses
// the server and the files that rlock writes. A file that was named on purpose is not checked.
Status check_writers(const std::string& path, const struct stat& info) {
  if (info.st_uid != 0 && info.st_uid != geteuid()) {
    return unreadable(path,
                      "another user owns it; become its owner (chown), or name it with --config");
  }
  if ((info.st_mode & 022) == 0) return Done{};
  return unreadable(path, "other users can write to it; run chmod go-w " + path);
}

// The group may read a file of root, because an administrator chose that group (root:rlock, 0640),
// but not a user's own file, whose group may contain everyone.
Status check_readers(const std::string& path, const struct stat& info) {
  if (info.st_uid != 0 && info.st_uid != geteuid()) {
    return unreadable(path,
                      "it contains a password, and another user owns it; become its owner (chown)");
  }
  const bool owned_by_root = info.st_uid == 0;
  if ((info.st_mode & (owned_by_root ? 027 : 077)) == 0) return Done{};
  return unreadable(path,
                    std::string("it contains a password, and other users can read it; run chmod ") +
                        (owned_by_root ? "640 " : "600 ") + path + ", or use password-file");
}

// Whether there is no file. A folder that rlock may not enter (another user's HOME, left in the
// environment) counts as a folder without one.
bool is_missing(const std::string& path, int error) {
  return error == ENOENT || error == ENOTDIR || (error == EACCES && is_out_of_reach(path));
}

}  // namespace

bool is_out_of_reach(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) != 0 && errno == EACCES;
}

Result<std::optional<Layer>> load_config(const std::string& path, Origin origin) {
  constexpr size_t kLongest = size_t{1024} * 1024;  // the path may be /dev/zero
  Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) {
    const int error = errno;
    if (origin != Origin::named && is_missing(path, error)) return std::optional<Layer>();
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
  TRY(auto layer, parse_config(path, *text));
  if (holds_password(layer)) {
    TRY_STATUS(check_readers(path, info));
  }
  return std::optional(std::move(layer));
}

}  // namespace rlock::cli
