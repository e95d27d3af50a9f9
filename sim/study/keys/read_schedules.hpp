// Reads which schedules a study tries: names of the table, and files with an order of one's own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "sim/schedule/schedule.hpp"
#include "sim/study/keys/inputs.hpp"

namespace stagecraft {

/// A schedule to try: a row of the table, or an order from a file. One of them is set.
struct StudySchedule {
  const ScheduleRow* row = nullptr;
  std::shared_ptr<const Schedule> own = nullptr; ///< it can run; shared by studies that read the same file

  std::string_view name() const { return row != nullptr ? row->name : std::string_view(own->name); }
  /// Whether it is a named one that pairs forwards and backwards layer by layer.
  bool pairs_by_layers() const { return row != nullptr && row->pairs_by_layers; }
};

/// One schedule: a name of the table, or else a schedule file (docs/formats/schedule.md) in the study's folder or at
/// the path as given, called by its stem. InputError where it is neither, and where the file's schedule cannot run.
StudySchedule read_schedule(const yaml::Node& item, const Folders& folders);

/// The schedules of a key, in the order listed; `all`, and no key, stand for every row of the table. Files whose stem
/// is the name of another schedule get their file's name added. InputError for an empty list and one schedule twice.
std::vector<StudySchedule> read_schedules(yaml::Map& map, std::string_view key, const Folders& folders);

/// Whether a value of such a key names something that is not in the table, which only a file can be.
bool names_a_file(const yaml::Node& schedules);

} // namespace stagecraft
