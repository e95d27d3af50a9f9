// How the ranks of a stage form a grid, one dimension for each kind of parallelism.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace stagecraft {

/// What a dimension of a layout splits. Ranks along `context` and `heads` share tokens; in attention those along
/// `heads` share heads. Ranks along `experts` are those of a mixture, whatever they share elsewhere.
enum class Axis { data, context, heads, tensor, experts };

inline constexpr std::array<std::string_view, 5> kAxisNames = {"data", "context", "context", "tensor", "expert"};
constexpr std::string_view name_of(Axis axis) { return kAxisNames[static_cast<std::size_t>(axis)]; }

/// A grid of ranks, numbered from 0: a rank is the sum of its coordinates times their strides. A Group names ranks by
/// their coordinates, never by a list of devices.
struct Layout {
  struct Dimension {
    Axis axis = Axis::data;
    int size = 1;
    int stride = 1;
    bool operator==(const Dimension&) const = default;
  };
  std::vector<Dimension> dimensions; ///< outermost first

  int ranks() const;
  int coordinate(int rank, std::size_t dimension) const;
  bool operator==(const Layout&) const = default;
};

/// Sizes of axes, outermost first; neighbours in the last axis have neighbouring ranks.
struct AxisSize {
  Axis axis = Axis::data;
  int size = 1;
};
Layout make_layout(const std::vector<AxisSize>& axes);

/// The ranks that differ from `rank` in nothing but their coordinate of this dimension, in the order of that
/// coordinate.
std::vector<int> peers_of(const Layout& layout, std::size_t dimension, int rank);

} // namespace stagecraft
