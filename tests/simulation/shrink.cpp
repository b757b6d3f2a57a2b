#include "simulation/shrink.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace rlock::sim {
namespace {

struct Wrong {
  const char* name;
  void (*leave_out)(Setting&);
};
constexpr Wrong kWrong[] = {{"late", [](Setting& setting) { setting.rates.late = 0; }},
                            {"lost", [](Setting& setting) { setting.rates.lost = 0; }},
                            {"reset", [](Setting& setting) { setting.rates.reset = 0; }},
                            {"doubled", [](Setting& setting) { setting.rates.doubled = 0; }},
                            {"drift", [](Setting& setting) { setting.drift_ppm = 0; }},
                            {"skew", [](Setting& setting) { setting.skew = 0s; }}};

class Shrinker {
 public:
  Shrinker(Scenario scenario, const Broken& broken, Check check)
      : scenario_(std::move(scenario)), broken_(broken), check_(check) {}

  Scenario run() {
    for (bool smaller = true; smaller;) {
      smaller = thin_out(&Scenario::kept_runs);
      smaller = thin_out(&Scenario::kept_faults) || smaller;
      for (const Wrong& wrong : kWrong) smaller = calm(wrong.name) || smaller;
    }
    return std::move(scenario_);
  }

 private:
  bool still_broken(const Scenario& scenario) const {
    return violation_of(play(scenario, broken_), check_).has_value();
  }

  // Leaves out halves, then quarters, down to one by one.
  bool thin_out(std::vector<size_t> Scenario::*list) {
    const size_t before = (scenario_.*list).size();
    for (size_t chunk = std::max<size_t>(1, before / 2); chunk > 0; chunk /= 2) {
      for (size_t from = 0; from < (scenario_.*list).size();) {
        Scenario less = scenario_;
        auto& kept = less.*list;
        const auto first = kept.begin() + static_cast<std::ptrdiff_t>(from);
        const size_t size = std::min(chunk, kept.size() - from);
        kept.erase(first, first + static_cast<std::ptrdiff_t>(size));
        if (still_broken(less)) {
          scenario_ = std::move(less);
        } else {
          from += chunk;
        }
      }
    }
    return (scenario_.*list).size() < before;
  }

  bool calm(const char* what) {
    Scenario less = scenario_;
    leave_out(less.setting, what);
    if (less.setting.left_out.size() == scenario_.setting.left_out.size()) return false;
    if (!still_broken(less)) return false;
    scenario_ = std::move(less);
    return true;
  }

  Scenario scenario_;
  const Broken& broken_;
  Check check_;
};

std::string joined(const std::vector<size_t>& numbers) {
  std::string text;
  for (size_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text.empty() ? "none" : text;
}

}  // namespace

std::optional<Violation> violation_of(const Outcome& outcome, Check check) {
  for (const Violation& violation : outcome.violations) {
    if (violation.check == check) return violation;
  }
  return std::nullopt;
}

Scenario shrink(Scenario scenario, const Broken& broken, Check check) {
  return Shrinker(std::move(scenario), broken, check).run();
}

void leave_out(Setting& setting, const std::string& what) {
  const auto* wrong = std::find_if(std::begin(kWrong), std::end(kWrong),
                                   [&](const Wrong& one) { return what == one.name; });
  if (wrong == std::end(kWrong)) throw std::out_of_range("nothing is called \"" + what + "\"");
  wrong->leave_out(setting);
  setting.left_out.insert(what);
}

std::string replay_options(const Scenario& scenario) {
  std::string text = scenario.setting.name + " --seed " + std::to_string(scenario.seed) +
                     " --runs " + joined(scenario.kept_runs) + " --faults " +
                     joined(scenario.kept_faults);
  for (const std::string& what : scenario.setting.left_out) text += " --without " + what;
  if (scenario.setting.versions > 1) text += " --versions 2";
  return text;
}

}  // namespace rlock::sim
