// How a row's run trained: its degrees, batch, precision and recompute in a study's words, the rest by its framework.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "sim/base/count_of.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"
#include "sim/validate/truth/study/training_rules.hpp"
#include "sim/validate/truth/study/truth_study.hpp"

namespace stagecraft {
namespace {

std::string write_framework(RunTraining& run) {
  run.line("training:");
  run.line("  framework: " + std::string(run.framework.name));
  if (const std::string attention = attention_stated(run.row, run.framework); !attention.empty()) {
    run.line("  attention: " + attention);
  }
  return "";
}

// Optimisers by the states that each keeps of a weight.
std::string write_optimizer(RunTraining& run) {
  constexpr std::array kNames = {Alias{"", ""},         Alias{"adam", "adam"},     Alias{"adamw", "adam"},
                                 Alias{"lamb", "lamb"}, Alias{"adadelta", "adam"}, Alias{"momentum", "momentum"},
                                 Alias{"sgd", "sgd"}};
  const auto known = std::find_if(kNames.begin(), kNames.end(),
                                  [&](const Alias& one) { return one.theirs == plain_words(run.row.optimizer); });
  if (known == kNames.end()) {
    return "the optimizer '" + excerpt(run.row.optimizer) + "' is not modelled";
  }
  const std::string usual = run.images ? "momentum" : "adam";
  if (!known->ours.empty() || !run.framework.own_optimizer) {
    run.line("  optimizer: " + (known->ours.empty() ? usual : std::string(known->ours)));
  }
  return "";
}

// Of what the host does once an epoch, an iteration's part.
std::string write_epoch(RunTraining& run) {
  const bool of_epochs = run.row.metric == "epoch_seconds" || run.row.metric == "average_power";
  if (of_epochs && run.row.epoch_host_seconds > 0) {
    const double iterations = static_cast<double>(run.row.epoch_samples) / run.row.global_batch;
    run.line("  step_overhead: " + std::to_string(1e6 * run.row.epoch_host_seconds / iterations) + " us");
    run.assume(to_text(Seconds{run.row.epoch_host_seconds}) + " of the host for the samples of an epoch");
  }
  return "";
}

// NVIDIA's examples train ResNet-50 in fp16 with channels last (PyTorch: `memory_format: nhwc` of AMP in configs.yml;
// MXNet: `--conv-layout NHWC` of float16 in its runner), in all else with channels first, their frameworks' default.
// A row that states a layout has that.
std::string write_image_layout(RunTraining& run) {
  if (!run.images || run.row.mentions("NCHW") || run.row.mentions("channels first") ||
      run.row.mentions("channels-first")) {
    return "";
  }
  const bool stated =
      run.row.mentions("NHWC") || run.row.mentions("channels last") || run.row.mentions("channels-last");
  if (stated || (run.row.mentions("DeepLearningExamples") && has(plain_words(run.row.precision), "fp16"))) {
    run.line("  image_layout: channels-last");
  }
  return "";
}

// MaxText shares sequences among chips where a configuration has more chips than sequences.
void share_sequences(RunTraining& run) {
  const int batch = run.row.global_batch;
  const int replicas = run.setting.devices / std::max(1, run.tensor * run.pipeline);
  if (run.is_maxtext() && run.row.degrees.context == 0 && batch > 0 && replicas > batch && replicas % batch == 0) {
    run.context = replicas / batch;
    run.assume("sequences shared by " + count_of(run.context, "chip") + ", of which there are more than sequences");
  }
}

} // namespace

std::string recompute_stated(const TruthRow& row) {
  const std::string words = plain_words(row.recompute);
  return words.empty() || words == "unknown" ? plain_words(row.flag("recompute")) : words;
}

std::variant<StudyPart, Infeasible> truth_training(const TruthRow& row, const TruthFramework& framework,
                                                   const TrainingSetting& setting) {
  RunTraining run{.row = row,
                  .framework = framework,
                  .setting = setting,
                  .images = setting.model != nullptr && setting.model->images,
                  .stages = setting.model == nullptr ? "" : setting.model->layers,
                  .tensor = std::max(row.degrees.tensor, 1),
                  .pipeline = std::max(row.degrees.pipeline, 1),
                  .context = std::max(row.degrees.context, 1)};
  share_sequences(run);
  for (const auto rule : {write_framework, write_image_layout, write_optimizer, write_epoch, write_precision,
                          write_flags, write_recompute, write_degrees, write_batch, write_schedule}) {
    if (std::string reason = rule(run); !reason.empty()) {
      return Infeasible{std::move(reason)};
    }
  }
  return std::move(run.part);
}

} // namespace stagecraft
