// Configurations of frameworks: what their own files say of a training, and ours written for them. A format is one
// file, one row in config_formats.cpp and one line of CMake. docs/formats/framework-configs.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "sim/workload/config/common/config_source.hpp"
#include "sim/workload/config/common/plan_in_config.hpp"

namespace stagecraft {

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
