// From names, files and flags to the values a study needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/workload/import/import.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

class InputFiles; // sim/study/input_files.hpp

/// Where files are looked for: the study's own folder first, then the data shipped with the program.
struct Folders {
  std::filesystem::path study;
  std::filesystem::path shipped; ///< holds workloads/, platforms/ and reports/
  InputFiles* files = nullptr;   ///< where given, keeps what is read, so that similar studies read it once
  bool closed = false;           ///< only files below these two are read: the study is a stranger's
};

/// Where a file of this name may lie, in the order of looking: below the study's folder, then as given.
std::vector<std::filesystem::path> places_of(const Folders& folders, const std::string& name);

/// The file that `name` means: as given, below the study's folder, below the shipped folder, or the shipped
/// `kind`/NAME.yaml. InputError naming the nearest shipped name where there is none.
std::filesystem::path find_file(const Folders& folders, std::string_view kind, const std::string& name,
                                const Where& where);

/// A document, kept where the folders keep what was read.
yaml::Node read_document(const Folders& folders, const std::filesystem::path& file);

/// The names shipped in a folder, "workloads" or "platforms", sorted.
std::vector<std::string> shipped_names(const Folders& folders, std::string_view kind);

/// One `key=value` given on top of a study.
struct Setting {
  std::string key, value;
  std::optional<yaml::Node> parsed = std::nullopt; ///< the value, where it is parsed already; errors name its place
};

/// Whether a key stands below another: "platform.network" below "platform".
bool is_below(std::string_view key, std::string_view above);

/// Whether a setting is for this key, or for one below it.
bool is_of(const Setting& setting, std::string_view key);

/// Changes a document. `prefix` stands before the key in error messages.
void apply(yaml::Node& document, const Setting& setting, std::string_view prefix = "");

/// A study's document with the settings that change it, and those of what it only names, whose keys are those of its
/// model's or platform's own document.
struct ChangedStudy {
  yaml::Node document;
  std::vector<Setting> of_model, of_platform;
};
ChangedStudy changed_study(const yaml::Node& document, const std::vector<Setting>& settings);

/// A model: a name, a file, or a mapping {file, samples, device, dimensions, cost_scale, sequence}. Settings change
/// keys of its document where that is Stagecraft's own YAML.
ModelGraph read_model(const yaml::Node& node, const Folders& folders, const std::vector<Setting>& settings);

/// A platform: a name, a file, "N x NAME" (node_shorthand.hpp), a mapping {nodes: N x NAME, network} of such nodes with
/// another network, or a mapping {devices, bandwidth, latency, memory}, which means that many devices like
/// the one the model was profiled on, with a private link per device and direction, and with latency 0 and unlimited
/// memory unless given.
Platform read_platform(const yaml::Node& node, const Folders& folders, const std::vector<Setting>& settings);

/// The devices that the model's file brings along, as a star. There must be some.
Platform brought_platform(const ModelGraph& model);

/// The model with amounts per sample. Profiles of unknown size count as profiles of `samples` samples.
ModelGraph with_profile_samples(ModelGraph model, double samples);

} // namespace stagecraft
