// Schedule files: a line per device with its tokens, as `stagecraft schedule --format csv` writes them, or in PyTorch's
// format. docs/formats/schedule.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

struct ScheduleDialect {
  std::string_view name, help;
};
/// The table of dialects: stagecraft, pytorch, pytorch-old.
std::span<const ScheduleDialect> schedule_dialects();

/// A schedule from a file.
struct ScheduleFile {
  Schedule schedule;
  std::string dialect; ///< dialect of the file
  /// Defects of messages that the file spells out; schedule_defects() finds the others.
  std::vector<ScheduleDefect> defects;
  std::vector<int> lines; ///< [rank]: the line of its order
};

/// Every reason why the schedule cannot run.
std::vector<ScheduleDefect> find_defects(const ScheduleFile& file);
std::vector<std::string> schedule_defects(const ScheduleFile& file); ///< their texts
/// The place of a defect: the line of its rank, or the file.
Where place_of(const ScheduleDefect& defect, const ScheduleFile& read, const std::string& file);

/// One line per rank, tokens like F0@1 joined by commas.
std::string to_csv(const Schedule& schedule);

/// The same in the named dialect, with SEND and RECV if `messages`. The schedule must be able to run. Infeasible if the
/// dialect cannot express it.
std::variant<std::string, Infeasible> to_csv(const Schedule& schedule, std::string_view dialect, bool messages);

/// Reads any dialect, which the tokens show. Stages and micro-batches are those that occur; backward is split if a W
/// occurs. Throws InputError at an unknown token.
ScheduleFile read_schedule(std::string_view text, const std::string& file);

} // namespace stagecraft
