// SPDX-License-Identifier: Apache-2.0
#include "sim/app/commands.hpp"

#include <array>

namespace stagecraft {

// Declares and calls the function in a command's own file, so that a new command is one file and one row.
#define COMMAND(function)                                                                                              \
  [](Flags& flags) {                                                                                                   \
    Job function(Flags&);                                                                                              \
    return function(flags);                                                                                            \
  }

std::span<const CommandRow> commands() {
  static constexpr const char* kRuns = "Plans and runs";
  static constexpr const char* kStudies = "Studies";
  static constexpr const char* kReality = "Reality";
  static constexpr const char* kFiles = "Files and names";
  static constexpr std::array kRows = {
      CommandRow{kRuns, "compare", "replay and rank strategies x schedules (the main job)",
                 "compare gpt2-xl --platform mixed-v100-p100", COMMAND(command_compare)},
      CommandRow{kRuns, "plan", "make one split, as a plan file",
                 "plan vgg16 --platform mixed-v100-p100 --strategy capability -o plan.yaml", COMMAND(command_plan)},
      CommandRow{kRuns, "replay", "replay one run, with its timeline",
                 "replay vgg16 --platform mixed-v100-p100 --strategy optimal --schedule 1f1b", COMMAND(command_replay)},
      CommandRow{kRuns, "explain", "say what holds a run back, and what would help most",
                 "explain vgg16 --platform mixed-v100-p100 --strategy optimal --schedule 1f1b",
                 COMMAND(command_explain)},
      CommandRow{kRuns, "schedule", "draw a schedule alone, from given times",
                 "schedule zb-h1 --stages 4 --micro-batches 8", COMMAND(command_schedule)},
      CommandRow{kRuns, "check", "say whether a plan or schedule is valid here, and if not, why",
                 "check plan.yaml vgg16 --platform mixed-v100-p100", COMMAND(command_check)},
      CommandRow{kStudies, "sweep", "run every combination of a study's axes, and keep the results in a file",
                 "sweep reports/network-for-16/study.yaml -o results.sqlite", COMMAND(command_sweep)},
      CommandRow{kStudies, "points", "write the results of sweeps as CSV or JSON lines, or replay one point",
                 "points results.sqlite -o points.csv", COMMAND(command_points)},
      CommandRow{kStudies, "merge", "put the results of several sweeps or shards into one file",
                 "merge a.sqlite b.sqlite -o both.sqlite", COMMAND(command_merge)},
      CommandRow{kStudies, "buy", "say which machines to take: days, dollars and how sure, for each of some offers",
                 "buy llama3-8b --offer '2, 4 x dgx-h100' --offer '2 x dgx-b200' --tokens 300B", COMMAND(command_buy)},
      CommandRow{kStudies, "judge", "compare planners over models x platforms: wins, regret, bias",
                 "judge reports/wang-2020/study.yaml", COMMAND(command_judge)},
      CommandRow{kStudies, "adapt", "train over time in a world that changes, adapting or not",
                 "adapt reports/patent-2022/slow-down.yaml", COMMAND(command_adapt)},
      CommandRow{kStudies, "report", "show results as one page, or as figures", "report results.json -o results.html",
                 COMMAND(command_report)},
      CommandRow{
          kReality, "execute", "carry out one run on this machine, beside its prediction",
          "execute vgg16 --platform mixed-v100-p100 --strategy optimal --schedule 1f1b --backend sleeping -o run.json",
          COMMAND(command_execute)},
      CommandRow{kReality, "train", "train a small perceptron by the plan's tasks: does it still learn?",
                 "train vgg16 --platform mixed-v100-p100 --strategy optimal --schedule all", COMMAND(command_train)},
      CommandRow{kReality, "validate", "predict measured runs, and show the error of each and of all",
                 "validate run.json", COMMAND(command_validate)},
      CommandRow{kReality, "calibrate", "measure a device, fit its times, and say how sure they are",
                 "calibrate --backend cpu --name mine -o measured.yaml", COMMAND(command_calibrate)},
      CommandRow{kFiles, "show", "sum up a model, platform, device or study", "show llama3-8b", COMMAND(command_show)},
      CommandRow{kFiles, "list", "list what can be named", "list platforms", COMMAND(command_list)},
      CommandRow{kFiles, "import", "read a model, a schedule or measurements of another tool", "import onnx model.onnx",
                 COMMAND(command_import)},
      CommandRow{kFiles, "export", "write a split for another tool, a model's kernels, or a run to carry out elsewhere",
                 "export torchgpipe vgg16 --platform mixed-v100-p100 --strategy capability -o balance.json",
                 COMMAND(command_export)},
  };
  return kRows;
}

} // namespace stagecraft
