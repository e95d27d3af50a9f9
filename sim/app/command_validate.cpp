// stagecraft validate: predict measured runs, and say how far off.
// SPDX-License-Identifier: Apache-2.0
#include "sim/app/options.hpp"
#include "sim/study/validators.hpp"

namespace stagecraft {

int command_validate(const Options& options) {
  const Validation validation = validate(options.file);
  emit(options, options.format == "json"  ? to_json(validation)
                : options.format == "csv" ? to_csv(validation)
                                          : to_text(validation, options.output.empty() && use_color()));
  return validation.rows.empty() ? kNothingFeasible : kDone;
}

} // namespace stagecraft
