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

/// A latent attention "x" of 4 tokens and 2 heads, behind the products that it reads: d = 3, r = 2 and e = 5, so that
/// queries have 2 * 5 features, keys and values 2 * 8, rotary keys 2.
inline ModelGraph latent_attention_model() {
  return workload("name: t\ninput: {shape: [4, 6]}\nlayers:\n"
                  "  - {name: q, kind: linear, features: 10}\n"
                  "  - {name: kv, kind: linear, inputs: [input], features: 16}\n"
                  "  - {name: r, kind: linear, inputs: [input], features: 2}\n"
                  "  - {name: x, kind: latent_attention, inputs: [q, kv, r], heads: 2, causal: true}\n");
}

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
