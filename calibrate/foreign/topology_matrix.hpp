// The matrix that `nvidia-smi topo -m` prints: how each pair of devices and network cards of a machine is connected.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::foreign {

/// How two are connected, the nearest first. Beyond `same_bridges` the connection goes through the processor.
enum class ConnectionKind { self, nvlink, one_bridge, same_bridges, host_bridge, numa_node, sockets };

struct Connection {
  ConnectionKind kind = ConnectionKind::self;
  int links = 0; ///< number of bonded NVLinks; otherwise 0
  bool operator==(const Connection&) const = default;
};

struct TopologyMatrix {
  std::vector<std::string> names;                   ///< GPUs first: "GPU0", "NIC0"
  int gpus = 0;                                     ///< number of GPUs
  std::vector<std::vector<Connection>> connections; ///< [one][other], symmetric
  std::vector<std::string> sockets;                 ///< per GPU: its NUMA nodes as printed; "" if not printed
  int processors = 0;                               ///< logical processors near any GPU; 0 if no row gives them
  std::vector<std::string> cards;                   ///< lines of the legend: "NIC0: mlx5_0"
};

/// Finds and reads the matrix in the output, separated by tabs or blanks, with or without colours, cards and affinity
/// columns. InputError with the place of a cell that is unknown, superfluous or missing, or that contradicts its mirror
/// image.
TopologyMatrix read_topology_matrix(std::string_view text, const std::string& file);

} // namespace stagecraft::foreign
