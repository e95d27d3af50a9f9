// What the workload tests share: models from text, and looking up operators.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>

#include "sim/workload/import/import.hpp"
#include "tests/catch.hpp"
#include "tests/error_of.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft::test {

inline std::filesystem::path shared_data() { return source_dir() / "../shared/data"; }

/// Whether the shared test data exist; if not, a line says so.
inline bool has_shared_data() {
  const bool present = std::filesystem::exists(shared_data());
  if (!present) {
    WARN("skipped: " << shared_data().string() << " is absent");
  }
  return present;
}

inline ModelGraph workload(const std::string& text) { return load_workload(yaml::parse(text, "w.yaml")); }

inline const Operator& find_operator(const ModelGraph& model, const std::string& name) {
  const auto found =
      std::find_if(model.operators.begin(), model.operators.end(), [&](const Operator& op) { return op.name == name; });
  REQUIRE(found != model.operators.end());
  return *found;
}

/// Multiply-adds of forward, in the kernels that publications count: products, convolutions, recurrent layers.
inline double multiply_adds(const ModelGraph& model) {
  double flops = 0;
  for (const Operator& op : model.operators) {
    flops += multiplies(op.kind) ? op.forward.flops.value : 0;
  }
  return flops / 2;
}

} // namespace stagecraft::test
