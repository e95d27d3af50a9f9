// The matrix that `nvidia-smi topo -m` prints: how each two devices and network cards of a machine are joined.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::foreign {

/// What joins two devices, the nearest first. Beyond `same_bridges` data passes through the processor.
enum class ConnectionKind { self, nvlink, one_bridge, same_bridges, host_bridge, numa_node, sockets };

struct Connection {
  ConnectionKind kind = ConnectionKind::self;
  int links = 0; ///< NVLinks bonded; 0 otherwise
  bool operator==(const Connection&) const = default;
};

struct TopologyMatrix {
  std::vector<std::string> names;                   ///< GPUs first: "GPU0", "NIC0"
  int gpus = 0;                                     ///< how many of them
  std::vector<std::vector<Connection>> connections; ///< [one][other], the same in both directions
  std::vector<std::string> sockets;                 ///< per GPU: its NUMA nodes as printed, "" where they are not
  int processors = 0;                               ///< logical, near any of the GPUs; 0 where no row says so
  std::vector<std::string> cards;                   ///< of the legend: "NIC0: mlx5_0"
};

/// Finds the matrix in what was printed and reads it, in tabs or blanks, with or without colours, cards and columns of
/// affinity. InputError with the place of a cell that is unknown, too much or missing, and of one that says otherwise
/// than its mirror image.
TopologyMatrix read_topology_matrix(std::string_view text, const std::string& file);

} // namespace stagecraft::foreign
