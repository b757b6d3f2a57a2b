#include "cli/settings/config_file.hpp"

// Headers alone: Debian's shared library would be loaded by every run, even without a file.
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
// Its parser (3.3, 3.4) asserts, or lets the compiler assume, what is not so in malformed files
// (`[#`), before it reports the error that it has for them.
#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>

#include "cli/options/parse.hpp"
#include "cli/options/values.hpp"
#include "cli/output/messages.hpp"
#include "cli/settings/connect.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// The text for a parser that cannot be trusted with more than ASCII: toml++ (3.3, 3.4) reaches code
// there that it declares unreachable. Each other byte is written as a mark, a character that no
// string of the text contains, and two digits.
class AsciiText {
 public:
  // nullopt: every possible mark occurs in the text.
  static std::optional<AsciiText> of(std::string_view text);

  const std::string& text() const { return text_; }
  // What a piece of text() stands for.
  std::string original(std::string_view piece) const;
  bool has_mark(std::string_view piece) const {
    return mark_ != '\0' && piece.find(mark_) != piece.npos;
  }

 private:
  explicit AsciiText(std::string_view text) : text_(text) {}
  std::string text_;
  char mark_ = '\0';  // none: the text was ASCII
};

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

std::optional<AsciiText> AsciiText::of(std::string_view text) {
  AsciiText ascii(text);
  if (std::none_of(text.begin(), text.end(), beyond_ascii)) return ascii;
  // TOML has none of these outside of strings and comments.
  constexpr std::string_view kMarks = "~^|`;!$*?<>";
  for (char mark : kMarks) {
    if (contains_mark(mark, text)) continue;
    ascii.mark_ = mark;
    ascii.text_.clear();
    for (char c : text) {
      ascii.text_ += beyond_ascii(c) ? mark + two_digits(c, "0123456789abcdef") : std::string(1, c);
    }
    return ascii;
  }
  return std::nullopt;
}

std::string AsciiText::original(std::string_view piece) const {
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

using Words = std::vector<std::string>;

constexpr std::string_view kRunTable = "run";
constexpr std::string_view kPassword = "password";

std::string_view expected_value(const OptionRow& row) {
  if (!row.takes_value()) return "true or false";
  if (row.value_optional) return "true, false or a whole number";
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

std::string in_table(ConfigSection section) {
  return section == ConfigSection::run ? " in [run]" : "";
}

class Reader {
 public:
  Reader(const std::string& path, const AsciiText& text)
      : path_(path), folder_(path.substr(0, path.rfind('/') + 1)), text_(text) {}

  Status read(const toml::table& table, ConfigSection section);
  Error syntax_error(const toml::parse_error& error) const;
  std::vector<Setting> take() { return std::move(settings_); }

 private:
  Status read_key(const toml::key& key, const toml::node& node, ConfigSection section);
  Status add(const OptionRow& row, const toml::key& key, const toml::node& node);
  Error at(unsigned line, const std::string& what) const;
  Error unknown_key(const toml::key& key, ConfigSection section) const;
  std::string resolve_path(const OptionRow& row, const std::string& value) const;

  std::string path_;
  std::string folder_;
  const AsciiText& text_;  // what the parser read: its strings and messages are translated back
  std::vector<Setting> settings_;
};

unsigned line_of(const toml::key& key) {
  return key.source().begin.line;
}

Status Reader::read(const toml::table& table, ConfigSection section) {
  for (auto&& [key, node] : table) {
    if (auto ok = read_key(key, node, section); !ok) return ok;
  }
  return Done{};
}

Status Reader::read_key(const toml::key& key, const toml::node& node, ConfigSection section) {
  if (section == ConfigSection::top && key.str() == kRunTable) {
    if (node.is_table()) return read(*node.as_table(), ConfigSection::run);
    return at(line_of(key), "run must be a table: [run]");
  }
  if (section == ConfigSection::top && key.str() == kPassword) {
    return add(row_of(Opt::password_file), key, node);
  }
  const OptionRow* row = find_option(key.str());
  if (row == nullptr || section_of(*row) != section) return unknown_key(key, section);
  return add(*row, key, node);
}

Status Reader::add(const OptionRow& row, const toml::key& key, const toml::node& node) {
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
    return at(line_of(key), "password, password-file and password-command cannot be used together");
  }
  settings_.push_back({row.id, *std::move(words), line_of(key), literal});
  return Done{};
}

Error Reader::at(unsigned line, const std::string& what) const {
  return {ErrorKind::config, path_ + ":" + std::to_string(line) + ": " + what};
}

Error Reader::unknown_key(const toml::key& key, ConfigSection section) const {
  const std::string name = util::shortened(text_.original(key.str()), 60);
  const std::string text = "unknown key " + in_quotes(name) + in_table(section);
  const OptionRow* row = find_option(key.str());
  if (row != nullptr && section_of(*row) == ConfigSection::run) {
    return at(line_of(key), text + "; put it in the table [run]");
  }
  if (key.str() == kPassword || (row != nullptr && section_of(*row) == ConfigSection::top)) {
    return at(line_of(key), text + "; put it at the top, before any [table]");
  }
  if (row != nullptr) return at(line_of(key), text + "; it can be given on the command line only");
  std::vector<std::string_view> names;
  if (section == ConfigSection::top) names = {kRunTable, kPassword};
  for (const OptionRow& option : options()) {
    if (section_of(option) == section) names.push_back(option.name);
  }
  auto meant = suggestion(key.str(), names);
  return at(line_of(key), meant ? text + " (did you mean " + std::string(*meant) + "?)" : text);
}

// Relative paths start at the folder of the configuration file, not at the current one.
std::string Reader::resolve_path(const OptionRow& row, const std::string& value) const {
  constexpr std::string_view kLocal = "local:";
  bool local = row.id == Opt::url && value.starts_with(kLocal);
  if (!local && row.metavar != "FILE" && row.metavar != "DIR") return value;
  size_t start = local ? kLocal.size() : 0;
  if (value.size() == start || value[start] == '/') return value;
  return value.substr(0, start) + folder_ + value.substr(start);
}

std::string_view line_at(std::string_view text, unsigned number) {
  for (; number > 1; --number) text.remove_prefix(std::min(text.size(), text.find('\n') + 1));
  return text.substr(0, text.find('\n'));
}

// The parser's message quotes the text that it could not read: not where that may be a password.
Error Reader::syntax_error(const toml::parse_error& error) const {
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

Error not_utf8(const std::string& path, std::string_view text) {
  const char* begin = text.data();
  while (size_t length = util::utf8_length(text)) text.remove_prefix(length);
  auto line = 1 + std::count(begin, text.data(), '\n');
  return {ErrorKind::config, path + ":" + std::to_string(line) + ": invalid TOML: not UTF-8"};
}

}  // namespace

std::optional<ConfigSection> section_of(const OptionRow& row) {
  if (row.name.empty()) return std::nullopt;
  switch (row.id) {
    case Opt::config:
    case Opt::json:
    case Opt::quiet:
    case Opt::verbose:
    case Opt::help:
    case Opt::version:
      return std::nullopt;
    default:
      break;
  }
  if (row.section == Section::general) return ConfigSection::top;
  return row.applies_to(CommandId::run) ? std::optional(ConfigSection::run) : std::nullopt;
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
  TRY_STATUS(reader.read(table, ConfigSection::top));
  return reader.take();
}

}  // namespace rlock::cli
