// stagecraft validate: predict measured runs, and say how far off.
// SPDX-License-Identifier: Apache-2.0
#include "sim/app/options.hpp"
#include "sim/study/validators.hpp"

namespace stagecraft {

int command_validate(const Options& options) {
  const Validation validation = validate(options.file);
  emit(options, {.table = [&] { return to_text(validation, use_color()); },
                 .json = [&] { return to_json(validation); },
                 .csv = [&] { return to_csv(validation); }});
  return validation.rows.empty() ? kNothingFeasible : kDone;
}

} // namespace stagecraft
