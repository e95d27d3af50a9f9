// Expert parallelism: ranks that share the experts of mixtures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "sim/base/format/yaml.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// Ranks of a stage, neighbours across tensor ranks, context ranks and replicas, that have the experts of each mixture
/// in equal parts: tokens go to the rank of their expert and back. Others have the same experts (expert-data ranks).
struct Experts {
  int ranks = 1;
  int tensor = 1; ///< ranks of a tensor group that share each expert: 1, or all of them
  bool operator==(const Experts&) const = default;
};

/// Of experts' popularity: the i-th is chosen in proportion to i^-skew.
inline constexpr yaml::Range kExpertSkew{0, 10, true, "0 to 10"};

struct ExpertChoiceRow {
  std::string_view name, help;
  ExpertChoice choice;
};
inline constexpr std::array kExpertChoices = {
    ExpertChoiceRow{"drawn", "each token draws them, as popular as they are", ExpertChoice::drawn},
    ExpertChoiceRow{"round-robin", "token after token takes the next ones, which are neighbours, as in benchmarks",
                    ExpertChoice::round_robin},
};

/// The row of a choice.
constexpr const ExpertChoiceRow& row_of(ExpertChoice choice) {
  return kExpertChoices[static_cast<std::size_t>(choice)];
}

/// Groups in which a router's experts may stand.
inline constexpr int kMostExpertGroups = 8;

/// Reads the degree from key `degree`, and that of each expert's tensor group from key `tensor`.
Experts read_experts(yaml::Map& map, const char* degree, const char* tensor);

} // namespace stagecraft
