// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <span>

#include "sim/schedule/schedule.hpp"
#include "sim/strategy/strategy.hpp"
#include "sim/study/keys/read_schedules.hpp"
#include "sim/sweep/space/sweep_condition_kinds.hpp"
#include "sim/sweep/space/sweep_figures.hpp"

namespace stagecraft {
namespace {

// The keys of `sweep` that are not axes. No key of a study has one of these names.
constexpr std::string_view kSweepKey = "sweep";
constexpr std::array<std::string_view, 6> kWords = {"zip", "where", "sample", "screen", "objective", "constraints"};
constexpr std::array<std::string_view, 18> kStudyKeys = {
    "model",  "platform",   "training", "loader", "compare", "perturb", "confidence", "believed",  "dynamic",
    "engine", "cost_model", "seed",     "zip",    "where",   "sample",  "screen",     "objective", "constraints"};

// How expensive an axis is to change, the most expensive first: a new model is read, a new platform is built, the rest
// is settings.
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
  if (key.key == kRankKey) {
    throw InputError(key.where, "'compare.rank' says how points are ranked and changes none; allowed: a key of the "
                                "study, or --set compare.rank=throughput");
  }
}

// Throws where a setting also sets an axis's key. A setting below a model or a platform is allowed: it changes the one
// that the axis names.
void check_key_is_free(const AxisKey& key, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    if (setting.key == key.key || (!says_which(key.key) && is_below(setting.key, key.key))) {
      throw InputError({"--set " + setting.key, 0, 0},
                       "the sweep's axis '" + key.key + "' says its values; allowed: keys that are no axes, or sweep." +
                           key.key + "=VALUES");
    }
  }
}

// The value of a key, whose dots are part of its name; an empty mapping is added where there is no such key.
yaml::Node& entry_of(yaml::Node& node, const std::string& key, const Where& where) {
  const auto found = std::find_if(node.entries.begin(), node.entries.end(),
                                  [&](const yaml::Node::Entry& entry) { return entry.key == key; });
  if (found != node.entries.end()) {
    return found->value;
  }
  node.entries.push_back({key, where, {.kind = yaml::Node::Kind::map, .where = where}});
  return node.entries.back().value;
}

// Applies a setting to the sweep itself: to one of its words, to an axis (whose key has dots), or to a word of an
// axis's range.
void apply_to_sweep(yaml::Node& document, const Setting& setting) {
  const std::string rest = setting.key.substr(kSweepKey.size() + 1);
  const Where where{"--set " + setting.key, 0, 0};
  if (std::find(kWords.begin(), kWords.end(), rest.substr(0, rest.find('.'))) != kWords.end()) {
    apply(document, setting);
    return;
  }
  yaml::Node& sweep = entry_of(document, std::string(kSweepKey), where);
  for (yaml::Node::Entry& entry : sweep.entries) { // a word of a range
    if (entry.value.kind == yaml::Node::Kind::map && is_below(rest, entry.key)) {
      yaml::set(entry.value, rest.substr(entry.key.size() + 1), setting.value, where);
      return;
    }
  }
  yaml::Node holder{.kind = yaml::Node::Kind::map, .where = where};
  yaml::set(holder, "value", setting.value, where);
  entry_of(sweep, rest, where) = *holder.find("value");
}

void read_axes(const yaml::Node& node, const std::vector<Setting>& settings, Sweep& sweep) {
  std::size_t values = 0;
  const auto add = [&](SweepAxis axis) {
    values += axis.size() * axis.keys.size();
    if (values > kMostSweepValues) {
      throw InputError(axis.keys.front().where, "the axes up to here have " + std::to_string(values) +
                                                    " values; allowed: at most " + std::to_string(kMostSweepValues));
    }
    sweep.axes.push_back(std::move(axis));
  };
  for (const yaml::Node::Entry& entry : node.entries) {
    if (std::find(kWords.begin(), kWords.end(), entry.key) == kWords.end()) {
      check_key({entry.key, entry.where, {}}); // a misspelt word is reported before its values
      add(read_axis(entry.key, entry.where, entry.value));
    }
  }
  if (const yaml::Node* zip = node.find("zip")) {
    if (zip->kind == yaml::Node::Kind::map) {
      add(read_zip(*zip));
    }
    for (const yaml::Node& item : zip->items) {
      add(read_zip(item));
    }
  }
  std::vector<std::string> keys;
  for (const SweepAxis& axis : sweep.axes) {
    for (const AxisKey& key : axis.keys) {
      check_key(key);
      check_key_is_free(key, settings);
      if (std::find(keys.begin(), keys.end(), key.key) != keys.end()) {
        throw InputError(key.where, "a second axis '" + key.key + "'; allowed: each key once");
      }
      keys.push_back(key.key);
    }
  }
  std::stable_sort(sweep.axes.begin(), sweep.axes.end(),
                   [](const SweepAxis& one, const SweepAxis& other) { return rank_of(one) < rank_of(other); });
}

