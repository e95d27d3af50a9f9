// A platform's network inside this machine: a network namespace per vertex, a pair of virtual Ethernet devices per
// link, each limited to the link's bandwidth, and a TCP connection per channel, routed over exactly its links.
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
  /// Sets up the links that the channels use. Throws Unavailable if the system does not grant it.
  explicit Network(const Setting& setting);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Sends `bytes`; returns when the last has arrived. std::runtime_error if the connection ends, or nothing moves for
  /// a long time.
  void send(int channel, double bytes) const;
  /// How much earlier a transfer arrives on idle links because token buckets are full.
  Seconds head_start(int channel) const;
  /// Ends every connection; running sends throw.
  void shut();

  /// Facts about the network for the record of a run.
  std::vector<std::pair<std::string, std::string>> conditions() const;

private:
  // Two links in opposite directions, as one wire.
  struct Wire {
    int a = 0, b = 0;             // vertices
    LinkId there = -1, back = -1; // a to b, and b to a; -1: the platform has no such link
  };
  // The TCP connection of a channel.
  struct Connection {
    std::vector<LinkId> links;
    double rate = 0;                // bytes per second of the narrowest link
    int segment = 0;                // bytes of data per packet
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
  std::vector<int> namespace_of_; // [vertex]: index of its namespace, or -1
  std::vector<Wire> wires_;
  std::vector<int> wire_of_;            // [link]: index of its wire, or -1
  std::vector<Connection> connections_; // [channel]
  double packet_time_ = 0;              // seconds of a packet on the narrowest link of a channel
};

} // namespace stagecraft::pipeline
