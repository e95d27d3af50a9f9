// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/schedule_text.hpp"

namespace stagecraft {

void add_schedule_text_flags(Flags& flags, ScheduleTextOptions& options) {
  flags.add("--dialect", &options.dialect, "form of a schedule in CSV: stagecraft, pytorch or pytorch-old",
            {.check = one_of(names_of(schedule_dialects())), .shows_default = true});
  flags.add("--messages", &options.messages, "write PyTorch's SEND and RECV too");
}

std::string schedule_text(const Schedule& schedule, const ScheduleTextOptions& options) {
  auto written = to_csv(schedule, options.dialect, options.messages);
  if (const Infeasible* reason = std::get_if<Infeasible>(&written)) {
    throw InputError({"--dialect", 0, 0}, reason->reason);
  }
  return std::get<std::string>(std::move(written));
}

} // namespace stagecraft
