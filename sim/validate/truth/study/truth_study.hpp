// From a row of measured figures to the study that predicts it, by stated rules:
// docs/validation/measured-runs.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/validate/truth/rows/truth_row.hpp"

namespace stagecraft {

/// A part of a study as YAML, and what was assumed where the row is silent, a clause each.
struct StudyPart {
  std::string text;
  std::vector<std::string> assumed;
};

/// The study of a row, as YAML on its own: the same text for rows that measured the same run.
struct TruthStudy {
  std::string text;
  std::vector<std::string> assumed;
  std::string framework; ///< the recipe
  int devices = 1;
  double global_batch = 1;
};

/// A model that is shipped as a workload.
struct ShippedModel {
  StudyPart part;
  bool images = false;  ///< its samples are no sequences of tokens
  bool mixture = false; ///< some of its layers are experts
  std::string layers;   ///< of each stage, as `training.parallel.layers`, where the row states them; "": it does not
};

/// Whether a row's name is that of a decoder, which its columns describe.
bool is_decoder(const TruthRow& row);
/// What a study's model says of these, `  lora: …`, with what is assumed of them; "" where the run trains all weights.
std::string adapters_of(const TruthRow& row, std::vector<std::string>& assumed);

/// The shipped workload of a row's name, with the row's length of a sequence; nothing where there is none of that name,
/// and of a decoder whose sizes are stated.
std::optional<ShippedModel> shipped_model(const TruthRow& row, const std::filesystem::path& shipped);

/// Fills sizes that the row is silent on, where the model of that name was published with them.
void fill_published_sizes(TruthRow& row);

/// The model of a row that has sizes, `model: …`. Infeasible where the row or its architecture is not known well
/// enough.
std::variant<StudyPart, Infeasible> truth_model(const TruthRow& row, bool pads_vocabulary);

/// The machine of a row, `platform: …`, with as many devices as the run used. `shipped` as Folders::shipped.
std::variant<StudyPart, Infeasible> truth_platform(const TruthRow& row, int devices,
                                                   const std::filesystem::path& shipped);

/// How many devices a run used: as stated, or as its degrees make. 0: neither says.
int truth_devices(const TruthRow& row);

/// A framework, as tables name it.
struct TruthFramework {
  std::string_view name, help;             ///< the name of its recipe
  std::array<std::string_view, 4> words{}; ///< in the source, the table or the note; the first row that fits
  bool pads_vocabulary = false;            ///< to a multiple of 128 x the tensor degree
  bool separate_attention = false;         ///< its recipe computes attention by several kernels
  bool some_blocks = false;                ///< may run some blocks of a stage again, as by `--recompute-num-layers`
  bool own_optimizer = false;              ///< its recipe has one
};
/// The framework that the row names, of the year that its source names; where it names none, the usual one of what it
/// shares among devices.
const TruthFramework& framework_of(const TruthRow& row);
/// Whether a word of the row is that framework's.
bool names_framework(const TruthRow& row);
/// The kernels of attention that the row's words say where the framework's are older, as a study has them; "": none.
std::string attention_stated(const TruthRow& row, const TruthFramework& framework);

/// What is assumed of a row that says nothing of recompute.
inline constexpr std::string_view kNothingRecomputed = "nothing is recomputed";
/// What the row, or else the flags beside its table, says of recompute, as plain_words(); "": nothing.
std::string recompute_stated(const TruthRow& row);

/// What a run's training depends on beside its own cells.
struct TrainingSetting {
  int devices = 1;
  const ShippedModel* model = nullptr; ///< null for a decoder of the row's sizes
  std::string device{};                ///< of a run by MaxText, the shipped type of its devices
  int slice = 0;                       ///< and the chips of a TPU's slice; 0: other devices
  std::set<std::string> precisions{};  ///< that the device type computes in, of a row that states none
};

/// How the run trained, `training: …` and `compare: …`.
std::variant<StudyPart, Infeasible> truth_training(const TruthRow& row, const TruthFramework& framework,
                                                   const TrainingSetting& setting);

/// All three. Infeasible with the reason where one is.
std::variant<TruthStudy, Infeasible> truth_study(const TruthRow& row, const std::filesystem::path& shipped);

} // namespace stagecraft
