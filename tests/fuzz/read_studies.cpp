// Studies, sweeps, purchases and judge studies. Lines "#set KEY=VALUE" of the text are settings, as --set gives them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/analysis/buy.hpp"
#include "sim/analysis/judge.hpp"
#include "sim/study/compare/compare.hpp"
#include "sim/study/compare/prepare.hpp"
#include "sim/study/keys/input_files.hpp"
#include "sim/sweep/space/sweep.hpp"
#include "tests/fuzz/fuzz_files.hpp"
#include "tests/fuzz/read.hpp"

namespace stagecraft::fuzz {
namespace {

std::vector<Setting> settings_in(std::string_view bytes) {
  constexpr std::string_view kSet = "#set ";
  std::vector<Setting> settings;
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
    const std::size_t equals = line.find('=');
    if (line.starts_with(kSet) && equals != std::string_view::npos && equals > kSet.size()) {
      settings.push_back(
          {std::string(line.substr(kSet.size(), equals - kSet.size())), std::string(line.substr(equals + 1))});
    }
  }
  return settings;
}

// Only shipped files are read, and those of tests/study.
Folders folders(InputFiles& files) { return {kRoot / "tests/study", kRoot, &files, true}; }

// Plans, orders and graphs of some runs of a small study, by strategies that take no time.
void prepare_some(const Study& study) {
  constexpr int kMostOperators = 40, kMostMicroBatches = 16;
  constexpr std::size_t kMostDevices = 16, kMostScenarios = 3;
  if (study.model->size() > kMostOperators || study.platform.devices.size() > kMostDevices) {
    return;
  }
  std::vector<Scenario> scenarios = scenarios_of(study);
  std::erase_if(scenarios, [](const Scenario& one) {
    constexpr std::array<std::string_view, 4> kQuick = {"uniform", "parameters", "data-parallel", "capability"};
    const bool quick =
        one.strategy == nullptr || std::find(kQuick.begin(), kQuick.end(), one.strategy->name) != kQuick.end();
    return !quick || one.micro_batches > kMostMicroBatches;
  });
  scenarios.resize(std::min(scenarios.size(), kMostScenarios));
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  prepare(memo, scenarios);
}

} // namespace

void read_study(std::string_view bytes) {
  InputFiles files;
  prepare_some(load_study(yaml::parse(bytes, "study"), folders(files), settings_in(bytes)));
}

void read_sweep(std::string_view bytes) {
  const Sweep sweep = load_sweep(yaml::parse(bytes, "study"), settings_in(bytes));
  const std::uint64_t count = combinations(sweep);
  constexpr std::uint64_t kMost = 4;
  for (std::uint64_t number = 0; number < std::min(count, kMost); ++number) {
    combination(sweep, number);
    if (const std::optional<Combination> last = combination(sweep, count - 1 - number)) {
      is_allowed(sweep, *last, {"uniform", "gpipe", 4});
    }
  }
  require(read_goal(yaml::parse(sweep.goal.document, "goal")).document == sweep.goal.document,
          "a goal reads back as the same");
}

void read_judge_study(std::string_view bytes) {
  InputFiles files;
  load_judge_study(yaml::parse(bytes, "study"), folders(files), settings_in(bytes));
}

void read_buy_question(std::string_view bytes) {
  std::vector<Setting> settings = settings_in(bytes);
  const BuyQuestion question = load_buy_question(yaml::parse(bytes, "study"), settings);
  require(!question.offers.empty(), "a question has an offer");
}

} // namespace stagecraft::fuzz
