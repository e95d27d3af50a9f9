// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/protocol.hpp"

#include <algorithm>
#include <cmath>

namespace stagecraft {
namespace {

constexpr double kNone = kInfinity; // not in this protocol

constexpr std::size_t index_of(NcclLink::Wire wire) { return static_cast<std::size_t>(wire) - 1; }

// Between nodes even a hop inside one takes as long as posting what goes out, three times in Simple.
constexpr std::array<double, kProtocols> kPosting = {1, 1, 3};

bool has(const DeviceType& type, Precision precision) {
  return type.peak[static_cast<std::size_t>(precision)] || type.rate(KernelKind::matmul, precision);
}

} // namespace

// NCCL lets LL have half of the bandwidth, and LL128 0.92 of it for 120/128; a tree in Simple has 0.92 of a ring's, in
// LL 1/3.8 and in LL128 120/128 of that, 7/9 inside a node.
constexpr NcclAlgorithm kNcclRing = {
    {6.6, 14.0, 8.4}, {{{0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14.0}}}, {0.5, 0.92, 1}, true};
constexpr NcclAlgorithm kNcclRingBetween = {kNcclRing.start, kNcclRing.hop, kNcclRing.bandwidth, true, 1.4};
constexpr NcclAlgorithm kNcclTree = {
    {6.8, 14.0, 8.4}, {{{0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14.0}}}, {0.92 / 3.8, 0.92 * 120 / 128, 0.92}};
constexpr NcclAlgorithm kNcclTreeInNode = {kNcclTree.start, kNcclTree.hop, {0.92 / 3.8, 0.92 * 7 / 9, 0.92}};
constexpr NcclAlgorithm kNcclNvls = {
    {0, 0, 0}, {{{kNone, kNone, 12.5}, {kNone, kNone, kNone}, {kNone, kNone, kNone}}}, {1, 1, 1}};
constexpr NcclAlgorithm kNcclSends = {
    {6.6, kNone, 8.4}, {{{0.6, kNone, 3.4}, {1.0, kNone, 5.7}, {kNone, kNone, kNone}}}, {0.5, 1, 1}};

HopLatency& HopLatency::operator+=(const HopLatency& other) {
  stated += other.stated;
  for (std::size_t p = 0; p < kProtocols; ++p) {
    nccl[p] += other.nccl[p];
    whole_steps[p] += other.whole_steps[p];
  }
  return *this;
}

HopLatency operator*(double factor, HopLatency a) {
  a.stated = factor * a.stated;
  for (std::size_t p = 0; p < kProtocols; ++p) {
    a.nccl[p] = factor * a.nccl[p];
    a.whole_steps[p] *= factor;
  }
  return a;
}

HopLatency without(HopLatency sum, const HopLatency& part) {
  sum.stated -= part.stated;
  for (std::size_t p = 0; p < kProtocols; ++p) {
    sum.nccl[p] = std::isinf(sum.nccl[p].value) ? sum.nccl[p] : sum.nccl[p] - part.nccl[p];
    sum.whole_steps[p] -= part.whole_steps[p];
  }
  return sum;
}

HopLatency greatest(const HopLatency& a, const HopLatency& b) {
  HopLatency most{std::max(a.stated, b.stated)};
  for (std::size_t p = 0; p < kProtocols; ++p) {
    most.nccl[p] = std::max(a.nccl[p], b.nccl[p]);
    most.whole_steps[p] = std::max(a.whole_steps[p], b.whole_steps[p]);
  }
  return most;
}

namespace {

// What NCCL calls the hop, how much longer than in its tuning the links take to answer, and whether they keep the 128
// bytes of an LL128 line together: not through a PCIe switch between devices, nor through a host.
struct Hop {
  NcclLink::Wire wire = NcclLink::Wire::none;
  Seconds more;
  bool keeps_lines = true;
};

Hop hop_over(const Platform& platform, const Leg& leg) {
  Hop inside, network;
  bool all_known = !leg.links.empty();
  for (const LinkId id : leg.links) {
    const Link& link = platform.links[id];
    const bool of_network = link.nccl.wire == NcclLink::Wire::network;
    Hop& part = of_network ? network : inside;
    part.wire = std::max(part.wire, link.nccl.wire); // PCIe is the slower one
    part.more += link.nccl.wire == NcclLink::Wire::none ? Seconds{0} : link.latency - link.nccl.at;
    all_known = all_known && link.nccl.wire != NcclLink::Wire::none;
    network.keeps_lines = network.keeps_lines && platform.vertices[link.from].kind != Vertex::Kind::host;
  }
  if (network.wire != NcclLink::Wire::none) {
    return network; // with the way to the NICs
  }
  inside.keeps_lines = inside.wire == NcclLink::Wire::nvlink;
  return all_known ? inside : Hop{};
}

} // namespace

HopLatency nccl_latency(const Platform& platform, const Leg& leg, const NcclAlgorithm& algorithm,
                        const NcclGroup& group) {
  constexpr double kMicro = 1e-6;
  const Hop hop = hop_over(platform, leg);
  const bool is_network = hop.wire == NcclLink::Wire::network;
  const double between = is_network ? 1 : 0;
  HopLatency latency{.stated = leg.latency, .whole_steps = {between, between, 1}};
  for (std::size_t p = 0; p < kProtocols; ++p) {
    const bool carries =
        hop.wire != NcclLink::Wire::none && (hop.keeps_lines || p != static_cast<std::size_t>(Protocol::ll128));
    if (!carries) {
      latency.nccl[p] = Seconds{kInfinity};
      continue;
    }
    // A ring with one rank a node has a tree's latencies in the network, since nothing hides them.
    const bool exposed = is_network && group.one_each && algorithm.is_ring;
    double micros = (exposed ? kNcclTree : algorithm).hop[index_of(hop.wire)][p];
    micros = group.nodes > 1 && !is_network && algorithm.is_ring ? std::max(micros, kPosting[p]) : micros;
    micros *= p == static_cast<std::size_t>(Protocol::simple) ? algorithm.plateau : 1;
    latency.nccl[p] = std::max(Seconds{0}, Seconds{micros * kMicro} + hop.more);
  }
  return latency;
}

NcclGeneration generation_of(const DeviceType& type) {
  return has(type, Precision::nvfp4)  ? NcclGeneration::blackwell
         : has(type, Precision::fp8)  ? NcclGeneration::hopper
         : has(type, Precision::bf16) ? NcclGeneration::ampere
                                      : NcclGeneration::volta;
}

// Between nodes NCCL goes by their processors; these are the lower of its figures.
BytesPerSecond most_by_ll(const DeviceType& type, const NcclGroup& group) {
  constexpr std::array kInNode = {39.0, 87.7, 141.0, 282.0}; // by generation
  const double most = group.nodes == 2  ? 22.5
                      : group.nodes > 2 ? 19
                                        : kInNode[static_cast<std::size_t>(generation_of(type))];
  return BytesPerSecond{most * 1e9};
}

} // namespace stagecraft
