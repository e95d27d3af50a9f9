// Reading a model from any known format. A format is one file, one row in kModelFormats and one CMake line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/format/yaml.hpp"
#include "sim/workload/expert_capacity.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// The largest rank of an adapter that may be asked for.
inline constexpr int kMostLora = 1 << 16;
/// The longest sequence that may be asked for, in tokens.
inline constexpr int kMostSequence = 1 << 24;

/// The most layers that predict further tokens that a model may have.
inline constexpr int kMostMtpLayers = 8;

/// Options of formats that need more than the file.
struct ImportOptions {
  std::map<std::string, int> dimensions; ///< symbolic dimension -> size (ONNX)
  std::optional<double> cost_scale;      ///< multiplies the costs of edges, in formats that have them
  std::optional<int> sequence;           ///< tokens of a sample, in formats that leave it open
  /// Rank of an adapter of low rank (Hu et al. 2021) beside each product in a numbered block, all other weights frozen;
  /// in formats that give layers.
  std::optional<int> lora;
  /// The products that get one, by their names in a block; empty: all.
  std::vector<std::string> lora_layers;
  Where lora_where; ///< where these names stand, for errors
  /// Layers that predict further tokens, at most those that the file has; nothing: all of them.
  std::optional<int> mtp_layers;
  /// Of every mixture, in place of what the file says; in formats that give layers.
  std::optional<ExpertCapacity> experts;
};

/// Our own YAML: docs/formats/workload.md.
ModelGraph load_workload(const yaml::Node& document, const ImportOptions& options = {});

/// PipeDream's profile, docs/formats/pipedream.md. Input placeholders and `__getitem__` sinks are dropped.
ModelGraph import_pipedream(std::string_view text, const std::string& file);

/// Piper's planning inputs: docs/formats/piper.md.
ModelGraph import_piper(const std::string& bytes, const std::string& file, const ImportOptions& options);

/// Hugging Face's config.json: docs/formats/hugging-face.md. An architecture that
/// is not modelled is an InputError that says what is missing.
ModelGraph import_hugging_face(const std::string& bytes, const std::string& file, const ImportOptions& options);
/// The same as a workload file, which reads as the same model. InputError for adapters, which such a file does not
/// have.
std::string hugging_face_workload(const std::string& bytes, const std::string& file, const ImportOptions& options);

/// ONNX with inferred shapes, docs/formats/onnx.md. An operator whose cost does not follow from its shapes is an
/// InputError.
ModelGraph import_onnx(std::string_view bytes, const std::string& file, const ImportOptions& options);

/// A problem of dnn-partitioning, docs/formats/dnn-partitioning.md. Operators are the groups of nodes that must stay
/// together. The model brings devices, tensors, memory, and times on two device types, `fpga` and `cpu`.
ModelGraph import_dnn_partitioning(std::string_view text, const std::string& file, const ImportOptions& options);

struct ModelFormat {
  std::string_view name, help;
  std::string_view suffix; ///< suffix of the file's name
  ModelGraph (*read)(const std::string& bytes, const std::string& file, const ImportOptions& options);
  std::array<std::string_view, 2> keys = {}; ///< JSON only: top-level keys, any of which only this format has
  bool has_edge_costs = false;               ///< uses ImportOptions::cost_scale; other formats refuse it
  bool has_sequence = false;                 ///< uses ImportOptions::sequence; other formats refuse it
  bool has_layers = false;                   ///< uses ImportOptions::lora and experts; other formats refuse them
  bool has_mtp_layers = false;               ///< uses ImportOptions::mtp_layers; other formats refuse it
  /// The file as one of ours; null: nothing writes it.
  std::string (*workload)(const std::string& bytes, const std::string& file, const ImportOptions& options) = nullptr;
};
std::span<const ModelFormat> model_formats();

/// Reads bytes in the given format. Throws InputError, also for options that the format does not have.
ModelGraph import_model(const ModelFormat& format, const std::string& bytes, const std::string& file,
                        const ImportOptions& options);

/// The same as a workload file of ours. Throws InputError, also for a format that becomes none.
std::string import_workload(const ModelFormat& format, const std::string& bytes, const std::string& file,
                            const ImportOptions& options);

/// Reads a file in the format that its suffix names or, for JSON, its keys. Throws InputError; where no format fits, it
/// names the known ones.
ModelGraph load_model(const std::filesystem::path& path, const ImportOptions& options = {});
/// The same where the file's bytes are read already.
ModelGraph load_model(const std::filesystem::path& path, const std::string& bytes, const ImportOptions& options);

} // namespace stagecraft
