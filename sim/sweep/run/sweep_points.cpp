// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/run/sweep_points.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

#include "sim/report/page/sweep/sweep_page.hpp"
#include "sim/study/compare/compare.hpp"

namespace stagecraft {

namespace fs = std::filesystem;

std::string json_of(std::span<const Setting> settings) {
  std::string text = "{";
  for (const Setting& setting : settings) {
    const auto is_again = [&](const Setting& later) { return &later > &setting && later.key == setting.key; };
    if (std::any_of(settings.begin(), settings.end(), is_again)) {
      continue;
    }
    for (const std::string* word : {&setting.key, &setting.value}) {
      const bool plain = std::none_of(word->begin(), word->end(), [](char letter) {
        return letter < ' ' || letter > '~' || letter == '"' || letter == '\\'; // what JSON may have to escape
      });
      text += word == &setting.value ? ":" : text.size() > 1 ? "," : "";
      text += plain ? '"' + *word + '"' : nlohmann::json(*word).dump();
    }
  }
  return text + "}";
}

namespace {

// Keys whose values each run has itself. They stay out of the combination's key, so that listing more values does not
// make a point another one.
bool is_of_runs(const std::string& key) {
  return key.starts_with("compare") || key == "training.micro_batches" || key == "training.recompute" ||
         key == "engine";
}

constexpr std::size_t kMostChecked = 200; // values of one axis (both ends of a longer one), or combinations

std::size_t sizes_to_check(const SweepAxis& axis) {
  return axis.interval || axis.size() > kMostChecked ? 2 : axis.size();
}

std::size_t value_to_check(const SweepAxis& axis, std::size_t at) {
  return axis.interval || axis.size() <= kMostChecked ? at : at * (axis.size() - 1);
}

// Settings sorted by key, so that a mapping stands before what changes it, whatever order they came in; without those
// that a later setting of the same key or of a key above it replaces. A setting that only says which model or platform
// it is does not replace the settings below it.
std::vector<const Setting*> effective(const std::vector<Setting>& first, const std::vector<Setting>& then) {
  std::vector<const Setting*> all;
  for (const std::vector<Setting>* settings : {&first, &then}) {
    for (const Setting& setting : *settings) {
      std::erase_if(all, [&](const Setting* earlier) {
        return earlier->key == setting.key || (!says_which(setting.key) && is_below(earlier->key, setting.key));
      });
      all.push_back(&setting);
    }
  }
  std::sort(all.begin(), all.end(), [](const Setting* one, const Setting* other) { return one->key < other->key; });
  return all;
}

// Whether a key changes which runs there are. One with texts does, as they may name other files.
bool tells_kind(const AxisKey& key) {
  const bool numbers = !key.values.empty() && std::all_of(key.values.begin(), key.values.end(), [](const auto& value) {
    return value.kind == yaml::Node::Kind::scalar && find_amount(value.text);
  });
  const bool of_runs = key.key.starts_with("training") || key.key.starts_with("model") || is_of_runs(key.key);
  return of_runs || !(numbers || key.values.empty());
}

std::string in_words(const RecomputeChoice& choice) {
  std::string text(name_of(choice.what));
  std::vector<std::string> named = choice.operators;
  for (const KernelKind kind : choice.kinds) {
    named.emplace_back(row_of(kind).name);
  }
  named.insert(named.end(), choice.modules.begin(), choice.modules.end());
  text += named.empty() ? "" : " " + join(named, "+");
  if (choice.first > 0) {
    text += " of the first " + std::to_string(choice.first);
  }
  const std::string rule = to_text(RunRecompute{"", choice.rule});
  return choice.rule == RecomputeRule{} ? text : text + rule;
}

std::string plain_document(const Sweep& sweep) {
  yaml::Node plain = sweep.document;
  erase(plain, {"compare", "engine"});
  for (yaml::Node::Entry& entry : plain.entries) {
    if (entry.key == "training") {
      erase(entry.value, {"micro_batches", "recompute"});
    }
  }
  return yaml::flow_text(plain);
}

} // namespace

SweepPoints::SweepPoints(const SweepInputs& inputs, std::string program)
    : inputs_(inputs), program_(std::move(program)) {
  of_study_.add(program_).add(plain_document(inputs.sweep));
  for (const SweepAxis& axis : inputs.sweep.axes) {
    for (const AxisKey& key : axis.keys) {
      tells_kind_.push_back(tells_kind(key) ? 1 : 0);
    }
  }
}

std::uint32_t SweepPoints::Opened::points() const {
  return static_cast<std::uint32_t>(std::max<std::size_t>(1, kind->runs.size()));
}

std::optional<SweepPoints::Opened> SweepPoints::open(std::uint64_t number) {
  std::optional<Combination> found = stagecraft::combination(inputs_.sweep, number);
  if (!found) {
    return std::nullopt;
  }
  std::shared_ptr<const Kind> kind = kind_of(*found);
  const Fingerprint fingerprint = fingerprint_of(*found, *kind);
  std::string settings = json_of(found->settings);
  return Opened{std::move(*found), std::move(kind), fingerprint, std::move(settings)};
}

std::shared_ptr<const SweepPoints::Kind> SweepPoints::kind_of(const Combination& combination) {
  std::string values;
  for (std::size_t i = 0; i < combination.settings.size(); ++i) {
    if (tells_kind_[i] != 0) {
      values += combination.settings[i].value + "\n";
    }
  }
  const auto found = kinds_.find(values);
  if (found != kinds_.end()) {
    return found->second;
  }
  constexpr std::size_t kMost = 10'000;
  if (kinds_.size() >= kMost) {
    kinds_.clear();
  }
  auto kind = std::make_shared<const Kind>(find_kind(combination));
  if (kind->error.empty()) { // an error may come from numbers, and other numbers may work
    kinds_.emplace(std::move(values), kind);
  }
  return kind;
}

SweepPoints::Kind SweepPoints::find_kind(const Combination& combination) {
  Kind kind;
  InputFiles& files = *inputs_.folders.files;
  files.forget_asked();
  try {
    const Study study = study_of(inputs_, combination);
    kind.engine = study.engine->name;
    for (const Scenario& scenario : scenarios_of(study)) {
      kind.runs.push_back(
          {scenario.strategy != nullptr ? std::string(scenario.strategy->name) : scenario.plan->strategy,
           scenario.schedule_name(), scenario.micro_batches});
      kind.recompute.push_back(in_words(study.training.recomputes.at(scenario.recompute)));
    }
  } catch (const InputError& failure) {
    kind.error = failure.what();
  }
  Fingerprint fingerprint;
  const std::set<fs::path> asked = files.asked();
  for (const fs::path& path : asked) {
    const auto [digest, is_new] = digests_.try_emplace(path);
    if (is_new) {
      digest->second = Fingerprint().add(files.bytes(path)).digest();
    }
    fingerprint.add(to_text(digest->second));
  }
  kind.files_digest = fingerprint.digest();
  return kind;
}

Fingerprint SweepPoints::fingerprint_of(const Combination& combination, const Kind& kind) const {
  Fingerprint fingerprint = of_study_;
  fingerprint.add(to_text(kind.files_digest));
  for (const Setting* setting : effective(inputs_.settings, combination.settings)) {
    if (!is_of_runs(setting->key)) {
      fingerprint.add(setting->key).add(setting->value);
    }
  }
  return fingerprint;
}

bool SweepPoints::may_draw(const Combination& combination) const {
  const yaml::Node* value = inputs_.sweep.document.find("confidence");
  std::string draws = value != nullptr ? value->text : "0";
  for (const std::vector<Setting>* settings : {&inputs_.settings, &combination.settings}) {
    for (const Setting& setting : *settings) {
      draws = setting.key == "confidence" ? setting.value : draws;
    }
  }
  return draws != "0";
}

std::optional<PointRow> SweepPoints::row(const Opened& opened, std::uint32_t run, const std::string& engine) const {
  const auto& [combination, kind, fingerprint, settings] = opened;
  const bool runs = run < kind->runs.size();
  if (runs && !is_allowed(inputs_.sweep, combination, kind->runs[run])) {
    return std::nullopt;
  }
  PointRow row;
  row.number = combination.number;
  row.run = run;
  row.settings = settings;
  row.engine = engine.empty() ? kind->engine : engine;
  Fingerprint key = fingerprint;
  if (!runs) { // without runs the combination's own values are the key
    for (const Setting& setting : combination.settings) {
      key.add(setting.key).add(setting.value);
    }
    row.key = key.add(engine).digest();
    row.status = PointStatus::failed;
    row.reason = kind->error;
    return row;
  }
  const RunWords& words = kind->runs[run];
  row.strategy = words.strategy;
  row.schedule = words.schedule;
  row.micro_batches = words.micro_batches;
  row.recompute = kind->recompute[run];
  key.add(row.strategy).add(row.schedule).add(static_cast<std::uint64_t>(row.micro_batches));
  key.add(row.recompute).add(row.engine);
  if (row.engine != kind->engine && may_draw(combination)) {
    key.add("no draws"); // a first pass: another point than the study's own run by this engine, which draws
  }
  row.key = key.digest();
  return row;
}

std::optional<InputError> SweepPoints::failure_of(const Combination& combination) const {
  try {
    study_of(inputs_, combination);
  } catch (const InputError& failure) {
    return failure;
  }
  return std::nullopt;
}

// Whether a combination makes a valid study, or a condition rules it out.
bool SweepPoints::does(const Combination& combination) const {
  return !is_allowed(inputs_.sweep, combination) || !failure_of(combination);
}

// Whether some values of the other axes make a valid study that no condition rules out. Tries all their combinations
// or, of a large number, a sample spread over all of them.
bool SweepPoints::may_do(std::vector<std::size_t> values, std::size_t axis) const {
  const std::vector<SweepAxis>& axes = inputs_.sweep.axes;
  double all = 1;
  for (const SweepAxis& one : axes) {
    all *= &one == &axes[axis] ? 1.0 : static_cast<double>(std::max<std::size_t>(1, one.size()));
  }
  for (std::uint64_t attempt = 0; static_cast<double>(attempt) < std::min<double>(kMostChecked, all); ++attempt) {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U; // spreads the attempts over all axes
    std::uint64_t rest = all > kMostChecked ? attempt * kOdd >> 1U : attempt;
    for (std::size_t other = 0; other < axes.size(); ++other) {
      const std::uint64_t size = std::max<std::size_t>(1, axes[other].size());
      if (other != axis) {
        values[other] = rest % size;
        rest /= size;
      }
    }
    const Combination combination = combination_of(inputs_.sweep, values);
    if (is_allowed(inputs_.sweep, combination) && !failure_of(combination)) {
      return true;
    }
  }
  return false;
}

// Throws, blaming a value without which the study has another fault or none. Tries the values of `axis` first, then the
// others.
void SweepPoints::blame(const std::vector<std::size_t>& values, std::size_t axis) const {
  const std::vector<SweepAxis>& axes = inputs_.sweep.axes;
  const Combination whole = combination_of(inputs_.sweep, values);
  const InputError failure = failure_of(whole).value();
  std::vector<std::pair<std::size_t, const AxisKey*>> suspects; // each with its place among the settings
  for (std::size_t other = 0, at = 0; other < axes.size(); ++other) {
    for (const AxisKey& key : axes[other].keys) {
      suspects.insert(other == axis ? suspects.begin() : suspects.end(), {at++, &key});
    }
  }
  for (const auto& [at, key] : suspects) {
    Combination without = whole;
    without.settings.erase(without.settings.begin() + static_cast<std::ptrdiff_t>(at));
    const std::optional<InputError> other = failure_of(without); // conditions want all settings
    const bool blamed = !other || std::string_view(other->what()) != failure.what();
    if (blamed && whole.settings[at].parsed) {
      const Where& where = whole.settings[at].parsed->where;
      const bool told = std::string_view(failure.what()).starts_with(to_text(where) + ":");
      throw told ? failure : InputError(where, "no value for '" + key->key + "': " + failure.what());
    }
  }
  throw failure;
}

// Tries each value with the first and with the last values of all other axes. A value that fails with both and with
// every other choice tried is refused, or whatever else is at fault is.
void SweepPoints::check_values() {
  if (are_checked_) {
    return;
  }
  const Sweep& sweep = inputs_.sweep;
  std::vector<std::size_t> first(sweep.axes.size(), 0);
  std::vector<std::size_t> last;
  for (const SweepAxis& axis : sweep.axes) {
    last.push_back(std::max<std::size_t>(1, axis.size()) - 1);
  }
  inputs_.folders.files->forget_asked();
  if (sweep.axes.empty()) {
    study_of(inputs_, {});
  }
  for (std::size_t axis = 0; axis < sweep.axes.size(); ++axis) {
    for (std::size_t at = 0; at < sizes_to_check(sweep.axes[axis]); ++at) {
      std::vector<std::size_t> one = first;
      std::vector<std::size_t> other = last;
      one[axis] = other[axis] = value_to_check(sweep.axes[axis], at);
      if (!does(combination_of(sweep, one)) && !does(combination_of(sweep, other)) && !may_do(one, axis)) {
        blame(one, axis);
      }
    }
  }
  are_checked_ = true;
}

std::uint64_t SweepPoints::count() {
  if (!count_) {
    count_ = count_all();
  }
  return *count_;
}

std::uint64_t SweepPoints::count_all() {
  const Sweep& sweep = inputs_.sweep;
  const std::uint64_t all = combinations(sweep);
  const bool alike = std::none_of(tells_kind_.begin(), tells_kind_.end(), [](char tells) { return tells != 0; });
  if (alike && sweep.conditions.empty() && all > 0) {
    const std::shared_ptr<const Kind> kind = kind_of(*combination(sweep, 0));
    if (kind->error.empty()) {
      return all * kind->runs.size();
    }
  }
  const auto count = [&](bool& fails) {
    std::uint64_t points = 0;
    for (std::uint64_t number = 0; number < all; ++number) {
      const std::optional<Combination> one = combination(sweep, number);
      if (!one) {
        continue;
      }
      const std::shared_ptr<const Kind> kind = kind_of(*one);
      fails = fails || !kind->error.empty();
      points += kind->runs.empty() ? 1 : 0;
      points += static_cast<std::uint64_t>(std::count_if(
          kind->runs.begin(), kind->runs.end(), [&](const RunWords& run) { return is_allowed(sweep, *one, run); }));
    }
    return points;
  };
  bool fails = false;
  const std::uint64_t points = count(fails);
  return fails ? count(fails) : points; // the first count may meet one before its kind is known
}

std::string SweepPoints::product() {
  const Sweep& sweep = inputs_.sweep;
  std::vector<std::string> factors;
  for (const SweepAxis& axis : sweep.axes) {
    std::vector<std::string> keys;
    for (const AxisKey& key : axis.keys) {
      keys.push_back(key.key);
    }
    factors.push_back((axis.interval ? "any" : std::to_string(axis.size())) + " " + join(keys, " + "));
  }
  std::string text = join(factors, " x ");
  if (sweep.sampling != Sampling::grid) {
    text = std::to_string(combinations(sweep)) + " drawn of " + text;
  }
  for (std::uint64_t number = 0; number < combinations(sweep); ++number) {
    const std::optional<Combination> one = combination(sweep, number);
    const std::size_t runs = one ? kind_of(*one)->runs.size() : 0;
    if (runs > 0) { // of the first combination that has any
      text += (text.empty() ? "" : " x ") + std::to_string(runs) + (runs == 1 ? " run" : " runs");
      break;
    }
  }
  return text + (sweep.conditions.empty() ? "" : ", where conditions hold");
}

std::string SweepPoints::engine() {
  std::string engine;
  for (std::uint64_t number = 0; number < combinations(inputs_.sweep) && engine.empty(); ++number) {
    if (const std::optional<Combination> one = combination(inputs_.sweep, number)) {
      engine = kind_of(*one)->engine;
    }
  }
  return engine;
}

bool SweepPoints::has_first_pass() {
  const std::optional<Sweep::Screen>& screen = inputs_.sweep.screen;
  const auto differs = [&](const yaml::Node& engine) { return engine.text != screen->engine; };
  for (const SweepAxis& axis : inputs_.sweep.axes) {
    for (const AxisKey& key : axis.keys) {
      if (screen && key.key == "engine" && std::any_of(key.values.begin(), key.values.end(), differs)) {
        return true;
      }
    }
  }
  return screen && screen->engine != engine();
}

SweepRecord SweepPoints::record() {
  SweepRecord record;
  record.name = inputs_.sweep.name;
  record.program = program_;
  record.document = yaml::flow_text(inputs_.sweep.document);
  record.settings = json_of(inputs_.settings);
  nlohmann::json keys = nlohmann::json::array();
  Fingerprint fingerprint;
  for (const SweepAxis& axis : inputs_.sweep.axes) {
    std::vector<std::string> together;
    for (const AxisKey& key : axis.keys) {
      together.push_back(key.key);
    }
    keys.push_back(as_one_axis(together));
  }
  record.keys = keys.dump();
  record.goal = inputs_.sweep.goal.document;
  record.screen = has_first_pass() ? inputs_.sweep.screen->engine : "";
  record.study_folder = fs::absolute(inputs_.folders.study).lexically_normal().string();
  record.shipped_folder = fs::absolute(inputs_.folders.shipped).lexically_normal().string();
  for (const auto& [path, digest] : digests_) {
    fingerprint.add(to_text(digest));
  }
  fingerprint.add(record.program).add(record.document).add(record.settings).add(inputs_.sweep.asked);
  record.digest = fingerprint.digest();
  return record;
}

KeptFile kept_file(const fs::path& path, const Digest& digest, const std::string& bytes) {
  constexpr std::size_t kLargest = 16U << 20U; // B
  return {fs::absolute(path).lexically_normal().string(), digest,
          bytes.size() <= kLargest ? std::optional(bytes) : std::nullopt};
}

std::vector<KeptFile> SweepPoints::new_files() {
  std::vector<KeptFile> files;
  for (const auto& [path, digest] : digests_) {
    if (told_.try_emplace(path, digest).second) {
      files.push_back(kept_file(path, digest, inputs_.folders.files->bytes(path)));
    }
  }
  return files;
}

} // namespace stagecraft
