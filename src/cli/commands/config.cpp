#include <unistd.h>

#include "cli/commands/commands.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/json.hpp"
#include "cli/output/table.hpp"
#include "cli/settings/resolve.hpp"
#include "redis/net/url.hpp"
#include "util/text.hpp"

// `rlock config`: each setting of a run, and its source. Does not connect to a server.
namespace rlock::cli {
namespace {

std::string_view source_text(Source source) {
  return util::to_string<Source::fallback>(source, {"option", "environment", "file", "default"});
}

// The rows at the top of a configuration file first, then those of its table [run].
std::vector<const OptionRow*> shown_rows() {
  std::vector<const OptionRow*> rows;
  for (Section section : {Section::general, Section::command}) {
    for (const OptionRow& row : options()) {
      if (row.in_file && row.section == section) rows.push_back(&row);
    }
  }
  return rows;
}

// Empty if the setting is not set.
std::string shown_value(const OptionRow& row, const Setting& setting) {
  if (setting.source == Source::fallback || (row.takes_value() && setting.words.empty()))
    return std::string(text_for(row, CommandId::run).fallback);
  if (row.id == Opt::password) return "(hidden)";
  if (setting.words.empty()) return "false";
  std::string value = util::joined(setting.words, " ");
  redis::mask_passwords(value);
  return value;
}

std::vector<ShownSetting> shown_settings(const Choices& choices) {
  std::vector<ShownSetting> settings;
  for (const OptionRow* row : shown_rows()) {
    const Setting& setting = choices[row->id];
    settings.push_back({row->name, row->section == Section::command, shown_value(*row, setting),
                        source_text(setting.source), setting.place});
  }
  return settings;
}

std::string text_of(const Choices& choices) {
  Table table({{"SETTING", 28}, {"VALUE", 60}, {"SOURCE"}});
  for (const ShownSetting& setting : shown_settings(choices)) {
    table.add({(setting.of_run ? "run." : "") + std::string(setting.name),
               setting.value.empty() ? "-" : setting.value,
               setting.place.empty() ? std::string(setting.source) : setting.place});
  }
  std::string text = table.text(line_width(STDOUT_FILENO));
  for (const std::string& sentence : ignored_settings(choices)) {
    text += util::printable(sentence) + "\n";
  }
  return text;
}

}  // namespace

Result<Report> config_command(const Invocation& invocation) {
  if (!invocation.names.empty() || invocation.after_dashes) {
    return usage("config takes no NAME: it shows the settings of every lock");
  }
  const Choices& choices = invocation.choices;
  auto json = [&] {
    return config_json(shown_settings(choices), choices.unused_login(),
                       unknown_variables(environment_names()));
  };
  return Report{json, [&] { return text_of(choices); }};
}

}  // namespace rlock::cli
