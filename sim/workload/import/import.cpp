// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/import/import.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "sim/base/format/json.hpp"
#include "sim/base/system/file.hpp"

namespace stagecraft {
namespace {

ModelGraph read_yaml(const std::string& bytes, const std::string& file, const ImportOptions& options) {
  return load_workload(yaml::parse(bytes, file), options);
}

ModelGraph read_pipedream(const std::string& bytes, const std::string& file, const ImportOptions&) {
  return import_pipedream(bytes, file);
}

ModelGraph read_onnx_bytes(const std::string& bytes, const std::string& file, const ImportOptions& options) {
  return import_onnx(bytes, file, options);
}

ModelGraph read_dnn_partitioning(const std::string& bytes, const std::string& file, const ImportOptions& options) {
  return import_dnn_partitioning(bytes, file, options);
}

constexpr std::array kModelFormats = {
    ModelFormat{.name = "yaml",
                .help = "stagecraft's own workload file",
                .suffix = ".yaml",
                .read = read_yaml,
                .has_sequence = true,
                .has_layers = true},
    ModelFormat{"onnx", "ONNX model, shapes inferred", ".onnx", read_onnx_bytes},
    ModelFormat{"pipedream", "profile graph of PipeDream, times on one device", ".txt", read_pipedream},
    ModelFormat{"dnn-partitioning",
                "problem of dnn-partitioning: nodes with times on two device types, and the devices",
                ".json",
                read_dnn_partitioning,
                {"maxFPGAs"},
                true},
    ModelFormat{"piper",
                "Piper's planning input: times and memory per tensor degree, and devices",
                ".json",
                import_piper,
                {"maxMemoryPerDevice"},
                true},
    ModelFormat{"hugging-face",
                "config.json of Hugging Face",
                ".json",
                import_hugging_face,
                {"model_type", "architectures"},
                false,
                true,
                true,
                true,
                hugging_face_workload},
};

} // namespace

std::span<const ModelFormat> model_formats() { return kModelFormats; }

namespace {

// Throws for options that files of the format do not have.
void refuse_unheeded(const ModelFormat& format, const std::string& file, const ImportOptions& options) {
  if (options.cost_scale && !format.has_edge_costs) {
    throw InputError({file, 0, 0}, "a cost scale is given, but files of the format '" + std::string(format.name) +
                                       "' have no costs of edges; allowed: no cost scale");
  }
  if (options.sequence && !format.has_sequence) {
    throw InputError({file, 0, 0}, "a length of sequences is given, but files of the format '" +
                                       std::string(format.name) + "' say it themselves; allowed: no length");
  }
  if (!options.lora && !options.lora_layers.empty()) {
    throw InputError({file, 0, 0},
                     "products are named that get adapters, but no rank of these; allowed: with --lora R");
  }
  if (options.lora && !format.has_layers) {
    throw InputError({file, 0, 0}, "adapters are asked for, but files of the format '" + std::string(format.name) +
                                       "' do not say which weights a layer has; allowed: no 'lora'");
  }
  if (options.mtp_layers && !format.has_mtp_layers) {
    throw InputError({file, 0, 0},
                     "a number of layers that predict further tokens is given, but files of the format '" +
                         std::string(format.name) + "' say it themselves; allowed: no 'mtp_layers'");
  }
  if (options.experts && !format.has_layers) {
    throw InputError(options.experts->where, "files of the format '" + std::string(format.name) +
                                                 "' do not say what experts do; allowed: no 'expert_capacity'");
  }
}

// The suffix by which formats are known.
std::string suffix_of(const std::filesystem::path& path) {
  return yaml::is_named_yaml(path) ? ".yaml" : path.extension().string();
}

} // namespace

ModelGraph import_model(const ModelFormat& format, const std::string& bytes, const std::string& file,
                        const ImportOptions& options) {
  refuse_unheeded(format, file, options);
  return format.read(bytes, file, options);
}

std::string import_workload(const ModelFormat& format, const std::string& bytes, const std::string& file,
                            const ImportOptions& options) {
  refuse_unheeded(format, file, options);
  if (format.workload == nullptr) {
    throw InputError({file, 0, 0}, "'" + std::string(format.name) + "' becomes no workload file; allowed: json");
  }
  return format.workload(bytes, file, options);
}

ModelGraph load_model(const std::filesystem::path& path, const ImportOptions& options) {
  const std::string suffix = suffix_of(path);
  const bool known = std::any_of(kModelFormats.begin(), kModelFormats.end(),
                                 [&](const ModelFormat& format) { return suffix == format.suffix; });
  return load_model(path, known ? read_file(path) : std::string(), options);
}

ModelGraph load_model(const std::filesystem::path& path, const std::string& bytes, const ImportOptions& options) {
  const std::string suffix = suffix_of(path);
  std::vector<std::string> suffixes;
  std::vector<std::string> keys;
  const std::string file = path.string();
  json::Value document;
  for (const ModelFormat& format : kModelFormats) {
    if (std::find(suffixes.begin(), suffixes.end(), format.suffix) == suffixes.end()) {
      suffixes.emplace_back(format.suffix);
    }
    if (suffix != format.suffix) {
      continue;
    }
    if (!format.keys.front().empty()) {
      document = document.is_null() ? json::parse({bytes, file}) : document;
      const std::string other(format.keys.back());
      keys.push_back("'" + std::string(format.keys.front()) + "'" + (other.empty() ? "" : " or '" + other + "'") +
                     " (" + std::string(format.name) + ")");
    }
    const auto is_there = [&](std::string_view key) {
      return !key.empty() && document.is_object() && document.contains(key);
    };
    if (format.keys.front().empty() || std::any_of(format.keys.begin(), format.keys.end(), is_there)) {
      return import_model(format, bytes, path.string(), options);
    }
  }
  if (!keys.empty()) {
    throw InputError({path.string(), 0, 0}, "unknown kind of JSON; models are known by a key: " + join(keys));
  }
  throw InputError({path.string(), 0, 0}, "unknown kind of model file; known suffixes: " + join(suffixes));
}

} // namespace stagecraft
