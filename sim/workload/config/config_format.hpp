// Configurations of frameworks: what their own files say of a training, and ours written for them. A format is one
// file, one row in config_formats.cpp and one line of CMake. docs/formats/framework-configs.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/workload/expert_capacity.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

/// A `training` mapping as a study has it, whose values stand where the file has them, what the file asks for that is
/// not taken over, one entry each, and the schedule that it names, as we call it; "" where it names none of ours.
struct ImportedTraining {
  yaml::Node training;
  std::vector<std::string> unheeded;
  std::string schedule;
  Where schedule_where;
  std::vector<std::string> conflicts{};    ///< sizes of the file that are not the model's, each with its place
  std::string framework{};                 ///< the recipe of the file's framework; "": there is none
  std::optional<ExpertCapacity> experts{}; ///< of every mixture; nothing: as the model says
};

/// What a configuration is for: files leave to the run how many devices there are and how many layers.
struct ConfigContext {
  const ModelGraph& model;
  int devices = 1;
  bool batch_given = false; ///< the study says how many samples an iteration has
};

/// The text of a configuration, and the row that is chosen where the file is a table.
class ConfigSource {
public:
  ConfigSource(std::string the_text, std::string the_file, const yaml::Node* the_row = nullptr)
      : text(std::move(the_text)), file(std::move(the_file)), row(the_row) {}

  /// The text as TOML where the name ends so, else as YAML or JSON; InputError if it is neither. Parsed on the first
  /// call.
  const yaml::Node& document() const;
  /// ".toml"; "" where the name has no ending.
  std::string ending() const;
  /// Whether the name ends as a document's does.
  bool is_document() const;

  const std::string text, file;
  const yaml::Node* row; ///< {column: value}, or null

private:
  mutable std::optional<yaml::Node> document_;
};

/// A plan that all stages and replicas share alike, as configurations can say it.
struct ConfigToWrite {
  const ModelGraph& model;
  const Training& training;
  Mesh mesh;
  PipelineLayout layers; ///< of each stage; stage i is on rank i mod mesh.pipeline
  int micro_batches = 1;
  Recompute recompute = Recompute::none; ///< selective: as the training says
  std::string schedule{};                ///< "": not known
};
using WrittenConfig = std::variant<std::string, Infeasible>;

/// What files of a format look like.
enum class ConfigShape { document, table, script };

struct ConfigFormat {
  std::string_view name, help;
  ConfigShape shape;
  std::array<std::string_view, 9> marks; ///< any of these keys, columns or words shows the format
  ImportedTraining (*read)(const ConfigSource& source, const ConfigContext& context);
  /// The plan in this format, or why it cannot be said; null for formats that are only read.
  WrittenConfig (*write)(const ConfigToWrite& what) = nullptr;
  std::string_view ending = {};                                           ///< of a file that is written
  std::span<const RankOrderRow> orders = std::span(kRankOrders).first(1); ///< of ranks, that it can say
};

/// The table of formats, in the order in which they are tried on a file.
std::span<const ConfigFormat> config_formats();

/// Whether the content shows this format.
bool shows(const ConfigFormat& format, const ConfigSource& source);

/// Reads a file in the format called `format`, or for "" in the one that its content shows. Throws InputError.
ImportedTraining read_config(const ConfigSource& source, std::string_view format, const ConfigContext& context);

/// Loads what the value of `training.config` names: a file beside the one that names it, or {file, format, row}. A file
/// that the command line names may lie anywhere.
struct NamedConfig {
  std::string name;
  ImportedTraining imported;
};
NamedConfig load_config(const yaml::Node& node, const ConfigContext& context);

/// Megatron-LM's arguments, as in a launch script.
ImportedTraining import_megatron(const ConfigSource& source, const ConfigContext& context);
/// A ConfigContainer of Megatron-Bridge, or part of one, as YAML or JSON.
ImportedTraining import_megatron_bridge(const ConfigSource& source, const ConfigContext& context);
WrittenConfig write_megatron_bridge(const ConfigToWrite& what);
/// A row of NeMo's recommended_model_configs.
ImportedTraining import_nemo(const ConfigSource& source, const ConfigContext& context);
WrittenConfig write_nemo(const ConfigToWrite& what);
/// MLPerf's config_*.sh: exported variables, which are read and never executed.
ImportedTraining import_mlperf(const ConfigSource& source, const ConfigContext& context);
WrittenConfig write_mlperf(const ConfigToWrite& what);
/// TorchTitan's TOML of old and its fields of today.
ImportedTraining import_torchtitan(const ConfigSource& source, const ConfigContext& context);
WrittenConfig write_torchtitan(const ConfigToWrite& what);
/// DeepSpeed's JSON (deepspeed.ai, "DeepSpeed Configuration JSON"). A value of "auto" counts as left out. Throws
/// InputError for values that DeepSpeed does not know, for two precisions, and without a batch.
ImportedTraining import_deepspeed(const ConfigSource& source, const ConfigContext& context);
WrittenConfig write_deepspeed(const ConfigToWrite& what);
/// MaxText's base.yml, or overrides of it.
ImportedTraining import_maxtext(const ConfigSource& source, const ConfigContext& context);
WrittenConfig write_maxtext(const ConfigToWrite& what);

} // namespace stagecraft
