// The order of passes in a pipeline, by the names that sources have for it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "sim/base/utf8.hpp"
#include "sim/validate/truth/study/training_rules.hpp"

namespace stagecraft {
namespace {

// The first that fits. Without a schedule of its own for replicas, DualPipe is run as it is cut in half.
constexpr std::array kNames = {Alias{"interleav", "interleaved"},
                               Alias{"eager-1f1b", "eager-1f1b"},
                               Alias{"1f1b", "1f1b"},
                               Alias{"pipedream-flush", "1f1b"},
                               Alias{"dapple", "1f1b"},
                               Alias{"gpipe", "gpipe"},
                               Alias{"afab", "gpipe"}, // all forwards, then all backwards, as nanotron calls it
                               Alias{"zb-h1", "zb-h1"},
                               Alias{"zb-1p", "zb-h1"},
                               Alias{"zb-h2", "zb-h2"},
                               Alias{"zb-2p", "zb-h2"},
                               Alias{"vhalf", "v-half"}, // "zb-vhalf", too
                               Alias{"vmin", "v-min"},
                               Alias{"zb-v", "zb-v"},
                               Alias{"zbv", "zb-v"},
                               Alias{"v-half", "v-half"},
                               Alias{"v-min", "v-min"},
                               Alias{"zbb", "zb-h1"}, // Primus' name of Zero Bubble's first
                               Alias{"zero bubble", "zb-h1"},
                               Alias{"zero-bubble", "zb-h1"},
                               Alias{"dualpipe-v", "dualpipe-v"},
                               Alias{"dualpipev", "dualpipe-v"},
                               Alias{"dualpipe", "dualpipe"},
                               Alias{"breadth-first", "breadth-first"},
                               Alias{"chimera", "chimera"},
                               Alias{"hanayo", "hanayo"}};

// The row of the first name that the words have; the end where they have none.
auto named_in(const std::string& words) {
  return std::find_if(kNames.begin(), kNames.end(), [&](const Alias& one) { return has(words, one.theirs); });
}

// Whether tokens go to experts beside the passes of another micro-batch.
bool overlaps_experts(const RunTraining& run) { return run.row.flag("moe_a2a_overlap") == "true"; }

// Whether a schedule's words say no more than its name: "interleaved 1f1b schedule", and not "no-1f1b".
bool is_usual_name(const std::string& words, std::string_view name) {
  std::string rest = words;
  for (const std::string_view usual :
       {name, std::string_view("interleaved"), std::string_view("ed"), std::string_view("1f1b"),
        std::string_view("non-"), std::string_view("pipeline"), std::string_view("schedule"),
        std::string_view("fill-drain"), std::string_view("flush")}) {
    for (std::size_t at = rest.find(usual); at != std::string::npos; at = rest.find(usual)) {
      rest.erase(at, usual.size());
    }
  }
  return rest.find_first_not_of(" -_,") == std::string::npos;
}

} // namespace

bool turns_around(const RunTraining& run) {
  constexpr auto kTurning = std::to_array<std::string_view>({"zb-v", "v-half", "v-min", "dualpipe-v"});
  const auto found = named_in(plain_words(run.row.schedule));
  return found != kNames.end() && std::find(kTurning.begin(), kTurning.end(), found->ours) != kTurning.end();
}

std::string write_schedule(RunTraining& run) {
  const std::string words = plain_words(run.row.schedule);
  std::string_view schedule = run.interleave > 1 && run.pipeline > 1 ? "interleaved" : "1f1b";
  const auto found = named_in(words);
  const bool silent = states_nothing(words);
  if (found == kNames.end() && run.pipeline == 1 && !silent) {
    run.assume("nothing of the schedule '" + excerpt(run.row.schedule) + "', which is not known, in one stage");
  } else if (found != kNames.end() && run.pipeline > 1 && !is_usual_name(words, found->theirs)) {
    run.assume("the schedule '" + excerpt(run.row.schedule) + "' as " + std::string(found->ours));
  }
  if (found != kNames.end() && run.pipeline > 1) {
    const bool without = found->ours == "interleaved" && run.interleave == 1; // as its script says
    schedule = found->ours == "1f1b" || without ? schedule : found->ours;
  } else if (run.pipeline > 1 && !silent) {
    std::string names;
    for (const Alias& one : kNames) {
      names += (names.empty() ? "" : ", ") + std::string(one.ours.starts_with(one.theirs) ? one.ours : one.theirs);
    }
    return "the schedule '" + excerpt(run.row.schedule) + "' is not modelled; allowed: " + names;
  }
  if (overlaps_experts(run) && (schedule == "1f1b" || schedule == "interleaved")) { // Megatron-Core's combined 1F1B
    schedule = schedule == "1f1b" ? "combined-1f1b" : "combined-interleaved";
  }
  const bool by_time = run.is_torchgpipe() && run.pipeline > 1 && run.stages.empty();
  if (by_time) {
    run.assume("stages of about the same time, as torchgpipe's balance_by_time makes them");
  }
  run.line(std::string("compare: {strategies: [") + (by_time ? "block-partition" : "mesh") + "], schedules: [" +
           std::string(schedule) + "]}");
  return "";
}

} // namespace stagecraft
