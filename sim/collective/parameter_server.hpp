// The traffic that PipeDream's planner counts for replicas, as a formula of its paper. No replay sends it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace stagecraft {

/// Bytes that n replicas, each of which serves an n-th of the weights, send and receive in one synchronisation over the
/// link of any of them: gradients to the servers and weights back, 4 (n-1)/n w (Narayanan et al. 2019, section 3.1).
/// Twice a ring's. Piper's published program counts the same (Tarnawski et al. 2021). Part of these two methods: their
/// published plans depend on it.
inline double parameter_server_bytes(double weights, double replicas) {
  return 4 * (replicas - 1) * weights / replicas;
}

} // namespace stagecraft
