// A platform's network for real: a namespace per vertex, a pair of virtual Ethernet devices per link, each shaped to
// its bandwidth, and a TCP connection per way, routed over exactly its links.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "calibrate/pipeline/backend.hpp"
#include "calibrate/pipeline/namespaces.hpp"

namespace stagecraft::pipeline {

class Network {
public:
  /// Lays out the links that the channels cross. Throws Unavailable where this machine does not grant it.
  explicit Network(const Setting& setting);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Sends so many bytes and returns when the last of them has arrived. std::runtime_error where the connection ends,
  /// or nothing moves for a long time.
  void send(int channel, double bytes) const;
  /// By how much a full token bucket lets a transfer on idle links arrive early.
  Seconds head_start(int channel) const;
  /// Ends every connection; sends that are under way throw.
  void shut();

  /// What it is made of, for the run's record.
  std::vector<std::pair<std::string, std::string>> conditions() const;

private:
  // Both directions of a wire.
  struct Wire {
    int a = 0, b = 0;             // vertices
    LinkId there = -1, back = -1; // a to b; -1: not among the platform's links
  };
  // A channel's connection.
  struct Connection {
    std::vector<LinkId> links;
    double rate = 0;                // B/s of its narrowest link
    int segment = 0;                // B of data in a packet
    int sender = -1, receiver = -1; // sockets
  };

  void choose_connections(const Setting& setting);
  void choose_wires(const Platform& platform);
  void lay_out(const Platform& platform);
  std::string wire_commands(int vertex) const;
  std::string hub_commands(const Platform& platform) const;
  std::string route_commands(int vertex, const Platform& platform) const;
  std::string shape_commands(int vertex, const Platform& platform) const;
  int largest_packet(LinkId link) const;
  void connect(int channel, const Platform& platform);

  NetworkNamespace hub_;
  std::vector<NetworkNamespace> namespaces_;
  std::vector<int> namespace_of_; // [vertex], or -1
  std::vector<Wire> wires_;
  std::vector<int> wire_of_;            // [link], or -1
  std::vector<Connection> connections_; // [channel]
  double packet_time_ = 0;              // s on the narrowest link of a channel
};

} // namespace stagecraft::pipeline
