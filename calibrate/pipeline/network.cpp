// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/network.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>

#include "sim/base/units.hpp"

namespace stagecraft::pipeline {
namespace {

constexpr int kEthernet = 14;                 // bytes of an Ethernet header
constexpr int kHeaders = kEthernet + 20 + 20; // bytes with the headers of IP and TCP, without options
// Seconds that a packet takes on the narrowest link of its channel: short compared with a transfer, long compared with
// what this machine needs to forward a packet, times all hops of all channels.
constexpr double kShortest = 0.1e-3, kLongest = 0.4e-3, kPerHop = 10e-6;
constexpr int kSmallest = 536, kLargest = 10'000; // bytes of data in a packet
constexpr int kWindow = 6;        // packets in flight: enough to fill the links, few enough to share them evenly
constexpr int kBucket = 3;        // packets in a link's token bucket, so that a late timer does not leave the link idle
constexpr int kWarmUp = 32;       // packets sent until TCP knows their size
constexpr int kQueue = 16 << 20;  // bytes of queue at a link: more than ever wait, so that nothing is lost
constexpr int kBuffer = 16 << 20; // bytes of a socket's buffer
constexpr int kPort = 4000;
constexpr int kPatience = 30'000; // milliseconds

// Addresses: the ends of wires from 10.0.0.0, the ends of channels from 100.64.0.0, the ends of wires to the hub from
// 172.16.0.0.
std::string address(std::uint32_t base, std::uint32_t number) {
  const std::uint32_t all = base + number;
  return std::to_string(all >> 24) + "." + std::to_string(all >> 16 & 255) + "." + std::to_string(all >> 8 & 255) +
         "." + std::to_string(all & 255);
}
std::string wire_end(int wire, int end) { return address(10U << 24, 2U * wire + end); }
std::string channel_end(int channel, int end) { return address((100U << 24) + (64U << 16), 2U * channel + end); }

std::string hub_end(int vertex, int end) { return address((172U << 24) + (16U << 16), 2U * vertex + end); }

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

// Sets a parameter of the network stack; some exist only in newer kernels.
void set_switch(const std::string& name, const char* value, bool needed) {
  std::ofstream file("/proc/sys/net/" + name);
  file << value << std::flush;
  if (!file && needed) {
    throw Unavailable("cannot set net." + name);
  }
}

void set_switches() {
  set_switch("ipv4/ip_forward", "1", true);
  set_switch("ipv6/conf/all/disable_ipv6", "1", false);
  set_switch("ipv6/conf/default/disable_ipv6", "1", false);
  for (const char* name : {"ipv4/conf/all/rp_filter", "ipv4/conf/default/rp_filter", "ipv4/tcp_timestamps",
                           "ipv4/tcp_slow_start_after_idle", "ipv4/tcp_autocorking"}) {
    set_switch(name, "0", false);
  }
  set_switch("ipv4/tcp_no_metrics_save", "1", false);
}

void set_option(int socket, int level, int option, int value) {
  if (setsockopt(socket, level, option, &value, sizeof value) != 0) {
    fail("cannot set a socket option");
  }
}

// A TCP socket bound to one end of a channel.
int make_socket(int channel, int end, int segment) {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) {
    fail("cannot make a socket");
  }
  set_option(made, IPPROTO_TCP, TCP_MAXSEG, segment);
  set_option(made, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(made, SOL_SOCKET, SO_SNDBUFFORCE, kBuffer);
  set_option(made, SOL_SOCKET, SO_RCVBUFFORCE, kBuffer);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(end == 1 ? kPort : 0);
  inet_pton(AF_INET, channel_end(channel, end).c_str(), &at.sin_addr);
  if (bind(made, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    close(made);
    fail("cannot bind a socket");
  }
  return made;
}

// Raises the limit of open files: each channel and wire needs several.
void raise_limit_of_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

} // namespace

Network::Network(const Setting& setting) {
  raise_limit_of_files();
  choose_connections(setting);
  choose_wires(setting.platform);
  lay_out(setting.platform);
  for (std::size_t channel = 0; channel < connections_.size(); ++channel) {
    connect(static_cast<int>(channel), setting.platform);
  }
}

Network::~Network() {
  for (const Connection& connection : connections_) {
    for (const int one : {connection.sender, connection.receiver}) {
      if (one >= 0) {
        close(one);
      }
    }
  }
}

namespace {

// The wires that a leg crosses. The memory of a host is none: this machine's own memory stands for it.
std::vector<LinkId> wires_of(const Leg& leg, const Platform& platform) {
  std::vector<LinkId> wires;
  std::copy_if(leg.links.begin(), leg.links.end(), std::back_inserter(wires),
               [&](LinkId id) { return platform.links[id].from != platform.links[id].to; });
  return wires;
}

} // namespace

void Network::choose_connections(const Setting& setting) {
  double hops = 0;
  for (const std::int32_t work : setting.channels.work_of) {
    hops += static_cast<double>(wires_of(setting.graph.legs[setting.graph.works[work].leg], setting.platform).size());
  }
  packet_time_ = std::clamp(hops * kPerHop, kShortest, kLongest);
  for (const std::int32_t work : setting.channels.work_of) {
    const Leg& leg = setting.graph.legs[setting.graph.works[work].leg];
    Connection& connection = connections_.emplace_back();
    if (std::isinf(leg.bandwidth.value)) {
      continue; // without bandwidth limit, it takes only its latency
    }
    connection.links = wires_of(leg, setting.platform);
    connection.rate = leg.bandwidth.value;
    connection.segment = static_cast<int>(std::clamp<double>(connection.rate * packet_time_, kSmallest, kLargest));
  }
}

void Network::choose_wires(const Platform& platform) {
  wire_of_.assign(platform.links.size(), -1);
  namespace_of_.assign(platform.vertices.size(), -1);
  for (const Connection& connection : connections_) {
    for (const LinkId id : connection.links) {
      if (wire_of_[id] >= 0) {
        continue;
      }
      const Link& link = platform.links[id];
      Wire wire{link.from, link.to, id, -1};
      for (LinkId other = 0; other < static_cast<LinkId>(platform.links.size()) && wire.back < 0; ++other) {
        const Link& back = platform.links[other];
        wire.back = back.from == link.to && back.to == link.from && wire_of_[other] < 0 ? other : -1;
      }
      wire_of_[id] = static_cast<int>(wires_.size());
      if (wire.back >= 0) {
        wire_of_[wire.back] = wire_of_[id];
      }
      wires_.push_back(wire);
      for (const int vertex : {link.from, link.to}) {
        if (namespace_of_[vertex] < 0) {
          namespace_of_[vertex] = static_cast<int>(namespaces_.size());
          namespaces_.emplace_back();
        }
      }
    }
  }
}

void Network::lay_out(const Platform& platform) {
  const auto each_vertex = [&](const auto& action) {
    for (std::size_t vertex = 0; vertex < namespace_of_.size(); ++vertex) {
      if (namespace_of_[vertex] >= 0) {
        action(static_cast<int>(vertex), namespaces_[namespace_of_[vertex]]);
      }
    }
  };
  hub_.inside(set_switches);
  hub_.batch("ip", "link set lo up\n");
  each_vertex([&](int vertex, const NetworkNamespace& space) {
    space.inside(set_switches);
    space.batch("ip", wire_commands(vertex));
  });
  each_vertex([&](int vertex, const NetworkNamespace& space) {
    space.batch("ip", route_commands(vertex, platform));
    space.batch("tc", shape_commands(vertex, platform));
  });
  hub_.batch("ip", hub_commands(platform));
}

// Commands that make the wires beginning at this vertex, with both ends.
std::string Network::wire_commands(int vertex) const {
  std::string text = "link set lo up\n";
  for (std::size_t wire = 0; wire < wires_.size(); ++wire) {
    if (wires_[wire].a == vertex) {
      const int packet = std::max(largest_packet(wires_[wire].there), largest_packet(wires_[wire].back));
      const std::string end = "w" + std::to_string(wire) + " mtu " + std::to_string(packet - kEthernet);
      text += "link add " + end + " type veth peer name " + end + " netns " +
              namespaces_[namespace_of_[wires_[wire].b]].path() + "\n";
    }
  }
  const std::string mtu = " mtu " + std::to_string(kLargest + kHeaders);
  return text + "link add hub" + mtu + " type veth peer name v" + std::to_string(vertex) + mtu + " netns " +
         hub_.path() + "\n";
}

// Commands for the hub that carries acknowledgements, so that data has the links to itself.
std::string Network::hub_commands(const Platform& platform) const {
  std::string text;
  for (std::size_t vertex = 0; vertex < namespace_of_.size(); ++vertex) {
    if (namespace_of_[vertex] >= 0) {
      const std::string name = "v" + std::to_string(vertex);
      text += "addr add " + hub_end(static_cast<int>(vertex), 1) + "/31 dev " + name + "\nlink set " + name + " up\n";
    }
  }
  for (std::size_t channel = 0; channel < connections_.size(); ++channel) {
    if (!connections_[channel].links.empty()) {
      const int from = platform.links[connections_[channel].links.front()].from;
      text += "route add " + channel_end(static_cast<int>(channel), 0) + " via " + hub_end(from, 0) + " dev v" +
              std::to_string(from) + "\n";
    }
  }
  return text;
}

// Commands that set addresses, and the next hop of each channel through this vertex.
std::string Network::route_commands(int vertex, const Platform& platform) const {
  std::string text = "addr add " + hub_end(vertex, 0) + "/31 dev hub\nlink set hub up\n";
  for (std::size_t wire = 0; wire < wires_.size(); ++wire) {
    const int end = wires_[wire].a == vertex ? 0 : 1;
    if (wires_[wire].a == vertex || wires_[wire].b == vertex) {
      const std::string name = "w" + std::to_string(wire);
      text += "addr add " + wire_end(static_cast<int>(wire), end) + "/31 dev " + name + "\n";
      text += "link set " + name + " up gso_max_segs 1\n"; // one packet on the wire for each packet of TCP
    }
  }
  for (std::size_t channel = 0; channel < connections_.size(); ++channel) {
    const std::string sender = channel_end(static_cast<int>(channel), 0),
                      receiver = channel_end(static_cast<int>(channel), 1);
    const auto& links = connections_[channel].links;
    for (std::size_t hop = 0; hop < links.size(); ++hop) {
      if (platform.links[links[hop]].from == vertex) {
        const int wire = wire_of_[links[hop]];
        text += hop == 0 ? "addr add " + sender + "/32 dev lo\n" : "";
        text += "route add " + receiver + " via " + wire_end(wire, wires_[wire].a == vertex ? 1 : 0) + " dev w" +
                std::to_string(wire) + (hop == 0 ? " src " + sender : "") + "\n";
      }
    }
    if (!links.empty() && platform.links[links.back()].to == vertex) {
      text += "addr add " + receiver + "/32 dev lo\nroute add " + sender + " via " + hub_end(vertex, 1) +
              " dev hub src " + receiver + "\n";
    }
  }
  return text;
}

// Commands for a token bucket on each link that begins here. Its rate includes headers, so that data gets the link's
// full bandwidth.
std::string Network::shape_commands(int vertex, const Platform& platform) const {
  std::string text;
  for (const Wire& wire : wires_) {
    const LinkId link = wire.a == vertex ? wire.there : wire.b == vertex ? wire.back : -1;
    if (link < 0 || std::isinf(platform.links[link].bandwidth.value)) {
      continue;
    }
    const int packet = largest_packet(link);
    const double rate = platform.links[link].bandwidth.value * packet / (packet - kHeaders);
    text += "qdisc add dev w" + std::to_string(wire_of_[link]) + " root tbf rate " +
            std::to_string(std::llround(8 * rate)) + "bit burst " + std::to_string(kBucket * packet) + " limit " +
            std::to_string(kQueue) + "\n";
  }
  return text;
}

// The largest packet on a link, with headers; any size if no data uses the link.
int Network::largest_packet(LinkId link) const {
  int largest = kSmallest;
  for (const Connection& connection : connections_) {
    if (std::find(connection.links.begin(), connection.links.end(), link) != connection.links.end()) {
      largest = std::max(largest, connection.segment);
    }
  }
  return largest + kHeaders;
}

void Network::connect(int channel, const Platform& platform) {
  Connection& connection = connections_[channel];
  if (connection.links.empty()) {
    return;
  }
  const int from = platform.links[connection.links.front()].from, to = platform.links[connection.links.back()].to;
  int listener = -1;
  namespaces_[namespace_of_[to]].inside([&] {
    listener = make_socket(channel, 1, connection.segment);
    set_option(listener, IPPROTO_TCP, TCP_WINDOW_CLAMP, kWindow * connection.segment); // no scaling of windows
    if (listen(listener, 1) != 0) {
      fail("cannot listen");
    }
  });
  namespaces_[namespace_of_[from]].inside([&] {
    connection.sender = make_socket(channel, 0, connection.segment);
    set_option(connection.sender, IPPROTO_TCP, TCP_USER_TIMEOUT, kPatience);
    set_option(connection.sender, IPPROTO_TCP, TCP_SYNCNT, 3);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(kPort);
    inet_pton(AF_INET, channel_end(channel, 1).c_str(), &at.sin_addr);
    if (::connect(connection.sender, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
      fail("cannot connect a channel");
    }
  });
  connection.receiver = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  close(listener);
  if (connection.receiver < 0) {
    fail("cannot accept a channel");
  }
  send(channel, kWarmUp * connection.segment);
}

// One thread serves both ends: it fills the sender's buffer, then sleeps until much has arrived.
void Network::send(int channel, double bytes) const {
  static constexpr std::array<char, 1 << 18> kData{};
  const Connection& connection = connections_[channel];
  if (connection.links.empty() || bytes < 1) {
    return;
  }
  const auto all = static_cast<std::size_t>(bytes);
  // Set again, since the kernel forgets it when it learns the size of packets.
  set_option(connection.receiver, IPPROTO_TCP, TCP_WINDOW_CLAMP, kWindow * connection.segment);
  std::size_t sent = 0, arrived = 0;
  while (arrived < all) {
    while (sent < all) {
      const ssize_t count =
          ::send(connection.sender, kData.data(), std::min(kData.size(), all - sent), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN && errno != EINTR) {
        fail("cannot send");
      }
      if (count < 0) {
        break;
      }
      sent += count;
    }
    constexpr std::size_t kAtOnce = kBuffer / 8;
    const int least = static_cast<int>(std::min(all - arrived, kAtOnce));
    set_option(connection.receiver, SOL_SOCKET, SO_RCVLOWAT, least);
    std::array<pollfd, 2> ends{pollfd{connection.receiver, POLLIN, 0},
                               pollfd{connection.sender, static_cast<short>(sent < all ? POLLOUT : 0), 0}};
    const int ready = poll(ends.data(), ends.size(), kPatience);
    if (ready == 0) {
      throw std::runtime_error("nothing has moved for half a minute");
    }
    const ssize_t count =
        recv(connection.receiver, nullptr, all - arrived, MSG_DONTWAIT | MSG_TRUNC); // counts and discards
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
      throw std::runtime_error("the connection has ended");
    }
    arrived += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
}

Seconds Network::head_start(int channel) const {
  const Connection& connection = connections_[channel];
  return connection.links.empty() ? Seconds{0} : Seconds{kBucket * connection.segment / connection.rate};
}

void Network::shut() {
  for (const Connection& connection : connections_) {
    if (connection.sender >= 0) {
      shutdown(connection.sender, SHUT_RDWR);
      shutdown(connection.receiver, SHUT_RDWR);
    }
  }
}

std::vector<std::pair<std::string, std::string>> Network::conditions() const {
  int smallest = kLargest, largest = 0;
  for (const Connection& connection : connections_) {
    if (!connection.links.empty()) {
      smallest = std::min(smallest, connection.segment);
      largest = std::max(largest, connection.segment);
    }
  }
  return {{"namespaces", std::to_string(namespaces_.size())},
          {"wires", std::to_string(wires_.size())},
          {"connections", std::to_string(connections_.size())},
          {"segment_bytes", std::to_string(smallest) + " to " + std::to_string(largest)},
          {"packet_seconds", to_text(packet_time_, 6)},
          {"window_packets", std::to_string(kWindow)}};
}

} // namespace stagecraft::pipeline
