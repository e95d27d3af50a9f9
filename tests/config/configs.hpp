// What the tests of configurations share: GPT-2 with its twelve layers on so many devices, and values by dotted keys.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "sim/base/system/file.hpp"
#include "sim/workload/config/config_format.hpp"
#include "sim/workload/import/import.hpp"
#include "tests/catch.hpp"
#include "tests/error_of.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft::test {

inline const std::filesystem::path kConfigs = source_dir() / "tests/config";

/// Twelve layers, sequences of 1024.
inline const ModelGraph& gpt2() {
  static const ModelGraph kModel = load_model(source_dir() / "workloads/gpt2.yaml");
  return kModel;
}

inline ConfigContext on_devices(int devices) { return {gpt2(), devices}; }

inline ImportedTraining read_text(const std::string& text, const std::string& file, int devices = 8) {
  return read_config({text, file}, "", on_devices(devices));
}

inline std::string refusal(const std::string& text, const std::string& file, int devices = 8) {
  return error_of([&] { read_text(text, file, devices); });
}

/// The value of a dotted key of what was read; "" where it says nothing.
inline std::string value(const ImportedTraining& read, const std::string& key) {
  const yaml::Node* node = &read.training;
  for (std::size_t begin = 0; node != nullptr && begin <= key.size();) {
    const std::size_t end = std::min(key.find('.', begin), key.size());
    node = node->find(key.substr(begin, end - begin));
    begin = end + 1;
  }
  return node != nullptr && node->kind == yaml::Node::Kind::scalar ? node->text
         : node != nullptr                                         ? yaml::flow_text(*node)
                                                                   : "";
}

} // namespace stagecraft::test
