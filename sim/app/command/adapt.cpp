// stagecraft adapt: training over time in a world that changes, with and without dynamic balancing.
// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/adapt.hpp"

#include <algorithm>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/run/given_study.hpp"

namespace stagecraft {
namespace {

struct AdaptCommand {
  std::string study;
  OutputOptions output;
  SettingOptions settings;
};

void add_flags(Flags& flags, AdaptCommand& options) {
  flags.add("STUDY", &options.study, "a study file with the key 'adapt'", {.required = true});
  add_result_flags(flags, options.output, {"table", "json", "csv", "html", "md"});
  add_setting_flags(flags, options.settings);
}

ExitStatus run(const AdaptCommand& options) {
  GivenStudy given = study_of_file(options.study, settings_of(options.settings), Purpose::run);
  const Study& study = given.study;
  if (!study.adapt) {
    throw InputError({options.study, 0, 0}, "the study has no key 'adapt'; docs/formats/study.md has an example");
  }
  ScheduleCounts counts;
  StudyMemo memo(study, counts);
  Adaptation result = adapt(memo);
  result.inputs = std::move(given.inputs);
  emit(options.output, {.table = [&] { return to_text(result, use_color()); },
                        .json = [&] { return to_json(result); },
                        .csv = [&] { return to_csv(result); }});
  const bool ran = std::any_of(result.policies.begin(), result.policies.end(),
                               [](const AdaptPolicy& policy) { return policy.why_not.empty(); });
  return ran ? kDone : kNothingFeasible;
}

} // namespace

Job command_adapt(Flags& flags) { return make_job<AdaptCommand>(flags, add_flags, run); }

} // namespace stagecraft
