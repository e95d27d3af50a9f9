// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/run/sweep_replay.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <map>

#include "sim/base/system/file.hpp"
#include "sim/study/compare/compare.hpp"
#include "sim/study/compare/confidence.hpp"
#include "sim/study/compare/replay_prepared.hpp"
#include "sim/study/keys/read_schedules.hpp"

namespace stagecraft {

namespace fs = std::filesystem;

namespace {

// Whether a path of a results file names one file or folder and nothing else: its parts are what a stranger wrote.
bool is_plain(const fs::path& part) {
  return !part.empty() && part != "." && part != ".." && part.native().find('/') == std::string::npos &&
         part.native().find('\0') == std::string::npos;
}

// Writes each kept file and says where it lies now: shipped files below folder/shipped, the others with the files of
// their original folder. Only the names of files, and of folders below the shipped one, come from the results; none of
// them leads out of `folder`, which holds nothing but what is written here.
std::map<fs::path, fs::path> lay_out(const SweepStore::Found& point, const fs::path& folder) {
  std::map<fs::path, fs::path> places;
  std::map<fs::path, int> folders;
  for (const KeptFile& file : point.files) {
    const fs::path was = fs::path(file.path).lexically_normal();
    if (!file.bytes) {
      throw InputError({file.path, 0, 0}, "the file was too large to keep; allowed: the study itself, once more");
    }
    const fs::path below = was.lexically_relative(point.sweep.shipped_folder);
    const bool shipped = !below.empty() && *below.begin() != "..";
    const int number = folders.emplace(was.parent_path(), static_cast<int>(folders.size())).first->second;
    const fs::path place = shipped ? "shipped" / below : fs::path(std::to_string(number)) / was.filename();
    if (!was.is_absolute() || !std::all_of(place.begin(), place.end(), is_plain)) {
      throw InputError({point.file, 0, 0}, "table files: the path '" + file.path +
                                               "' does not name a file; allowed: absolute paths, as sweeps store");
    }
    const fs::path now = folder / place;
    std::error_code failure;
    fs::create_directories(now.parent_path(), failure);
    write_file(now, *file.bytes);
    places[was] = now;
  }
  return places;
}

// Replaces the name of a file by the place where the file lies now.
void rename(yaml::Node* node, std::string_view kind, const SweepStore::Found& point,
            const std::map<fs::path, fs::path>& places) {
  if (node == nullptr || node->kind != yaml::Node::Kind::scalar) {
    return;
  }
  const fs::path shipped = point.sweep.shipped_folder;
  const fs::path study = point.sweep.study_folder;
  for (const fs::path& candidate :
       {study / node->text, fs::absolute(node->text), shipped / node->text, shipped / kind / (node->text + ".yaml")}) {
    const auto found = places.find(candidate.lexically_normal());
    if (found != places.end()) {
      node->text = found->second.string();
      return;
    }
  }
}

yaml::Node* child(yaml::Node* node, std::string_view key) {
  return node != nullptr ? const_cast<yaml::Node*>(node->find(key)) : nullptr;
}

// A schedule of the table is no file, whatever files there are.
void rename_schedules(yaml::Node* schedules, const SweepStore::Found& point,
                      const std::map<fs::path, fs::path>& places) {
  if (schedules == nullptr) {
    return;
  }
  if (names_a_file(*schedules)) {
    rename(schedules, "", point, places);
  }
  for (yaml::Node& item : schedules->items) {
    rename_schedules(&item, point, places);
  }
}

void rename_files(yaml::Node& document, const SweepStore::Found& point, const std::map<fs::path, fs::path>& places) {
  rename(child(&document, "model"), "workloads", point, places);
  rename(child(child(&document, "model"), "file"), "workloads", point, places);
  rename(child(&document, "platform"), "platforms", point, places);
  rename_schedules(child(child(&document, "compare"), "schedules"), point, places);
  yaml::Node* plans = child(child(&document, "compare"), "plans");
  rename(plans, "", point, places);
  for (std::size_t i = 0; plans != nullptr && i < plans->items.size(); ++i) {
    rename(&plans->items[i], "", point, places);
    rename(child(&plans->items[i], "file"), "", point, places);
  }
}

} // namespace

ReplayedPoint replay_point(const SweepStore::Found& point, const fs::path& folder) {
  if (point.row.strategy.empty()) {
    throw InputError({"point " + to_text(point.row.key), 0, 0}, "it has no run: " + point.row.reason);
  }
  const std::map<fs::path, fs::path> places = lay_out(point, folder);
  yaml::Node document = yaml::parse(point.sweep.document, point.file + ", table sweeps, column document");
  std::vector<Setting> of_row;
  std::vector<Setting> later; // keys below a model or platform, set once file names are replaced
  for (const std::string* text : {&point.sweep.settings, &point.row.settings}) {
    const auto object = nlohmann::ordered_json::parse(*text);
    for (const auto& [key, value] : object.items()) {
      const bool below = key.starts_with("model.") || key.starts_with("platform.");
      const Setting setting{key, value.get<std::string>()};
      below ? later.push_back(setting) : apply(document, setting);
      if (text == &point.row.settings) {
        of_row.push_back(setting);
      }
    }
  }
  for (auto setting = later.begin(); setting != later.end();) { // those below mappings of the study are set at once
    const yaml::Node* top = document.find(setting->key.substr(0, setting->key.find('.')));
    const bool of_study = top != nullptr && top->kind == yaml::Node::Kind::map;
    if (of_study) {
      apply(document, *setting);
    }
    setting = of_study ? later.erase(setting) : setting + 1;
  }
  rename_files(document, point, places);
  ReplayedPoint replayed;
  replayed.study = std::make_unique<Study>(load_study(
      document, {.study = folder, .shipped = folder / "shipped", .closed = true}, later, Purpose::comparison));
  keep_to_axes(*replayed.study, of_row);
  set_engine(*replayed.study, point.row.engine);
  const std::vector<Scenario> scenarios = scenarios_of(*replayed.study);
  if (point.row.run >= scenarios.size()) {
    throw InputError({"point " + to_text(point.row.key), 0, 0}, "its study has fewer runs now");
  }
  ScheduleCounts counts;
  StudyMemo memo(*replayed.study, counts);
  std::vector<Prepared> prepared = prepare(memo, {scenarios[point.row.run]});
  if (point.row.engine != kEstimate) {
    replay(memo.costs, prepared);
  }
  if (replayed.study->confidence > 0) {
    add_confidence(memo.costs, prepared);
    if (std::optional<RunConfidence>& own = prepared.front().run.confidence) {
      own->best = std::numeric_limits<double>::quiet_NaN(); // there is no other run to compare with
    }
  }
  replayed.result = result_of(*replayed.study, prepared.front(), point.row.engine);
  replayed.prepared = std::move(prepared.front());
  replayed.prepared.run.strategy = point.row.strategy; // a file's name may have its old folder in it
  replayed.prepared.run.schedule = point.row.schedule;
  return replayed;
}

} // namespace stagecraft
