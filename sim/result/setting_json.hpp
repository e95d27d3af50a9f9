// What a result rests on, for those who only have the result: training, model, devices and the links between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "sim/platform/platform.hpp"
#include "sim/workload/model_graph.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

/// What runs were asked with. It refers to values that outlive it.
struct RunSetting {
  const ModelGraph& model;
  const Training& training;
  const Platform& platform;
  std::string_view engine;
  std::string_view program; ///< the version that made the result
};

/// The key `setting` of a result, as JSON (docs/formats/results.md).
std::string setting_json(const RunSetting& setting);

} // namespace stagecraft
