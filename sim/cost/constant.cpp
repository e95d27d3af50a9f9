// A cost model for trying things out: costs that anyone can add up in their head.
// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/cost_model.hpp"

namespace stagecraft {
namespace {

class Constant : public CostModel {
public:
  std::optional<OperatorTime> time(OperatorId /*op*/, const DeviceType& /*type*/, double /*samples*/,
                                   Precision /*precision*/) const override {
    return OperatorTime{Seconds{1}, Seconds{1}, Seconds{1}};
  }

  // The same time for any size.
  std::optional<LeastTime> least_time(OperatorId op, const DeviceType& type, Precision precision,
                                      const AnyPart& part) const override {
    return least_of_whole(*this, op, type, precision, part);
  }

  bool alike(OperatorId /*a*/, OperatorId /*b*/) const override { return true; }
};

} // namespace

CostModelResult make_constant(const CostModelRequest& /*request*/) { return std::make_unique<Constant>(); }

} // namespace stagecraft