// Adds the plain values below a key, by dotted key, except those of axes and those that a later setting replaces.
void add_constants(const yaml::Node& node, const std::string& key, std::span<const Setting> later, Sweep& sweep) {
  const auto replaces = [&](const Setting& setting) { return key == setting.key || is_below(key, setting.key); };
  if (std::any_of(later.begin(), later.end(), replaces)) {
    return;
  }
  if (node.kind == yaml::Node::Kind::scalar &&
      std::find(sweep.words.begin(), sweep.words.end(), key) == sweep.words.end()) {
    sweep.words.push_back(key);
    sweep.constants.push_back(condition_value(node.text));
  }
  for (const yaml::Node::Entry& entry : node.entries) {
    add_constants(entry.value, key.empty() ? entry.key : key + "." + entry.key, later, sweep);
  }
}

// Adds the values of the study and of the command line, whose last setting of a key counts.
void add_constants(std::span<const Setting> settings, Sweep& sweep) {
  add_constants(sweep.document, "", settings, sweep);
  for (std::size_t at = 0; at < settings.size(); ++at) {
    const Setting& setting = settings[at];
    if (!is_of_sweep(setting)) {
      add_constants(setting.value.empty() ? yaml::Node{} : yaml::parse(setting.value, "--set " + setting.key),
                    setting.key, settings.subspan(at + 1), sweep);
    }
  }
}

// Whether a study may have schedules of its own: any value of their key is a file.
bool has_own_schedules(const std::vector<Setting>& settings, const Sweep& sweep) {
  constexpr std::string_view kKey = "compare.schedules";
  const auto below = [](const yaml::Node* compare) {
    const yaml::Node* listed = compare != nullptr ? compare->find("schedules") : nullptr;
    return listed != nullptr && names_a_file(*listed);
  };
  const auto of_setting = [&](const Setting& setting) {
    if (setting.value.empty() || !(setting.key == "compare" || setting.key.starts_with(kKey))) {
      return false;
    }
    const yaml::Node value = yaml::parse(setting.value, "--set " + setting.key);
    return setting.key == "compare" ? below(&value) : names_a_file(value);
  };
  const auto of_axis = [&](const SweepAxis& axis) {
    return std::any_of(axis.keys.begin(), axis.keys.end(), [&](const AxisKey& key) {
      return key.key.starts_with(kKey) && std::any_of(key.values.begin(), key.values.end(), names_a_file);
    });
  };
  return below(sweep.document.find("compare")) || std::any_of(settings.begin(), settings.end(), of_setting) ||
         std::any_of(sweep.axes.begin(), sweep.axes.end(), of_axis);
}

// Throws for a strategy or schedule that does not exist. Only a plan or schedule file can give a run another name.
void check_names(const Condition& condition, const Where& where, const Sweep& sweep, bool own_schedules) {
  const bool has_plans = std::any_of(sweep.words.begin(), sweep.words.end(),
                                     [](const std::string& word) { return word == "compare.plans"; });
  condition.each_text([&](std::size_t known, const std::string& text) {
    if (sweep.words[known] == "schedule" && !own_schedules) {
      find_by_name(schedules(), text, "schedule", where);
    }
    if (sweep.words[known] == "strategy" && !has_plans) {
      find_by_name(strategies(), text, "strategy", where);
    }
  });
}

void read_conditions(const yaml::Node& node, const std::vector<Setting>& settings, Sweep& sweep) {
  for (const SweepAxis& axis : sweep.axes) {
    for (const AxisKey& key : axis.keys) {
      sweep.words.push_back(key.key);
      for (const yaml::Node& value : node.find("where") != nullptr ? key.values : std::vector<yaml::Node>{}) {
        sweep.values.try_emplace(value.text, condition_value(value.text));
      }
    }
  }
  sweep.words.insert(sweep.words.end(), kRunWords.begin(), kRunWords.end());
  add_constants(settings, sweep);
  yaml::Map map(node, "sweep");
  for (const yaml::Node* item : map.list("where")) {
    sweep.conditions.emplace_back(yaml::scalar(*item, "where"), item->where, sweep.words);
    check_names(sweep.conditions.back(), item->where, sweep, has_own_schedules(settings, sweep));
    check_kinds(sweep, sweep.conditions.back());
  }
}

