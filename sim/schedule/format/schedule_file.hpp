// Schedule files: a line per device with its tokens, as `stagecraft schedule --format csv` writes them, or in the form
// of PyTorch. docs/formats/schedule.md.
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
/// stagecraft, pytorch, pytorch-old.
std::span<const ScheduleDialect> schedule_dialects();

/// A schedule from a file.
struct ScheduleFile {
  Schedule schedule;
  std::string dialect;              ///< as read
  std::vector<std::string> defects; ///< of messages that the file spells out; the rest is schedule_defects()'s to say
};

/// All that keeps it from running.
std::vector<std::string> schedule_defects(const ScheduleFile& file);

/// One line per rank, tokens like F0@1 joined by commas.
std::string to_csv(const Schedule& schedule);

/// The same in a dialect by its name, with SEND and RECV if asked for. The schedule can run. Infeasible where the
/// dialect lacks the words.
std::variant<std::string, Infeasible> to_csv(const Schedule& schedule, std::string_view dialect, bool messages);

/// Reads any dialect, told apart by its tokens; stages and micro-batches are those that occur, backward is split where
/// a W occurs. Throws InputError at a token that is none.
ScheduleFile read_schedule(std::string_view text, const std::string& file);

} // namespace stagecraft
