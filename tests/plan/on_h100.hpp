// A shipped model's planning problem on eight H100.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/platform/load_platform.hpp"
#include "tests/plan/roofline_problem.hpp"
#include "tests/platform/platforms.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft::test {

/// The model with this name.
struct OnH100 : RooflineProblem {
  OnH100(const std::string& name, const Training& trained, int micro_batches)
      : RooflineProblem(load_model(source_dir() / "workloads" / (name + ".yaml"), {}),
                        load_platform(yaml::load(source_dir() / "platforms" / "dgx-h100.yaml"), shipped_types()),
                        trained, micro_batches) {}
};

} // namespace stagecraft::test
