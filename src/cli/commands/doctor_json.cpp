#include "cli/commands/doctor_json.hpp"

#include <nlohmann/json.hpp>

namespace rlock::cli {
namespace {

using Json = nlohmann::ordered_json;

Json check_json(const Check& check) {
  return {{"check", check.name},
          {"state", to_string(check.grade)},
          {"detail", check.detail},
          {"advice", check.advice.empty() ? Json() : Json(check.advice)}};
}

}  // namespace

std::string doctor_json(const std::vector<Diagnosis>& servers,
                        const std::optional<Check>& independence, const std::string& acl_rule) {
  Json list = Json::array();
  for (const Diagnosis& server : servers) {
    Json checks = Json::array();
    for (const Check& check : server.checks) checks.push_back(check_json(check));
    list.push_back({{"server", server.server}, {"checks", std::move(checks)}});
  }
  Json whole{{"schema", 1}, {"servers", std::move(list)}};
  whole["independence"] = independence ? check_json(*independence) : Json();
  whole["acl_rule"] = acl_rule;
  return whole.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace rlock::cli
