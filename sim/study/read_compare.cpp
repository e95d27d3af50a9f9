// SPDX-License-Identifier: Apache-2.0
#include "sim/study/read_compare.hpp"

#include <algorithm>
#include <functional>

#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/plan_format/plan_formats.hpp"
#include "sim/strategy/heuristic/placements.hpp"
#include "sim/study/keys/input_files.hpp"
#include "sim/study/keys/read_schedules.hpp"
#include "sim/study/keys/unique_name.hpp"

namespace stagecraft {
namespace {

// What `all` stands for: every row but the references, which try all others. Where degrees are given, those that split
// by them; where these are uneven, those that take them.
bool is_in_all(const StrategyRow& row, const Training& training) {
  if (!training.parallel) {
    return !row.reference && !row.takes_degrees;
  }
  return training.parallel->is_uneven() ? row.takes_degrees : row.keeps_degrees();
}

template <class Row>
std::vector<const Row*> read_rows(yaml::Map& map, std::string_view key, std::string_view what,
                                  std::span<const Row> table, const std::function<bool(const Row&)>& is_in_all) {
  std::vector<const Row*> rows;
  const std::vector<const yaml::Node*> listed = map.list(key);
  if (map.has(key) && listed.empty()) {
    throw InputError(map.where(key),
                     "'" + std::string(key) +
                         "' is an empty list, which is allowed beside plans alone; else allowed: all, or some of " +
                         join(names_of(table)));
  }
  for (const yaml::Node* item : listed) {
    const std::string& name = yaml::scalar(*item, key);
    if (name == "all" && listed.size() == 1) {
      break;
    }
    const Row* row = &find_by_name(table, name, what, item->where);
    if (std::find(rows.begin(), rows.end(), row) != rows.end()) {
      throw InputError(item->where, "'" + std::string(key) + "' lists '" + name + "' twice; allowed: once");
    }
    rows.push_back(row);
  }
  if (rows.empty()) {
    for (const Row& row : table) {
      if (is_in_all(row)) {
        rows.push_back(&row);
      }
    }
  }
  return rows;
}

// A plan's file: in the study's folder, or at the path as given.
std::filesystem::path find_plan(const Folders& folders, const std::string& name, const Where& where) {
  std::error_code failure;
  for (const std::filesystem::path& candidate : places_of(folders, name)) {
    if (std::filesystem::is_regular_file(candidate, failure)) {
      return candidate.lexically_normal();
    }
  }
  throw InputError(where, "no such plan file '" + excerpt(name, 200) + "'; it is looked for in the study's folder");
}

void note(const Folders& folders, const std::filesystem::path& read) {
  if (folders.files != nullptr) {
    folders.files->bytes(read);
  }
}

// Each plan is a file, or {file, format} where the file's content does not tell its form.
void read_plans(yaml::Map& compare, const Folders& folders, Study& study) {
  for (const yaml::Node* item : compare.list("plans")) {
    if (item->kind != yaml::Node::Kind::map) {
      const std::filesystem::path path = find_plan(folders, yaml::scalar(*item, "plans"), item->where);
      note(folders, path);
      add_plan(study, path, "");
      continue;
    }
    yaml::Map map(*item, "plan");
    const std::filesystem::path path = find_plan(folders, map.text("file"), map.where("file"));
    const std::string_view format = map.choice("format", plan_formats()).name;
    map.finish();
    note(folders, path);
    add_plan(study, path, format);
  }
}

} // namespace

void read_compare(yaml::Map& map, const Folders& folders, Study& study) {
  const yaml::Node empty{.kind = yaml::Node::Kind::map, .where = map.where()};
  const yaml::Node* node = map.find("compare");
  yaml::Map compare(node != nullptr ? *node : empty, "compare");
  const bool plans_alone =
      compare.has("strategies") && compare.list("strategies").empty() && !compare.list("plans").empty();
  if (!plans_alone) {
    study.strategies = read_rows<StrategyRow>(compare, "strategies", "strategy", strategies(),
                                              [&](const StrategyRow& row) { return is_in_all(row, study.training); });
  }
  study.schedules = read_schedules(compare, "schedules", folders);
  if (study.training.delayed_weights &&
      std::none_of(study.schedules.begin(), study.schedules.end(), std::mem_fn(&StudySchedule::pairs_by_layers))) {
    study.training.unheeded.emplace_back("training.delayed_weights (of the schedules here none has pairs of forward "
                                         "and backward by layers, as combined-1f1b has)");
  }
  read_plans(compare, folders, study);
  study.rank = compare.choice("rank", kRankings, "exact").rank;
  compare.finish();
}

BalanceOptions read_balance(yaml::Map& study) {
  BalanceOptions options;
  const yaml::Node* node = study.find("dynamic");
  if (node == nullptr) {
    return options;
  }
  yaml::Map dynamic(*node, "dynamic");
  options.placement = dynamic.choice("placement", kPlacements, row_of(options.placement).name).rule;
  options.update = dynamic.choice("update", kWeightUpdates, "mean").update;
  options.balanced = dynamic.number("balanced", yaml::kFraction, options.balanced);
  options.changed = dynamic.number("changed", yaml::kFraction, options.changed);
  constexpr int kMostRounds = 1000;
  options.rounds = dynamic.integer("rounds", 1, kMostRounds, options.rounds);
  dynamic.finish();
  return options;
}

void add_plan(Study& study, const std::filesystem::path& path, std::string_view format) {
  Plan plan = load_plan(path, format, *study.model, study.platform);
  std::vector<std::string> taken = names_of(strategies());
  for (const Plan& other : study.plans) {
    taken.push_back(other.strategy);
  }
  plan.strategy = unique_name(plan.strategy, path, taken);
  study.plans.push_back(std::move(plan));
}

} // namespace stagecraft
