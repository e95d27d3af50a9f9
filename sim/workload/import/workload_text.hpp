// Writing a workload file layer by layer, for importers whose formats give sizes of a model and no layers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

namespace stagecraft {

/// The text of a workload file (docs/formats/workload.md), line by line.
class WorkloadText {
public:
  void line(const std::string& text) { text_ += text + "\n"; }
  void layer(const std::string& name, const std::string& kind, const std::string& attributes = "") {
    line("      - {name: " + name + ", kind: " + kind + (attributes.empty() ? "" : ", " + attributes) + "}");
  }
  /// An activation of this kind, named after it; both kinds of GELU have one name.
  void activation(const std::string& kind, const std::string& front = "") {
    layer(front + (kind.starts_with("gelu") ? "gelu" : kind), kind);
  }
  void linear(const std::string& name, int features, bool bias, const std::string& more = "") {
    layer(name, "linear",
          "features: " + std::to_string(features) + ", bias: " + (bias ? "true" : "false") +
              (more.empty() ? "" : ", " + more));
  }
  /// Dropout, if there is any, after the layer that ends a branch, and the sum with the branch's beginning.
  void add(const std::string& number, const std::string& from, const std::string& last, bool drops) {
    if (drops) {
      layer("drop" + number, "dropout");
    }
    layer("add" + number, "add", "inputs: [" + from + ", " + (drops ? "drop" + number : last) + "]");
  }
  std::string take() { return std::move(text_); }

private:
  std::string text_;
};

} // namespace stagecraft
