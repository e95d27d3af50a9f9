// An ONNX file as plain values: what the importer needs, free of protobuf.
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
  std::string type;                         ///< "Conv"; outside the standard domain "com.example.Conv"
  std::vector<std::string> inputs, outputs; ///< names of tensors; "" for an optional one left out
  std::map<std::string, std::vector<std::int64_t>> attributes; ///< attributes with integer values
};

struct OnnxModel {
  std::string description;
  std::vector<OnnxNode> nodes;
  std::vector<std::string> inputs; ///< inputs fed with data, without initializers
  std::set<std::string> initializers;
  std::map<std::string, OnnxTensor> tensors;
};

/// Parses the file, gives symbolic dimensions their sizes and infers shapes; shapes stored in the file win. The first
/// dimension of an input gets 1 where it has no size: amounts per sample do not depend on it.
OnnxModel read_onnx(std::string_view bytes, const std::string& file, const ImportOptions& options);

} // namespace stagecraft
