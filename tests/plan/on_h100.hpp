// A shipped model's planning problem on eight H100.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "sim/plan/problem.hpp"
#include "sim/platform/load_platform.hpp"
#include "tests/platform/platforms.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft::test {

/// Costs are those of shapes alone.
struct OnH100 {
  ModelGraph model;
  Platform platform;
  CostModelResult cost;
  Training training;
  Router router;
  Problem problem;

  OnH100(const std::string& name, const Training& trained, int micro_batches)
      : model(load_model(source_dir() / "workloads" / (name + ".yaml"), {})),
        platform(load_platform(yaml::load(source_dir() / "platforms" / "dgx-h100.yaml"), shipped_types())),
        cost(make_roofline({model})), training(trained), router(platform),
        problem(make_problem(model, platform, *std::get<std::unique_ptr<CostModel>>(cost), training, router,
                             micro_batches)) {}
};

} // namespace stagecraft::test
