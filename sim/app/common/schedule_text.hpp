// A schedule as CSV in the dialect that flags name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/common/flags.hpp"
#include "sim/schedule/format/schedule_file.hpp"

namespace stagecraft {

/// The values of --dialect and --messages.
struct ScheduleTextOptions {
  std::string dialect = "stagecraft";
  bool messages = false;
};

void add_schedule_text_flags(Flags& flags, ScheduleTextOptions& options);

/// The schedule as text. InputError where the dialect cannot express it.
std::string schedule_text(const Schedule& schedule, const ScheduleTextOptions& options);

} // namespace stagecraft
