// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/analysis/judge.hpp"
#include "sim/study/keys/read_schedules.hpp"

namespace stagecraft {
namespace {

Planner read_command(yaml::Map& map, const Folders& folders) {
  Planner planner;
  for (const yaml::Node* word : map.list("command")) {
    planner.command.words.push_back(yaml::scalar(*word, "command"));
  }
  if (planner.command.words.empty()) {
    throw InputError(map.where("command"), "'command' is empty; allowed: a program and its arguments");
  }
  planner.name = map.text("name", planner.command.words.front());
  planner.where = map.where("command");
  planner.command.confined = true;
  planner.command.folder = folders.study;
  planner.command.seconds = map.quantity<Seconds>("timeout", yaml::kPositive, Seconds{planner.command.seconds}).value;
  constexpr double kMebibyte = 1 << 20;
  const yaml::Range memory{kMebibyte, limits::kMostCommandMemoryMebibytes * kMebibyte, true, "1 MiB to 64 GiB"};
  const Bytes otherwise{planner.command.memory_mebibytes * kMebibyte};
  planner.command.memory_mebibytes =
      static_cast<int>(map.quantity<Bytes>("memory", memory, otherwise) / Bytes{kMebibyte});
  return planner;
}

Planner read_strategy(yaml::Map& map) {
  constexpr int kMostDraws = 100'000;
  Planner planner;
  planner.strategy = &map.choice("strategy", strategies());
  planner.name = map.text("name", planner.strategy->name);
  planner.draws = map.integer("draws", 1, kMostDraws, 1);
  return planner;
}

Planner read_planner(const yaml::Node& node, const Folders& folders) {
  if (node.kind == yaml::Node::Kind::scalar) {
    const StrategyRow& row = find_by_name(strategies(), node.text, "strategy", node.where);
    return {.name = std::string(row.name), .strategy = &row};
  }
  yaml::Map map(node, "planner");
  if (map.has("strategy") == map.has("command")) {
    throw InputError(node.where, "a planner needs a 'strategy' or a 'command'; allowed: one of them");
  }
  Planner planner = map.has("command") ? read_command(map, folders) : read_strategy(map);
  map.finish();
  return planner;
}

std::vector<Planner> read_planners(yaml::Map& map, const Folders& folders) {
  std::vector<Planner> planners;
  const std::vector<const yaml::Node*> list = map.list("planners");
  const auto is_all = [](const yaml::Node& node) {
    return node.kind == yaml::Node::Kind::scalar && node.text == "all";
  };
  for (const yaml::Node* node : list) {
    if (is_all(*node)) {
      for (const StrategyRow& row : strategies()) {
        if (!row.reference && !row.takes_degrees) {
          planners.push_back({.name = std::string(row.name), .strategy = &row});
        }
      }
    } else {
      planners.push_back(read_planner(*node, folders));
    }
    const auto same = [&](const Planner& planner) {
      return std::count_if(planners.begin(), planners.end(),
                           [&](const Planner& other) { return other.name == planner.name; }) > 1;
    };
    if (const auto twice = std::find_if(planners.begin(), planners.end(), same); twice != planners.end()) {
      throw InputError(node->where, "two planners are called '" + twice->name + "'; allowed: a 'name' each");
    }
  }
  if (planners.empty()) {
    throw InputError(map.where("planners"), "'planners' is missing or empty; allowed: all, or a list");
  }
  return planners;
}

std::optional<ManualWork> read_manual(yaml::Map& map) {
  const yaml::Node* node = map.find("manual");
  if (node == nullptr) {
    return std::nullopt;
  }
  constexpr int kMost = 1'000'000;
  yaml::Map manual(*node, "manual");
  ManualWork work;
  work.trials = manual.integer("trials", 1, kMost, work.trials);
  work.edit = manual.quantity<Seconds>("edit", yaml::kNotNegative, work.edit);
  work.launch = manual.quantity<Seconds>("launch", yaml::kNotNegative, work.launch);
  work.iterations = manual.integer("iterations", 0, kMost, work.iterations);
  work.profile_repetitions = manual.integer("profile_repetitions", 1, kMost, work.profile_repetitions);
  manual.finish();
  return work;
}

std::vector<yaml::Node> read_inputs(yaml::Map& map, std::string_view key) {
  std::vector<yaml::Node> nodes;
  for (const yaml::Node* node : map.list(key)) {
    nodes.push_back(*node);
  }
  if (nodes.empty()) {
    throw InputError(map.where(key), "'" + std::string(key) + "' is missing or empty; allowed: a list");
  }
  return nodes;
}

} // namespace

JudgeStudy load_judge_study(const yaml::Node& document, const Folders& folders, const std::vector<Setting>& settings) {
  JudgeStudy study{.folders = folders};
  yaml::Node changed = document;
  for (const Setting& setting : settings) {
    if (setting.key.starts_with("model.") || setting.key.starts_with("platform.")) {
      study.settings.push_back(setting);
    } else {
      yaml::set(changed, setting.key, setting.value, {"--set " + setting.key, 0, 0});
    }
  }
  const yaml::Node* node = changed.find("judge");
  if (node == nullptr) {
    throw InputError(changed.where, "a study to judge planners needs the key 'judge'; docs/formats/study.md");
  }
  yaml::Map map(*node, "judge");
  study.models = read_inputs(map, "models");
  study.platforms = read_inputs(map, "platforms");
  study.planners = read_planners(map, folders);
  const yaml::Node* schedule = map.find("schedule");
  study.schedule = schedule != nullptr ? read_schedule(*schedule, folders)
                                       : StudySchedule{.row = &find_by_name(schedules(), "1f1b", "schedule", {})};
  study.micro_batches = map.choice("micro_batches", kChosenBy, "estimate").by;
  study.manual = read_manual(map);
  map.finish();
  study.rest = changed;
  for (const char* key : {"judge", "model", "platform"}) {
    const auto entry = std::find_if(study.rest.entries.begin(), study.rest.entries.end(),
                                    [&](const yaml::Node::Entry& one) { return one.key == key; });
    if (entry != study.rest.entries.end() && std::string_view(key) != "judge") {
      throw InputError(entry->where,
                       "'" + entry->key + "' stands beside 'judge'; allowed: 'models' and 'platforms' in it");
    }
    if (entry != study.rest.entries.end()) {
      study.rest.entries.erase(entry);
    }
  }
  const yaml::Node* name = study.rest.find("name");
  study.name = name != nullptr ? name->text : "";
  return study;
}

} // namespace stagecraft
