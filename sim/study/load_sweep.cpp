// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "sim/study/sweep.hpp"

namespace stagecraft {
namespace {

double read_memory(yaml::Map& map, std::string_view name) { return map.quantity<Bytes>(name, yaml::kPositive).value; }
double read_power(yaml::Map& map, std::string_view name) { return map.quantity<Watts>(name, yaml::kPositive).value; }
double read_time(yaml::Map& map, std::string_view name) { return map.quantity<Seconds>(name, yaml::kPositive).value; }
double read_money(yaml::Map& map, std::string_view name) { return map.quantity<Dollars>(name, yaml::kPositive).value; }
double read_price(yaml::Map& map, std::string_view name) {
  return map.quantity<DollarsPerSecond>(name, yaml::kPositive).value;
}
double read_count(yaml::Map& map, std::string_view name) { return map.number(name, yaml::kPositive); }

constexpr std::array kObjectives = {
    ObjectiveRow{"iteration", "least time of an iteration", "iteration_seconds", false, false},
    ObjectiveRow{"throughput", "most samples per second", "samples_per_second", true, false},
    ObjectiveRow{"samples-per-dollar", "most samples for a dollar", "1e6 / usd_per_million_samples", true, false},
    ObjectiveRow{"samples-per-joule", "most samples for a joule", "1 / joules_per_sample", true, false},
    ObjectiveRow{"training-time", "least time to train the samples", ":samples / samples_per_second", false, true},
    ObjectiveRow{"training-cost", "least money to train the samples", ":samples * usd_per_million_samples / 1e6", false,
                 true},
    ObjectiveRow{"training-energy", "least energy to train the samples", ":samples * joules_per_sample", false, true},
};

constexpr std::array kConstraints = {
    ConstraintRow{"memory", "largest peak memory of a device, a size", "peak_memory_bytes", read_memory},
    ConstraintRow{"power", "mean power, as 6 kW", "mean_power_watts", read_power},
    ConstraintRow{"price", "money per time, as '30 USD/h'", "cost_usd / iteration_seconds", read_price},
    ConstraintRow{"iteration", "time of an iteration", "iteration_seconds", read_time},
    ConstraintRow{"devices", "devices in use", "devices", read_count},
    ConstraintRow{"training-time", "time to train the objective's samples", ":samples / samples_per_second", read_time,
                  true},
    ConstraintRow{"budget", "money to train the objective's samples", ":samples * usd_per_million_samples / 1e6",
                  read_money, true},
};

// The keys of `sweep` that are no axes; no key of a study is called so.
constexpr std::array<std::string_view, 6> kWords = {"zip", "where", "sample", "screen", "objective", "constraints"};
constexpr std::array<std::string_view, 17> kStudyKeys = {
    "model",      "platform", "training", "loader", "compare", "perturb", "believed",  "dynamic",    "engine",
    "cost_model", "seed",     "zip",      "where",  "sample",  "screen",  "objective", "constraints"};

// How dear a key is to change: a model is read anew, a platform built anew, the rest is settings.
int rank_of(const SweepAxis& axis) {
  int rank = 2;
  for (const AxisKey& key : axis.keys) {
    rank = std::min(rank, key.key.starts_with("model") ? 0 : key.key.starts_with("platform") ? 1 : 2);
  }
  return rank;
}

void check_key(const AxisKey& key) {
  const std::string top = key.key.substr(0, key.key.find('.'));
  if (std::find(kStudyKeys.begin(), kStudyKeys.end(), top) == kStudyKeys.end()) {
    throw InputError(key.where, unknown_name("key", top, {kStudyKeys.begin(), kStudyKeys.end()}) +
                                    " (an axis is a dotted key of the study, such as platform.network.bandwidth)");
  }
}

void read_axes(const yaml::Node& node, Sweep& sweep) {
  for (const yaml::Node::Entry& entry : node.entries) {
    if (std::find(kWords.begin(), kWords.end(), entry.key) == kWords.end()) {
      sweep.axes.push_back(read_axis(entry.key, entry.where, entry.value));
    }
  }
  if (const yaml::Node* zip = node.find("zip")) {
    if (zip->kind == yaml::Node::Kind::map) {
      sweep.axes.push_back(read_zip(*zip));
    }
    for (const yaml::Node& item : zip->items) {
      sweep.axes.push_back(read_zip(item));
    }
  }
  std::vector<std::string> keys;
  for (const SweepAxis& axis : sweep.axes) {
    for (const AxisKey& key : axis.keys) {
      check_key(key);
      if (std::find(keys.begin(), keys.end(), key.key) != keys.end()) {
        throw InputError(key.where, "a second axis '" + key.key + "'; allowed: each key once");
      }
      keys.push_back(key.key);
    }
  }
  std::stable_sort(sweep.axes.begin(), sweep.axes.end(),
                   [](const SweepAxis& one, const SweepAxis& other) { return rank_of(one) < rank_of(other); });
}

// The plain values of the study, by dotted key.
void add_constants(const yaml::Node& node, const std::string& key, Sweep& sweep) {
  if (node.kind == yaml::Node::Kind::scalar &&
      std::find(sweep.words.begin(), sweep.words.end(), key) == sweep.words.end()) {
    sweep.words.push_back(key);
    sweep.constants.push_back(condition_value(node.text));
  }
  for (const yaml::Node::Entry& entry : node.entries) {
    add_constants(entry.value, key.empty() ? entry.key : key + "." + entry.key, sweep);
  }
}

void read_conditions(const yaml::Node& node, Sweep& sweep) {
  for (const SweepAxis& axis : sweep.axes) {
    for (const AxisKey& key : axis.keys) {
      sweep.words.push_back(key.key);
      for (const yaml::Node& value : node.find("where") != nullptr ? key.values : std::vector<yaml::Node>{}) {
        sweep.values.try_emplace(value.text, condition_value(value.text));
      }
    }
  }
  sweep.words.insert(sweep.words.end(), kRunWords.begin(), kRunWords.end());
  add_constants(sweep.document, "", sweep);
  yaml::Map map(node, "sweep");
  for (const yaml::Node* item : map.list("where")) {
    sweep.conditions.emplace_back(yaml::scalar(*item, "where"), item->where, sweep.words);
  }
}

void read_sample(const yaml::Node* node, Sweep& sweep) {
  constexpr int kMost = 1'000'000'000;
  if (node != nullptr) {
    yaml::Map map(*node, "sample");
    sweep.sampling = map.choice("method", kSamplings).sampling;
    if (sweep.sampling != Sampling::grid) {
      sweep.samples = static_cast<std::uint64_t>(map.integer("points", 1, kMost));
      sweep.seed = static_cast<std::uint64_t>(map.integer("seed", 0, kMost, 1));
    }
    map.finish();
  }
  for (const SweepAxis& axis : sweep.axes) {
    if (axis.interval && sweep.sampling == Sampling::grid) {
      throw InputError(axis.keys.front().where, "a range without 'count' or 'step' is continuous, and a grid needs "
                                                "values; allowed: 'count', 'step', or 'sample' beside it");
    }
  }
  if (sweep.sampling == Sampling::grid && combinations(sweep) > (1ULL << 53U)) {
    throw InputError(sweep.axes.front().keys.front().where,
                     "the axes have more than 9007199254740992 combinations; allowed: fewer, or 'sample'");
  }
}

void read_screen(const yaml::Node* node, Sweep& sweep) {
  if (node == nullptr) {
    return;
  }
  struct Quick {
    std::string_view name;
  };
  constexpr std::array kQuick = {Quick{"analytic"}, Quick{"estimate"}};
  constexpr double kHundred = 100;
  yaml::Map map(*node, "screen");
  Sweep::Screen screen;
  screen.engine = map.choice("by", kQuick, "analytic").name;
  const std::string keep = map.text("keep");
  const Where where = map.where("keep");
  if (keep.ends_with('%')) {
    screen.share = parse_number(keep.substr(0, keep.find_last_not_of(" %") + 1), where) / kHundred;
    if (!(screen.share > 0 && screen.share <= 1)) {
      throw InputError(where, "'keep' must be more than 0 %, at most 100 %, or a number of points");
    }
  } else {
    screen.keep = static_cast<std::uint64_t>(parse_integer(keep, 1, 1'000'000'000, where));
  }
  map.finish();
  sweep.screen = screen;
}

void read_objective(yaml::Map& sweep_map, Sweep& sweep) {
  sweep.objective = &find_by_name(kObjectives, "iteration", "objective", {});
  const yaml::Node* node = sweep_map.find("objective");
  if (node != nullptr && node->kind == yaml::Node::Kind::scalar) {
    sweep.objective = &find_by_name(kObjectives, node->text, "objective", node->where);
  } else if (node != nullptr) {
    yaml::Map map(*node, "objective");
    sweep.objective = &map.choice("name", kObjectives);
    if (map.has("tokens")) {
      sweep.objective_samples =
          map.number("tokens", yaml::kPositive) / map.number("tokens_per_sample", yaml::kPositive);
    } else {
      sweep.objective_samples = map.number("samples", yaml::kPositive, 0);
    }
    map.finish();
  }
  const auto need_samples = [&](std::string_view name, const Where& where) {
    if (sweep.objective_samples == 0) {
      throw InputError(where, "'" + std::string(name) +
                                  "' needs to know how much is trained; allowed: objective: {name: …, samples: N}, or "
                                  "'tokens' and 'tokens_per_sample'");
    }
  };
  if (sweep.objective->needs_samples) {
    need_samples(sweep.objective->name, node->where);
  }
  if (const yaml::Node* limits = sweep_map.find("constraints")) {
    yaml::Map map(*limits, "constraints");
    for (const ConstraintRow& row : kConstraints) {
      if (map.has(row.name)) {
        sweep.limits.push_back({&row, row.read(map, row.name)});
        row.needs_samples ? need_samples(row.name, map.where(row.name)) : void();
      }
    }
    map.finish();
  }
}

} // namespace

std::span<const ObjectiveRow> objectives() { return kObjectives; }
std::span<const ConstraintRow> constraints() { return kConstraints; }

std::size_t Sweep::keys() const {
  std::size_t count = 0;
  for (const SweepAxis& axis : axes) {
    count += axis.keys.size();
  }
  return count;
}

Sweep load_sweep(const yaml::Node& study, const std::vector<Setting>& settings) {
  Sweep sweep;
  yaml::Node document = study;
  const yaml::Node nothing{.kind = yaml::Node::Kind::map, .where = study.where};
  for (const Setting& setting : settings) {
    if (setting.key.starts_with("sweep.")) {
      apply(document, setting);
    }
  }
  const yaml::Node* found = document.find("sweep");
  const yaml::Node node = found != nullptr ? *found : nothing;
  if (node.kind != yaml::Node::Kind::map) {
    throw InputError(node.where, "'sweep' is a mapping from keys to values, such as {platform.network.bandwidth: [10 "
                                 "Gb/s, 100 Gb/s]}");
  }
  const yaml::Node* name = document.find("name");
  sweep.name = name != nullptr ? name->text : "";
  const auto is_aside = [](const yaml::Node::Entry& entry) {
    return entry.key == "sweep" || entry.key == "name" || entry.key == "description";
  };
  document.entries.erase(std::remove_if(document.entries.begin(), document.entries.end(), is_aside),
                         document.entries.end());
  sweep.document = std::move(document);
  read_axes(node, sweep);
  read_conditions(node, sweep);
  read_sample(node.find("sample"), sweep);
  read_screen(node.find("screen"), sweep);
  yaml::Map map(node, "sweep");
  read_objective(map, sweep);
  return sweep;
}

} // namespace stagecraft
