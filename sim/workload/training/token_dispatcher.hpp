// How tokens are sent to the ranks of their experts and back, by the names that frameworks have for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "sim/base/format/yaml.hpp"
#include "sim/base/kernel/kernel_kind.hpp"

namespace stagecraft {

enum class DispatcherKind {
  alltoall, ///< a copy of a token for each expert that it chose
  deepep,   ///< a copy for each node, and from there one for each rank
  hybridep, ///< the same by other kernels
  allgather ///< all tokens to all ranks, which make the rows of their own experts
};

struct DispatcherRow {
  std::string_view name, help;
  DispatcherKind kind;
};
inline constexpr std::array kDispatchers = {
    DispatcherRow{"alltoall", "a copy of a token for each expert that it chose, to the expert's rank and back",
                  DispatcherKind::alltoall},
    DispatcherRow{"deepep", "a copy for each node over the network, from there one for each rank (DeepEP)",
                  DispatcherKind::deepep},
    DispatcherRow{"hybridep", "the same by NVIDIA's kernels for DeepEP, Hybrid-EP", DispatcherKind::hybridep},
    DispatcherRow{"allgather", "all tokens to every rank that has experts of its own, and sums of their results back",
                  DispatcherKind::allgather},
};

/// How many bits a number has on its way to the experts, forward the token's and backward its gradient's. What comes
/// back is as the training's precision says.
struct DispatchPrecisionRow {
  std::string_view name, help;
  bool fp8;
};
inline constexpr std::array kDispatchPrecisions = {
    DispatchPrecisionRow{"training", "as the training's precision says", false},
    DispatchPrecisionRow{"fp8", "8 bits, with a scale of 32 bits for every 128 numbers", true},
};

/// The dispatcher of all mixtures of a training.
struct TokenDispatcher {
  DispatcherKind kind = DispatcherKind::alltoall;
  bool fp8 = false; ///< numbers have 8 bits on the way to the experts
  /// Multiprocessors that kernels of `deepep` and `hybridep` take; Megatron-LM's defaults are 20, as DeepEP's, and 16.
  int processors = kDeepEpProcessors;
  bool operator==(const TokenDispatcher&) const = default;

  static constexpr int kDeepEpProcessors = 20, kHybridEpProcessors = 16;

  /// Whether a token is sent once to each node, by kernels of their own.
  bool sends_once() const { return kind == DispatcherKind::deepep || kind == DispatcherKind::hybridep; }

  /// Bytes of a number on its way to the experts, and back.
  double dispatch_bytes(Precision precision) const { return fp8 ? 1 + 4.0 / 128 : row_of(precision).bytes; }
};

/// The row of a kind.
constexpr const DispatcherRow& row_of(DispatcherKind kind) { return kDispatchers[static_cast<std::size_t>(kind)]; }

/// Reads `token_dispatcher`, `dispatch_precision` and `dispatch_processors`.
TokenDispatcher read_token_dispatcher(yaml::Map& map, Precision precision);

} // namespace stagecraft
