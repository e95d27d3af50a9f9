// What an algorithm sends: coupled flows over many links at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/collective/protocol.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "sim/platform/route.hpp"

namespace stagecraft {

/// How long the first bytes of a buffer wait at hops that hand on whole steps: for a step at each, or for all bytes
/// where these are fewer.
struct Waiting {
  Seconds steps;
  double seconds_per_byte = 0;

  Seconds time(Bytes buffer) const { return std::min(steps, Seconds{buffer.value * seconds_per_byte}); }
};

/// What a lone flow takes other than its links say, as was measured or as a library's protocols have it, at what
/// bandwidth of the flow.
struct MeasuredFlow {
  std::shared_ptr<const KernelFits> fits; ///< of which `times` are a part
  CollectiveTimes times;
  BytesPerSecond bandwidth;
  /// In place of `times`: of a dispatch or a combine one, of NCCL one for each protocol that can carry the flow, of
  /// which it takes the one of least time.
  std::vector<LineSegment> lines{};
  /// Of each line, what the first bytes wait beside it, which a library does not count when it chooses; none: nothing.
  std::vector<Waiting> waiting{};

  Seconds time(Bytes buffer) const;
};

/// All hops of a ring or tree advance together, since each sends on what the one before it brings: one flow over all of
/// their links, at the rate of the slowest, after the latencies of the longest chain of hops. A link that several hops
/// cross stands in the leg as many times, and is filled as many times as fast.
struct CoupledFlow {
  Leg leg; ///< links in the order of their numbers; `bandwidth` is that of the flow where nobody else uses them
  double share = 0; ///< bytes of the flow for each byte of a rank's buffer
  std::optional<MeasuredFlow> measured;
  bool beside = false; ///< begins with the flow before it, over other links
  int processors = 0;  ///< multiprocessors that its kernel takes on each rank; 0: not known

  /// What a buffer of each rank makes the flow: bytes that share links with others, after a latency that does not.
  /// Where it is `measured`, the latency is what the bytes leave of the measured time. The bytes are whole, and as
  /// few as to leave at least the time of an empty buffer.
  Bytes sent(Bytes buffer) const;
  Seconds latency(Bytes buffer) const;
  Seconds time(Bytes buffer) const { return latency(buffer) + sent(buffer) / leg.bandwidth; }
};

/// The flows of a collective, one after another but for those beside others; none where nothing is exchanged.
using Flows = std::vector<CoupledFlow>;

/// The closed form: how long the flows take where nobody else uses their links.
Seconds seconds_of(const Flows& flows, Bytes buffer);

/// The part of it that is latency: of flows beside each other, that of the one that ends last.
Seconds latency_of(const Flows& flows, Bytes buffer);

/// The bandwidth of a leg's narrowest link, if nothing crosses it twice.
BytesPerSecond narrowest_link(const Platform& platform, const Leg& leg);

/// Whether all hops carry bytes from the start on, each those of another rank in its turn, or each hop hands on what
/// the one before it brings.
enum class Handed { in_turn, on };

/// Collects the links of hops that are coupled.
class FlowBuilder {
public:
  /// A flow of no library's.
  explicit FlowBuilder(Router& router) : router_(router) {}
  /// One that NCCL carries as this algorithm where the links of all hops say so (Link::nccl).
  FlowBuilder(Router& router, const NcclAlgorithm& algorithm, const NcclGroup& group)
      : router_(router), algorithm_(&algorithm), group_(group) {}

  /// A hop that carries the flow's bytes; returns its latency. Several legs, as through host memory, are passed through
  /// piece by piece.
  HopLatency hop(DeviceId from, DeviceId to);
  /// `all_channels`: bytes for each byte of a buffer that all of the flow's channels carry together.
  CoupledFlow finish(double share, const HopLatency& latency, double all_channels, Handed handed = Handed::in_turn);

private:
  /// Without lines where no protocol of NCCL carries all hops.
  MeasuredFlow by_protocol(const CoupledFlow& flow, const HopLatency& latency, double all_channels,
                           Handed handed) const;

  Router& router_;
  const NcclAlgorithm* algorithm_ = nullptr;
  NcclGroup group_;
  BytesPerSecond most_by_ll_{kInfinity};
  std::vector<LinkId> links_;
};

} // namespace stagecraft
