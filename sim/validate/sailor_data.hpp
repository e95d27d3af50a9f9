// Plans that Sailor measured, with the profiles of their layers and the networks (Strati et al., SOSP 2025).
// docs/formats/sailor.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/base/units.hpp"

namespace stagecraft {

/// Devices of one node that compute every layer together, each a part of it.
struct SailorGroup {
  std::string gpu;
  int devices = 1;
};

struct SailorStage {
  int first = 0, last = 0;           ///< layers, the last included
  std::vector<SailorGroup> replicas; ///< of the stage, which share the samples
};

/// A plan with what was measured of it.
struct SailorPlan {
  std::string case_name; ///< its file, below `validation`
  std::string cluster;   ///< the first folder of that
  std::string model;
  Where where;
  std::vector<SailorStage> stages;
  int micro_batch = 1;  ///< samples of a replica at a time
  int global_batch = 1; ///< samples
  Seconds iteration;
  Bytes peak_memory; ///< the most that any device held
};

/// Measured times of a layer for a micro-batch, on a group.
struct SailorTimes {
  Seconds forward, backward;
  Seconds update; ///< of the stage that it stands in
};

/// What a layer has on each device of a group.
struct SailorAmounts {
  double parameters = 0;
  double kept = 0;   ///< elements for backward, per sample
  double output = 0; ///< elements per sample, of the whole tensor
};

/// A network by message size: of b bytes, a y^2 + b y + c GB/s with y = log2(b / 1e6), and no more than `most`.
struct SailorNetwork {
  double square = 0, linear = 0, constant = 0;
  BytesPerSecond most;
  Where where;

  /// The time of a message. InputError where the fit says that nothing gets through.
  Seconds time(Bytes message) const;
};

/// The files of a folder, each read when it is first asked for. All getters throw InputError with the place of what is
/// missing or malformed.
class SailorData {
public:
  explicit SailorData(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::vector<SailorPlan> plans() const;
  /// [layer]
  std::vector<SailorTimes> times(const SailorPlan& plan, const SailorGroup& group);
  std::vector<SailorAmounts> amounts(const SailorPlan& plan, int devices);
  /// Between nodes, of all of a group's devices together; within a node.
  SailorNetwork between_nodes(const SailorGroup& group);
  SailorNetwork within_node(const SailorGroup& group);

private:
  const yaml::Node& file(const std::filesystem::path& name);

  std::filesystem::path folder_;
  std::map<std::string, yaml::Node> files_;
};

} // namespace stagecraft
