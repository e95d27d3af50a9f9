// An ONNX file as plain values: what the importer needs of it, free of protobuf.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/workload/import/import.hpp"
#include "sim/workload/layer/layers.hpp"

namespace stagecraft {

struct OnnxTensor {
  Shape shape;
  bool known = false; ///< every size is a number of 1 or more
  bool floating = false;
};

struct OnnxNode {
  std::string name;                         ///< unique; the first output's name where the file gives none
  std::string type;                         ///< "Conv"; with its domain, "com.example.Conv", outside the standard's
  std::vector<std::string> inputs, outputs; ///< "" stands for one left out
  std::map<std::string, std::vector<std::int64_t>> attributes; ///< those that are integers
};

struct OnnxModel {
  std::string description;
  std::vector<OnnxNode> nodes;
  std::vector<std::string> inputs; ///< fed with data; initializers are not among them
  std::set<std::string> initializers;
  std::map<std::string, OnnxTensor> tensors;
};

/// Parses the file, binds symbolic dimensions and infers shapes; those stored in the file win. A first dimension
/// of an input that has no size is 1: amounts per sample do not depend on it.
OnnxModel read_onnx(std::string_view bytes, const std::string& file, const ImportOptions& options);

} // namespace stagecraft
