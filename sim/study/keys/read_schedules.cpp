// SPDX-License-Identifier: Apache-2.0
#include "sim/study/keys/read_schedules.hpp"

#include <algorithm>

#include "sim/base/system/file.hpp"
#include "sim/base/utf8.hpp"
#include "sim/schedule/format/schedule_file.hpp"
#include "sim/study/keys/input_files.hpp"
#include "sim/study/keys/unique_name.hpp"

namespace stagecraft {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kAll = "all";
constexpr std::string_view kListOrder = "list"; // what a run's `order` says of the list schedule
constexpr std::string_view kFileEnding = ".csv";

const ScheduleRow* find_row(std::string_view name) {
  const auto table = schedules();
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const ScheduleRow& row) { return same_name(row.name, name); });
  return found != table.end() ? &*found : nullptr;
}

// The names that a typing error may have meant: those of the table, and the schedule files in the study's folder.
std::vector<std::string> likely_names(const Folders& folders) {
  std::vector<std::string> names;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folders.study, failure)) {
    if (entry.path().extension() == kFileEnding) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  const std::vector<std::string> table = names_of(schedules());
  names.insert(names.end(), table.begin(), table.end());
  return names;
}

fs::path find_schedule_file(const Folders& folders, const std::string& name, const Where& where) {
  std::error_code failure;
  for (const fs::path& candidate : places_of(folders, name)) {
    if (fs::is_regular_file(candidate, failure)) {
      return candidate.lexically_normal();
    }
  }
  if (!name.ends_with(kFileEnding)) {
    throw InputError(where, unknown_name("schedule", name, names_of(schedules())) +
                                "; or a schedule file, of which none has this name");
  }
  const std::string close = nearest(name, likely_names(folders));
  throw InputError(where, "no such schedule file '" + excerpt(name, 200) + "' in the study's folder or as given" +
                              (close.empty() ? "" : "; did you mean '" + close + "'?"));
}

Schedule load_own(const fs::path& path, const std::string& bytes) {
  ScheduleFile read = read_schedule(bytes, path.string());
  const std::vector<ScheduleDefect> defects = find_defects(read);
  if (!defects.empty()) {
    const std::size_t more = defects.size() - 1; // `stagecraft check` lists all
    throw InputError(place_of(defects.front(), read, path.string()),
                     "the schedule cannot run: " + defects.front().text +
                         (more > 0 ? "; and " + std::to_string(more) + " more defects" : "") +
                         "; allowed: an order that `stagecraft check` finds valid");
  }
  return std::move(read.schedule);
}

std::shared_ptr<const Schedule> read_own(const fs::path& path, const Folders& folders) {
  if (folders.files == nullptr) {
    return std::make_shared<const Schedule>(load_own(path, read_file(path)));
  }
  return folders.files->schedule(path.string(), [&] { return load_own(path, folders.files->bytes(path)); });
}

// The schedules of one key as they are added.
class StudySchedules {
public:
  StudySchedules(std::string_view key, const Folders& folders) : key_(key), folders_(folders) {
    taken_.emplace_back(kListOrder);
  }

  void add(const ScheduleRow& row, const Where& where) {
    if (std::any_of(schedules_.begin(), schedules_.end(), [&](const StudySchedule& one) { return one.row == &row; })) {
      refuse(row.name, where);
    }
    schedules_.push_back({.row = &row});
  }

  void add(const yaml::Node& item) {
    const std::string& name = yaml::scalar(item, key_);
    if (const ScheduleRow* row = find_row(name)) {
      add(*row, item.where);
      return;
    }
    const fs::path path = find_schedule_file(folders_, name, item.where);
    if (std::find(paths_.begin(), paths_.end(), path) != paths_.end()) {
      refuse(name, item.where);
    }
    paths_.push_back(path);
    std::shared_ptr<const Schedule> own = read_own(path, folders_);
    if (std::string unique = unique_name(own->name, path, taken_); unique != own->name) {
      Schedule renamed = *own;
      renamed.name = std::move(unique);
      own = std::make_shared<const Schedule>(std::move(renamed));
    }
    taken_.push_back(own->name);
    schedules_.push_back({.own = std::move(own)});
  }

  std::vector<StudySchedule> take() { return std::move(schedules_); }

private:
  [[noreturn]] void refuse(std::string_view name, const Where& where) const {
    throw InputError(where, "'" + key_ + "' lists '" + excerpt(name, 200) + "' twice; allowed: once");
  }

  std::string key_;
  const Folders& folders_;
  std::vector<std::string> taken_ = names_of(stagecraft::schedules());
  std::vector<fs::path> paths_;
  std::vector<StudySchedule> schedules_;
};

} // namespace

StudySchedule read_schedule(const yaml::Node& item, const Folders& folders) {
  StudySchedules one("schedule", folders);
  one.add(item);
  return one.take().front();
}

std::vector<StudySchedule> read_schedules(yaml::Map& map, std::string_view key, const Folders& folders) {
  StudySchedules read(key, folders);
  const std::vector<const yaml::Node*> listed = map.list(key);
  if (map.has(key) && listed.empty()) {
    throw InputError(map.where(key), "'" + std::string(key) + "' is an empty list; allowed: all, or some of " +
                                         join(names_of(schedules())) + ", or schedule files");
  }
  const auto add_all = [&](const Where& where) {
    for (const ScheduleRow& row : schedules()) {
      read.add(row, where);
    }
  };
  for (const yaml::Node* item : listed) {
    if (yaml::scalar(*item, key) == kAll) {
      add_all(item->where);
    } else {
      read.add(*item);
    }
  }
  if (listed.empty()) {
    add_all(map.where());
  }
  return read.take();
}

bool names_a_file(const yaml::Node& schedules) {
  if (schedules.kind == yaml::Node::Kind::scalar) {
    return schedules.text != kAll && find_row(schedules.text) == nullptr;
  }
  return std::any_of(schedules.items.begin(), schedules.items.end(), names_a_file);
}

} // namespace stagecraft
