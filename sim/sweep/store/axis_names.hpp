// Names of axes for readers, from the platform that a sweep read: "A100 servers" for platform.nodes.0.count.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/sweep/store/sweep_store.hpp"

namespace stagecraft {

/// The name of an axis by the platforms among the kept files; "" where they do not tell, or differ.
class AxisNames {
public:
  explicit AxisNames(SweepStore& store);

  std::string name_of(const std::vector<std::string>& keys) const;

private:
  std::vector<yaml::Node> platforms_;
};

} // namespace stagecraft