void read_sample(const yaml::Node* node, Sweep& sweep) {
  constexpr int kMost = 1'000'000'000;
  if (node != nullptr) {
    yaml::Map map(*node, "sample");
    sweep.sampling = map.choice("method", kSamplings).sampling;
    for (const char* key : {"points", "seed"}) {
      if (sweep.sampling == Sampling::grid && map.has(key)) {
        throw InputError(map.where(key), "a grid has all points, so it takes no '" + std::string(key) +
                                             "'; allowed: method random or latin-hypercube beside it");
      }
    }
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

// The labels of axes by their keys, of those that advance together joined by " + ".
yaml::Node labels_of(const yaml::Node& sweep) {
  yaml::Node labels{.kind = yaml::Node::Kind::map, .where = sweep.where};
  const auto add = [&](const std::string& keys, const yaml::Node& axis) {
    const yaml::Node* label = axis.kind == yaml::Node::Kind::map ? axis.find(kLabel) : nullptr;
    if (label != nullptr) {
      labels.entries.push_back({keys, label->where, *label});
    }
  };
  const auto add_zip = [&](const yaml::Node& zip) {
    std::string keys;
    for (const yaml::Node::Entry& entry : zip.entries) {
      keys += entry.key == kLabel ? "" : (keys.empty() ? "" : " + ") + entry.key;
    }
    add(keys, zip);
  };
  for (const yaml::Node::Entry& entry : sweep.entries) {
    if (std::find(kWords.begin(), kWords.end(), entry.key) == kWords.end()) {
      add(entry.key, entry.value);
    }
  }
  if (const yaml::Node* zip = sweep.find("zip")) {
    add_zip(*zip);
    std::for_each(zip->items.begin(), zip->items.end(), add_zip);
  }
  return labels;
}

// The goal, with the study's key compare.rank: of the last setting, or of the document.
SweepGoal goal_of(yaml::Node sweep, yaml::Node document, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    if (is_of(setting, "compare")) {
      apply(document, setting);
    }
  }
  const yaml::Node* compare = document.find("compare");
  if (const yaml::Node* rank = compare != nullptr ? compare->find("rank") : nullptr) {
    sweep.entries.push_back({"rank", rank->where, *rank});
  }
  if (yaml::Node labels = labels_of(sweep); !labels.entries.empty()) {
    sweep.entries.push_back({"labels", sweep.where, std::move(labels)});
  }
  return read_goal(sweep);
}

// The part of the sweep that decides which points there are and what their numbers are, including the first pass.
std::string text_of_points(yaml::Node node) {
  erase(node, {"objective", "constraints"});
  for (yaml::Node::Entry& entry : node.entries) {
    erase(entry.value, {kLabel});
    if (entry.key == "screen") {
      erase(entry.value, {"keep"});
    }
    for (yaml::Node& zip : entry.value.items) {
      erase(zip, {kLabel});
    }
    if (const yaml::Node* values = entry.value.find(kValues)) {
      entry.value = yaml::Node(*values);
    }
  }
  return yaml::flow_text(node);
}

} // namespace

std::size_t Sweep::keys() const {
  std::size_t count = 0;
  for (const SweepAxis& axis : axes) {
    count += axis.keys.size();
  }
  return count;
}

// A first pass by estimates must know the figures that it picks by.
void check_screen(const yaml::Node& node, const Sweep& sweep) {
  if (!sweep.screen || sweep.screen->engine != kEstimate) {
    return;
  }
  const auto check = [&](std::string_view name, std::string_view expression) {
    for (const Metric& figure : figures()) {
      if (!figure.by_estimate && expression.find(figure.name) != std::string_view::npos) {
        throw InputError(node.find("screen")->where, "closed forms do not know " + std::string(figure.name) +
                                                         ", by which '" + std::string(name) +
                                                         "' goes; allowed: 'by: analytic'");
      }
    }
  };
  check(sweep.goal.objective->name, sweep.goal.objective->expression);
  for (const SweepGoal::Limit& limit : sweep.goal.limits) {
    check(limit.row->name, limit.row->expression);
  }
}

bool says_which(std::string_view key) { return key == "model" || key == "platform"; }

bool is_of_sweep(const Setting& setting) { return is_of(setting, kSweepKey); }

Sweep load_sweep(const yaml::Node& study, const std::vector<Setting>& settings) {
  Sweep sweep;
  yaml::Node document = study;
  const yaml::Node nothing{.kind = yaml::Node::Kind::map, .where = study.where};
  for (const Setting& setting : settings) {
    if (is_of_sweep(setting)) {
      setting.key == kSweepKey ? apply(document, setting) : apply_to_sweep(document, setting);
    }
  }
  const yaml::Node* found = document.find("sweep");
  const yaml::Node node = found != nullptr ? *found : nothing;
  if (node.kind != yaml::Node::Kind::map) {
    throw InputError(node.where, "'sweep' is a mapping from keys to values, such as {platform.network.bandwidth: [10 "
                                 "Gb/s, 100 Gb/s]}");
  }
  sweep.asked = text_of_points(node);
  const yaml::Node* name = document.find("name");
  sweep.name = name != nullptr ? name->text : "";
  sweep.goal = goal_of(node, document, settings);
  erase(document, {"sweep", "name", "description"});
  for (yaml::Node::Entry& entry : document.entries) {
    if (entry.key == "compare") {
      erase(entry.value, {"rank"}); // the goal has it
    }
  }
  sweep.document = std::move(document);
  read_axes(node, settings, sweep);
  read_conditions(node, settings, sweep);
  read_sample(node.find("sample"), sweep);
  read_screen(node.find("screen"), sweep);
  check_screen(node, sweep);
  return sweep;
}

} // namespace stagecraft
