// A planning problem with all that it refers to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <variant>

#include "sim/plan/problem.hpp"

namespace stagecraft::test {

/// Costs are those of shapes alone. Its parts refer to one another, so it stays where it was made.
struct RooflineProblem {
  ModelGraph model;
  Platform platform;
  CostModelResult cost;
  Training training;
  Router router;
  Problem problem;

  RooflineProblem(ModelGraph of, Platform on, Training trained, int micro_batches)
      : model(std::move(of)), platform(std::move(on)), cost(make_roofline({model})), training(std::move(trained)),
        router(platform), problem(make_problem(model, platform, *std::get<std::unique_ptr<CostModel>>(cost), training,
                                               router, micro_batches)) {}
  RooflineProblem(const RooflineProblem&) = delete;
  RooflineProblem& operator=(const RooflineProblem&) = delete;
};

} // namespace stagecraft::test
