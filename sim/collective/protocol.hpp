// NCCL's protocols, as its published tuning has them: LL sends a flag with every word and waits for nothing else, LL128
// one with every 120 bytes over wires that keep 128 bytes together, Simple waits for whole chunks. The first is the
// quickest for few bytes, the last the fastest for many.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "sim/base/improves.hpp"
#include "sim/base/units.hpp"
#include "sim/platform/route.hpp"

namespace stagecraft {

enum class Protocol { ll, ll128, simple };
inline constexpr std::size_t kProtocols = 3;

/// What hops that wait for each other take: by the latencies of their links, and by protocol, infinite where the
/// protocol does not carry one of them.
struct HopLatency {
  Seconds stated;
  std::array<Seconds, kProtocols> nccl{};
  std::array<double, kProtocols> whole_steps{}; ///< hops at which bytes wait until a whole step of them is there

  HopLatency& operator+=(const HopLatency& other);
  friend HopLatency operator+(HopLatency a, const HopLatency& b) { return a += b; }
  friend HopLatency operator*(double factor, HopLatency a);
};
/// Of a hop that no protocol carries.
inline constexpr HopLatency kNoProtocol{{}, {Seconds{kInfinity}, Seconds{kInfinity}, Seconds{kInfinity}}};
/// Of a sum that contains `part`, the rest.
HopLatency without(HopLatency sum, const HopLatency& part);
/// The greater of each.
HopLatency greatest(const HopLatency& a, const HopLatency& b);

/// An algorithm in NCCL's tuning (2.30.7, src/graph/tuning.cc).
struct NcclAlgorithm {
  std::array<double, kProtocols> start;              ///< microseconds before the first hop
  std::array<std::array<double, kProtocols>, 3> hop; ///< microseconds over NVLink, PCIe, the network
  std::array<double, kProtocols> bandwidth;          ///< as a part of the links'
  bool is_ring = false;                              ///< whose ranks post to the network at each step
  double plateau = 1;                                ///< Simple waits so many times as long
};

/// Bytes, flags included, of a step of a channel's buffers, by protocol (NCCL 2.14 to 2.30, src/init.cc: buffer sizes
/// by default, of NCCL_STEPS each), and channels of a ring (src/graph/connect.cc: it doubles those that it has found).
inline constexpr std::array<double, kProtocols> kNcclStep = {8 * 512 * 16, 120 * 640 * 8, 1 << 19};
inline constexpr double kNcclChannels = 2;

/// `RingBetween` is an all-reduce among nodes. `Nvls` has two hops, which together are the whole of its latency.
/// `Sends` are those of an all-to-all or a shift, of which the tuning says nothing: inside a node they start and hop as
/// a ring does, which measured tables bear out, and know no LL128 (src/enqueue.cc). Between nodes, and among more ranks
/// than can be sent to at once, nothing is published, and links' latencies count.
extern const NcclAlgorithm kNcclRing, kNcclRingBetween, kNcclTree, kNcclTreeInNode, kNcclNvls, kNcclSends;

/// At most so many of a rank's sends are under way at once (NCCL_MAX_DEV_WORK_P2P_PER_BATCH).
inline constexpr std::size_t kNcclSendsAtOnce = 8;

/// Where a group lies, as far as latencies of its hops depend on it.
struct NcclGroup {
  std::size_t nodes = 1;
  bool one_each = false; ///< one rank on each node
};

/// What a hop over this leg takes: of the network, or inside a node, by what its links say (Link::nccl). A link that is
/// slower to answer than those for which the latencies hold adds what it takes more. Bytes wait for a whole step
/// through the network by all protocols, since a host's thread sends it step by step; inside a node by Simple alone,
/// where LL and LL128 read word by word, line by line, what has come.
HopLatency nccl_latency(const Platform& platform, const Leg& leg, const NcclAlgorithm& algorithm,
                        const NcclGroup& group);

/// The formats in which a device multiplies tell its generation: Volta has none of bf16, fp8 and nvfp4, Ampere the
/// first, Hopper the second, Blackwell the third.
enum class NcclGeneration { volta, ampere, hopper, blackwell };
NcclGeneration generation_of(const DeviceType& type);

/// Bytes a second that all channels together carry by LL, at most: inside a node by the generation of the devices,
/// between nodes by their number.
BytesPerSecond most_by_ll(const DeviceType& type, const NcclGroup& group);

} // namespace stagecraft
