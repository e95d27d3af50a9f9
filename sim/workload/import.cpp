// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/import.hpp"

#include <array>

#include "sim/base/file.hpp"

namespace stagecraft {
namespace {

ModelGraph read_yaml(const std::string& bytes, const std::string& file, const ImportOptions&) {
  return load_workload(yaml::parse(bytes, file));
}

ModelGraph read_pipedream(const std::string& bytes, const std::string& file, const ImportOptions&) {
  return import_pipedream(bytes, file);
}

ModelGraph read_onnx_bytes(const std::string& bytes, const std::string& file, const ImportOptions& options) {
  return import_onnx(bytes, file, options);
}

constexpr std::array kModelFormats = {
    ModelFormat{"yaml", "stagecraft's own workload file", ".yaml", read_yaml},
    ModelFormat{"onnx", "ONNX model, shapes inferred", ".onnx", read_onnx_bytes},
    ModelFormat{"pipedream", "profile graph of PipeDream, times on one device", ".txt", read_pipedream},
};

} // namespace

std::span<const ModelFormat> model_formats() { return kModelFormats; }

ModelGraph load_model(const std::filesystem::path& path, const ImportOptions& options) {
  std::vector<std::string> suffixes;
  for (const ModelFormat& format : kModelFormats) {
    if (path.extension() == format.suffix) {
      return format.read(read_file(path), path.string(), options);
    }
    suffixes.emplace_back(format.suffix);
  }
  throw InputError({path.string(), 0, 0}, "unknown kind of model file; known suffixes: " + join(suffixes));
}

} // namespace stagecraft
