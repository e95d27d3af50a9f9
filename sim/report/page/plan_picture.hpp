// A plan on its cluster: which node and device holds what, and how full the links between them are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/page/tracks.hpp"

namespace stagecraft {

/// A device of the picture, which may stand for those at the same place of alike nodes.
struct PlanTile {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  std::string device;       ///< its name, as timelines have it
  std::vector<int> stages;  ///< that it holds, ascending; empty: it is not used
  std::string rank;         ///< "copy 2, part 1 of 2"; "": the stage is on it alone
  double memory = kUnknown; ///< of its memory: the part in use at the peak
  double busy = kUnknown;   ///< of the step: the part in which it computes
};

/// Links of one kind, both directions together.
struct PlanLinks {
  std::string name;                   ///< "device – host"
  double bandwidth = 0;               ///< B/s
  double in_use = PlanTile::kUnknown; ///< of the step: the part in which the busiest of them carries data
  std::string carries;                ///< "activations and gradients between stages, exchange"
  std::vector<std::string> links;     ///< their names, as timelines have them
};

struct PlanNode {
  std::string name, devices; ///< "v100", "4 v100-sxm2-16gb"
  std::size_t alike = 1;     ///< nodes that it stands for
  std::vector<PlanTile> tiles;
  std::vector<PlanLinks> links;
};

struct PagePlan {
  std::string title;
  std::vector<PlanNode> nodes;
  std::vector<PlanLinks> network; ///< between nodes
  std::vector<std::string> notes; ///< groups of ranks, and what goes from node to node
};

/// The picture of a run; nothing where the document does not say what its cluster is. `tracks`: the run's timeline, or
/// null.
std::optional<PagePlan> plan_picture(const nlohmann::json& document, const nlohmann::json& run, const Tracks* tracks);

} // namespace stagecraft
