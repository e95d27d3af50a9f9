// Reading a model from any known format. A format is one file, one row in kModelFormats and one CMake line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/yaml.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// What a format may need beside the file.
struct ImportOptions {
  std::map<std::string, int> dimensions; ///< symbolic dimension -> size (ONNX)
  std::optional<double> cost_scale;      ///< multiplies the costs of edges, where the format has such
};

/// Our own YAML: docs/formats/workload.md.
ModelGraph load_workload(const yaml::Node& document);

/// PipeDream's profile, docs/formats/pipedream.md: input placeholders and `__getitem__` sinks are dropped.
ModelGraph import_pipedream(std::string_view text, const std::string& file);

/// Piper's planning inputs: docs/formats/piper.md.
ModelGraph import_piper(const std::string& bytes, const std::string& file, const ImportOptions& options);

/// ONNX with inferred shapes, docs/formats/onnx.md. Every operator is costed from its shapes or refused by name.
ModelGraph import_onnx(std::string_view bytes, const std::string& file, const ImportOptions& options);

/// A problem of dnn-partitioning, docs/formats/dnn-partitioning.md: operators are the groups of nodes that must stay
/// together. Brings devices, tensors, memory, and times on two device types, `fpga` and `cpu`.
ModelGraph import_dnn_partitioning(std::string_view text, const std::string& file, const ImportOptions& options);

struct ModelFormat {
  std::string_view name, help;
  std::string_view suffix; ///< of the file's name
  ModelGraph (*read)(const std::string& bytes, const std::string& file, const ImportOptions& options);
  std::string_view key = {};   ///< JSON only: a key of the whole that tells this format from the others
  bool has_edge_costs = false; ///< heeds ImportOptions::cost_scale; others refuse it
};
std::span<const ModelFormat> model_formats();

/// Reads bytes by one format. Throws InputError, also for options that the format does not have.
ModelGraph import_model(const ModelFormat& format, const std::string& bytes, const std::string& file,
                        const ImportOptions& options);

/// Reads a file by the format its suffix names, or, for JSON, its keys. Throws InputError, also where no format fits
/// (naming the known ones).
ModelGraph load_model(const std::filesystem::path& path, const ImportOptions& options = {});

} // namespace stagecraft
