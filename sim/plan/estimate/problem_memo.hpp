// What planners work out of a problem alone, whatever the schedule, kept for their next question about it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "sim/plan/estimate/plan_request.hpp"

namespace stagecraft {

/// Things made from one problem, its devices and the cap on states, one of each type. Of no use for another problem.
class ProblemMemo {
public:
  ProblemMemo() = default;
  /// The problem must outlive it.
  explicit ProblemMemo(const Problem& problem) : problem_(&problem) {}

  bool is_of(const Problem& problem) const { return problem_ == &problem; }

  /// The T made earlier from the request's problem, devices and state_cap; else that which make() makes from them.
  template <class T, class Make> std::shared_ptr<T> find_or_make(const PlanRequest& request, const Make& make) {
    const auto known = std::find_if(made_.begin(), made_.end(), [&](const Made& one) {
      return one.type == typeid(T) && one.state_cap == request.state_cap && one.devices == request.devices;
    });
    if (known != made_.end()) {
      return std::static_pointer_cast<T>(known->value);
    }
    auto value = std::make_shared<T>(make());
    made_.push_back({typeid(T), request.state_cap, request.devices, value});
    return value;
  }

private:
  struct Made {
    std::type_index type;
    int state_cap;
    std::vector<DeviceId> devices;
    std::shared_ptr<void> value;
  };

  const Problem* problem_ = nullptr;
  std::vector<Made> made_;
};

/// A T of the request's problem, devices and state_cap, which are all that make() may read of the request: the one that
/// the request has kept, or a new one.
template <class T, class Make> std::shared_ptr<T> kept_for(const PlanRequest& request, const Make& make) {
  return request.memo != nullptr && request.memo->is_of(request.problem) ? request.memo->find_or_make<T>(request, make)
                                                                         : std::make_shared<T>(make());
}

} // namespace stagecraft
