// The study that the command line describes: a study file, or a model with a platform; and what flags change in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/common/flags.hpp"
#include "sim/app/run/assumptions.hpp"
#include "sim/study/keys/input_files.hpp"
#include "sim/study/study.hpp"

namespace stagecraft {

/// The values of --set and of the flags for the most common keys.
struct SettingOptions {
  std::vector<std::string> set;
  std::string engine, detail, cost_model, seed;
  std::string confidence; ///< for commands that have it
  bool unfold = false, per_device = false;
  std::string tokens;              ///< for commands that have it
  std::vector<std::string> prices; ///< the same
};

/// How a model's file is read: --dim, --cost-scale, --seq, --lora, --lora-layers and --mtp-layers.
struct ModelReading {
  std::vector<std::string> dimensions;
  std::string cost_scale;
  int sequence = 0;                     ///< 0: as the file says
  int lora = 0;                         ///< 0: all weights are trained
  std::vector<std::string> lora_layers; ///< none: every product of a block
  int mtp_layers = -1;                  ///< that predict further tokens; below 0: as the file says
};

/// The values of MODEL and of --platform, or of --devices and the flags that describe them.
struct ModelOptions {
  std::string model, platform;
  int devices = 0;
  std::string bandwidth, latency, memory;
  std::string micro_batches; ///< "", "auto", a number, or several, "8,16"
  ModelReading reading;
};

void add_setting_flags(Flags& flags, SettingOptions& options);
/// Adds --tokens and --price.
void add_money_flags(Flags& flags, SettingOptions& options);
void add_confidence_flag(Flags& flags, SettingOptions& options);
void add_reading_flags(Flags& flags, ModelReading& options);
/// The positional that names the model.
struct ModelPositional {
  std::string name = "MODEL";
  std::string help = "a name in workloads/, or a file: .yaml, .onnx, PipeDream .txt, .json";
  bool required = true;
  bool several_micro_batches = false; ///< --micro-batches takes several numbers
  bool made_devices = true;           ///< takes --devices, with their links and memory, in place of a platform
};
void add_model_flags(Flags& flags, ModelOptions& options, const ModelPositional& positional = {});

/// KEY=VALUE of --set.
std::vector<Setting> parse_settings(const std::vector<std::string>& texts);

/// What flags change in a study: --set, and the flags for single keys. InputError where --set is malformed.
std::vector<Setting> settings_of(const SettingOptions& options);
/// The same and --micro-batches.
std::vector<Setting> settings_of(const SettingOptions& options, const ModelOptions& model);

/// A model as a study names it, with the values of --dim, --cost-scale and --seq.
yaml::Node model_node(const std::string& model, const ModelReading& reading);
/// The options that --dim, --cost-scale and --seq give an importer.
ImportOptions import_options(const ModelReading& reading);

/// A study, and the files that it was made from, as results name them.
struct GivenStudy {
  Study study;
  std::vector<std::string> inputs;
  int longest = 0;                    ///< tokens of a sequence that were taken from a config.json, for want of --seq
  Assumptions assumed = {};           ///< what nobody said of a model that is compared without a study
  yaml::Node document = {};           ///< what the study was read from: its file's, or made of the command line
  std::vector<Setting> settings = {}; ///< on top of it, assumptions among them
  std::string file = {};              ///< the study's; "": none
  bool comparison = false;            ///< read for a comparison
};

GivenStudy study_of_file(const std::string& file, const std::vector<Setting>& settings, Purpose purpose);
/// Of a document that names files from the folder of `file`.
GivenStudy study_of_document(const yaml::Node& document, const std::string& file, const std::vector<Setting>& settings,
                             Purpose purpose);
GivenStudy study_of_model(const ModelOptions& options, const std::vector<Setting>& settings,
                          Purpose purpose = Purpose::run);
/// A note on a run of a model whose training nobody describes, which is then of one sample in plain defaults: what it
/// is, and how to say otherwise. "" where something of it is given, or the model was measured as it is trained.
std::string plain_training_note(const Study& study, const std::vector<Setting>& settings);
/// A note on a run whose replicas reduce gradients otherwise than in a comparison, since nobody says how. "" where
/// somebody does, or no replicas do.
std::string gradient_note(const Study& study, const std::vector<Setting>& settings, const Plan& plan);
/// A note on a --seq beyond what the model's config.json says; "" where there is nothing to say.
std::string sequence_note(const ModelOptions& options);
/// Whether MODEL is a study: a YAML file that names a model.
bool is_study(const std::string& name);
/// InputError where flags describe a model's platform or reading, which MODEL, a study or a result, says itself.
void refuse_model_flags(const ModelOptions& options);
/// What is compared where MODEL is a study, or a model with a platform, of which assumptions_for() says what the
/// settings leave open. Writes the study into the file `save`, where one is named. InputError where a study is given
/// with flags that describe a model's platform or reading.
GivenStudy compared_study(const ModelOptions& options, const std::vector<Setting>& settings,
                          const std::string& save = "");

/// The study of a document whose names are from the folder of `file`, with what assumptions_for() says of all that it
/// leaves open.
GivenStudy completed_study(const yaml::Node& document, const std::string& file, const std::vector<Setting>& settings,
                           AssumedDegrees degrees);
/// The document of a model with a platform, as the command line gives them.
yaml::Node document_of(const ModelOptions& options);
/// What would be assumed before any degrees are tried.
std::vector<Setting> first_assumptions(const yaml::Node& document, const std::string& file,
                                       const std::vector<Setting>& settings, AssumedDegrees degrees);
/// The longest sequence of a model's config.json, where that alone says how long one is; 0: something else does.
int longest_sequence(const ModelOptions& options);

/// The folders for names in a study file: the file's own, and the shipped one.
Folders folders_of(const std::string& study_file);
/// The study file and the files that were asked for, as results name them.
std::vector<std::string> inputs_of(const std::string& study_file, const InputFiles& files);

} // namespace stagecraft
