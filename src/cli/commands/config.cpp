#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/json.hpp"
#include "cli/output/table.hpp"
#include "cli/settings/config.hpp"
#include "util/text.hpp"

// `rlock config`: each setting of a run, and its source. It asks no server.
namespace rlock::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string_view source_text(Source source) {
  return util::to_string<Source::fallback>(source, {"option", "environment", "file", "default"});
}

// Those at the top of a configuration file first, then those of its table [run].
std::vector<EffectiveSetting> settings_of(const Choices& choices) {
  std::vector<EffectiveSetting> settings;
  for (Section section : {Section::general, Section::command}) {
    for (const OptionRow& row : options()) {
      if (!is_key(row) || row.section != section) continue;
      settings.push_back(effective_setting(row.id, choices, system_getenv));
    }
  }
  return settings;
}

std::string text_of(const std::vector<EffectiveSetting>& settings) {
  Table table({{"SETTING", 28}, {"VALUE", 60}, {"SOURCE"}});
  for (const EffectiveSetting& setting : settings) {
    const std::string table_name = setting.section == Section::command ? "run." : "";
    table.add({table_name + std::string(setting.name), setting.value.empty() ? "-" : setting.value,
               setting.place.empty() ? std::string(source_text(setting.source)) : setting.place});
  }
  return table.text(line_width(STDOUT_FILENO));
}

std::string config_json(const std::vector<EffectiveSetting>& settings) {
  Json list = Json::array();
  for (const EffectiveSetting& setting : settings) {
    list.push_back({{"setting", setting.name},
                    {"table", setting.section == Section::command ? Json("run") : Json()},
                    {"value", setting.value.empty() ? Json() : Json(setting.value)},
                    {"source", source_text(setting.source)},
                    {"place", setting.place.empty() ? Json() : Json(setting.place)}});
  }
  return document({{"settings", std::move(list)}});
}

}  // namespace

Result<Report> config_command(const Invocation& invocation) {
  if (!invocation.names.empty() || invocation.after_dashes) {
    return usage("config takes no NAME: it shows the settings of every lock");
  }
  const auto settings = settings_of(invocation.choices);
  return Report{[=] { return config_json(settings); }, [=] { return text_of(settings); }};
}

}  // namespace rlock::cli
