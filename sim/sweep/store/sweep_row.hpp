// One point of a sweep as its results keep it, and many of them as bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/system/digest.hpp"
#include "sim/sweep/space/sweep_figures.hpp"

namespace stagecraft {

/// What became of a point.
enum class PointStatus : std::uint8_t { feasible = 0, infeasible = 1, failed = 2 };
inline constexpr std::size_t kStatuses = 3;
inline constexpr std::array<PointStatus, kStatuses> kAllStatuses = {PointStatus::feasible, PointStatus::infeasible,
                                                                    PointStatus::failed};
std::string_view name_of(PointStatus status);

/// The part of all points that this process does: those whose key modulo `count` is `index` - 1.
struct SweepShard {
  int index = 1, count = 1;

  bool has(const Digest& key) const;
};

/// Columns of numbers of a point.
struct PointNumbers {
  Digest key;               ///< of everything that the result depends on
  std::uint64_t number = 0; ///< of its combination in its sweep
  std::uint32_t run = 0;    ///< among the runs of the combination
  int micro_batches = 0;
  PointStatus status = PointStatus::feasible;
  Figures figures{}; ///< where feasible
};

/// One point, one row. It owns its texts, or views those of another object.
template <class Text> struct BasicPointRow : PointNumbers {
  Text settings; ///< of the axes, a JSON object of texts
  Text strategy, schedule, recompute, engine;
  Text order;  ///< the order that ran: the schedule's name, or list
  Text reason; ///< why it is infeasible or failed
};
using PointRow = BasicPointRow<std::string>;
using PointView = BasicPointRow<std::string_view>;

/// Points as bytes, to be sent through pipes and stored without copying each text.
class PackedPoints {
public:
  PackedPoints() = default;
  /// From bytes() and size() of another object.
  PackedPoints(std::string bytes, std::size_t size) : bytes_(std::move(bytes)), size_(size) {}

  void add(const PointRow& row);
  std::size_t size() const { return size_; }
  const std::string& bytes() const { return bytes_; }
  /// Adds each point's bytes to a list; this object keeps owning them. Throws std::logic_error when bytes are missing.
  void list(std::vector<std::string_view>& points) const;

private:
  std::string bytes_;
  std::size_t size_ = 0;
};

/// A point of such a list, and only its key.
PointView view_of(std::string_view point);
Digest key_of(std::string_view point);

} // namespace stagecraft
