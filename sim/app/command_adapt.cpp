// stagecraft adapt: training over time in a world that changes, with and without dynamic balancing.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/analysis/adapt.hpp"
#include "sim/app/options.hpp"

namespace stagecraft {

int command_adapt(const Options& options) {
  std::vector<std::string> inputs;
  const Study study = study_from(options, &inputs);
  if (!study.adapt) {
    throw InputError({options.study, 0, 0}, "the study has no key 'adapt'; docs/formats/study.md has an example");
  }
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  Adaptation result = adapt(memo);
  result.inputs = std::move(inputs);
  emit(options, {.table = [&] { return to_text(result, use_color()); },
                 .json = [&] { return to_json(result); },
                 .csv = [&] { return to_csv(result); }});
  const bool ran = std::any_of(result.policies.begin(), result.policies.end(),
                               [](const AdaptPolicy& policy) { return policy.why_not.empty(); });
  return ran ? kDone : kNothingFeasible;
}

} // namespace stagecraft
