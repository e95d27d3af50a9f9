// Which copies and collectives are measured: names that measurements and fits share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace stagecraft {

/// A word that a file may say, as a row of a table of names.
struct WordRow {
  std::string_view name;
};

/// Where a copy begins and ends.
inline constexpr std::array kCopyEnds = {WordRow{"host"}, WordRow{"device"}, WordRow{"peer"}};
/// The host's memory that it reads or writes; "" where no host takes part.
inline constexpr std::array kCopyMemories = {WordRow{""}, WordRow{"pinned"}, WordRow{"pageable"}};

/// Collectives; sim/collective knows some of them.
inline constexpr std::array kCollectiveOps = {WordRow{"all-reduce"}, WordRow{"all-gather"}, WordRow{"reduce-scatter"},
                                              WordRow{"all-to-all"}, WordRow{"broadcast"},  WordRow{"send"}};

/// Kernels that send tokens to the ranks of their experts and back.
inline constexpr std::array kDispatchOps = {WordRow{"dispatch"}, WordRow{"combine"}};
inline constexpr std::array kDispatchKernels = {WordRow{"deepep"}, WordRow{"hybridep"}};

} // namespace stagecraft
