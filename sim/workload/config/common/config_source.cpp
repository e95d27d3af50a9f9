// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/config/common/config_source.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>

#include "sim/base/format/json.hpp"
#include "sim/base/format/toml.hpp"

namespace stagecraft {

bool ConfigSource::is_document() const {
  const std::string name = ending();
  return name == ".json" || name == ".yaml" || name == ".yml" || name == ".toml";
}

std::string ConfigSource::ending() const { return std::filesystem::path(file).extension().string(); }

const yaml::Node& ConfigSource::document() const {
  if (!document_) {
    if (ending() == ".json") {
      json::parse(json::Source(text, file)); // YAML would pass over a comma too many, which no framework does
    }
    document_ = ending() == ".toml" ? parse_toml(text, file) : yaml::parse(text, file);
  }
  return *document_;
}

} // namespace stagecraft
