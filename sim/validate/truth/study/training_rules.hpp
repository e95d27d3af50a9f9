// The rules by which a row's run becomes `training:` of a study, a file each. Each rule writes its lines and says what
// it assumes; it returns why the run is not modelled, or "".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/validate/truth/study/truth_study.hpp"
#include "sim/workload/training/module_row.hpp"

namespace stagecraft {

/// A run's training while the rules write it, and what one rule found that another needs.
struct RunTraining {
  const TruthRow& row;
  const TruthFramework& framework;
  const TrainingSetting& setting;
  bool images = false;  ///< its samples are no sequences of tokens
  std::string stages{}; ///< the layers of each, where the row states them
  int tensor = 1, pipeline = 1, context = 1;
  int replicas = 1;            ///< from write_degrees() on
  int interleave = 1;          ///< from write_degrees() on
  bool gathers_8_bits = false; ///< weights, by the note of its flags; from write_precision() on
  StudyPart part{};

  void line(const std::string& text) { part.text += text + "\n"; }
  void assume(const std::string& what) { part.assumed.push_back(what); }

  bool is_maxtext() const { return framework.name == "maxtext"; }
  bool is_torchgpipe() const { return row.mentions("torchgpipe"); }
  bool is_torchtitan() const { return framework.name.starts_with("torchtitan"); }
  /// Whether some of its layers are experts.
  bool is_mixture() const { return row.sizes.experts > 0 || (setting.model != nullptr && setting.model->mixture); }
};

/// What it computes in, and what it holds in 8 bits.
std::string write_precision(RunTraining& run);
/// What flags say: how tokens reach experts, what is left to hosts, graphs of kernels, which the host launches at once,
/// and whether replicas reduce gradients beside the last backward.
std::string write_flags(RunTraining& run);
/// What runs again in backward.
std::string write_recompute(RunTraining& run);
/// Its degrees of parallelism, with what replicas share.
std::string write_degrees(RunTraining& run);
/// What replicas share, as degree `zero`, and among how many.
std::string write_sharing(RunTraining& run);
/// Samples of an iteration and of a micro-batch. After write_degrees().
std::string write_batch(RunTraining& run);
/// The order of its passes. After write_degrees().
std::string write_schedule(RunTraining& run);
/// Whether its schedule gives each rank two stages, on the way down and up.
bool turns_around(const RunTraining& run);

/// What a source calls something, and a study.
struct Alias {
  std::string_view theirs, ours;
};
/// Whether the text has the word, as a part of another, too.
inline bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }
/// Whether plain_words() say that something is left out.
bool says_no(const std::string& words);
/// Those of the modules that the words name, as a list of YAML has them. Blanks, commas, colons and pluses part words.
std::string modules_named(const std::string& words, std::span<const ModuleRow> modules);

} // namespace stagecraft
