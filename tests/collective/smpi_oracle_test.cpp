// SimGrid's own implementations of MPI collectives on the same platform, as an oracle that is not ours.
// SPDX-License-Identifier: Apache-2.0
#include <simgrid/s4u.hpp>
#include <smpi/smpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "sim/base/named_table.hpp"
#include "sim/collective/algorithm.hpp"
#include "tests/catch.hpp"
#include "tests/collective/clusters.hpp"

namespace stagecraft {
namespace {

namespace s4u = simgrid::s4u;

// As test::cluster() has devices of one node: a port of 10 GB/s and 1 us for each direction, so 2 us a hop.
constexpr double kBandwidth = 1e10, kHalfHop = 1e-6, kHop = 2 * kHalfHop;
constexpr int kBytes = 96'000'000; // whole pieces of whole numbers for 2, 3, 4 and 8 ranks

std::vector<s4u::Host*> star_of(int ranks) {
  s4u::NetZone* zone = s4u::create_star_zone("node");
  std::vector<s4u::Host*> hosts;
  for (int rank = 0; rank < ranks; ++rank) {
    hosts.push_back(zone->create_host("host" + std::to_string(rank), 1e9)->seal());
    s4u::SplitDuplexLink* port = zone->create_split_duplex_link("port" + std::to_string(rank), kBandwidth);
    port->set_latency(kHalfHop)->seal();
    zone->add_route(hosts.back()->get_netpoint(), nullptr, nullptr, nullptr, {{port, s4u::LinkInRoute::Direction::UP}},
                    true);
  }
  zone->seal();
  return hosts;
}

// Factors of TCP, of which our links have none, are 1 or off; what ranks compute takes no time.
void configure(const std::string& collective, const std::string& algorithm) {
  std::vector<std::string> words = {"smpi",
                                    "--log=root.thres:error",
                                    "--cfg=network/model:CM02",
                                    "--cfg=network/TCP-gamma:0",
                                    "--cfg=network/crosstraffic:0",
                                    "--cfg=network/bandwidth-factor:1",
                                    "--cfg=network/latency-factor:1",
                                    "--cfg=smpi/simulate-computation:no",
                                    "--cfg=smpi/send-is-detached-thresh:0",
                                    "--cfg=smpi/" + collective + ":" + algorithm};
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  int count = static_cast<int>(arguments.size());
  smpi_init_options(); // declares `smpi/allreduce` and the like
  s4u::Engine::get_instance(&count, arguments.data());
}

double simulated(const std::string& collective, const std::string& algorithm, int ranks) {
  configure(collective, algorithm);
  const std::vector<s4u::Host*> hosts = star_of(ranks);
  SMPI_init();
  SMPI_app_instance_register("ranks", nullptr, ranks);
  std::vector<char> sent(kBytes), received(kBytes); // of all ranks: what they hold does not matter
  double longest = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const s4u::ActorPtr actor = s4u::Actor::init("rank" + std::to_string(rank), hosts[static_cast<std::size_t>(rank)]);
    actor->set_property("instance_id", "ranks");
    actor->set_property("rank", std::to_string(rank));
    actor->start([&] {
      MPI_Init(nullptr, nullptr);
      const double start = s4u::Engine::get_clock();
      if (collective == "allreduce") {
        MPI_Allreduce(sent.data(), received.data(), kBytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      } else {
        MPI_Alltoall(sent.data(), kBytes / ranks, MPI_CHAR, received.data(), kBytes / ranks, MPI_CHAR, MPI_COMM_WORLD);
      }
      longest = std::max(longest, s4u::Engine::get_clock() - start);
      MPI_Finalize();
    });
  }
  s4u::Engine::get_instance()->run();
  return longest;
}

// A process has one engine, so each run is another process's.
double oracle(const std::string& collective, const std::string& algorithm, int ranks) {
  std::array<int, 2> pipe_ends{};
  REQUIRE(::pipe(pipe_ends.data()) == 0);
  std::fflush(stdout); // or the other process writes it, too
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const double seconds = simulated(collective, algorithm, ranks);
    const bool told = ::write(pipe_ends[1], &seconds, sizeof seconds) == sizeof seconds;
    ::_exit(told ? 0 : 1);
  }
  ::close(pipe_ends[1]);
  double seconds = 0;
  const bool heard = ::read(pipe_ends[0], &seconds, sizeof seconds) == sizeof seconds;
  ::close(pipe_ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE((heard && status == 0));
  return seconds;
}

double ours(std::string_view name, CollectiveKind kind, int ranks) {
  const Platform platform = test::cluster({1, ranks});
  Router router(platform);
  const RankMap map = map_ranks(test::first_devices(ranks), router);
  return seconds_of(find_by_name(algorithms(), name, "algorithm", {}).flows(kind, map, router), Bytes{kBytes}).value;
}

// SMPI's calls take some 30 ns each, and messages within a step start one after another: 1e-5 of a collective here.
bool agree(double one, double other) { return std::abs(one / other - 1) < 2e-5; }

TEST_CASE("a ring all-reduce takes what SMPI's takes", "[collective][smpi]") {
  for (const int ranks : {2, 3, 4, 8}) {
    CAPTURE(ranks);
    const double theirs = oracle("allreduce", "lr", ranks), own = ours("ring", CollectiveKind::all_reduce, ranks);
    CAPTURE(theirs, own);
    CHECK(agree(own, theirs));
  }
}

TEST_CASE("an all-to-all by pairs takes what SMPI's takes", "[collective][smpi]") {
  for (const std::string algorithm : {"ring", "pair"}) { // `pair` wants a power of two
    for (const int ranks : {2, 4, 8}) {
      CAPTURE(algorithm, ranks);
      const double theirs = oracle("alltoall", algorithm, ranks),
                   own = ours("pairs", CollectiveKind::all_to_all, ranks);
      CAPTURE(theirs, own);
      CHECK(agree(own, theirs));
    }
  }
}

// Recursive doubling sends all bytes in each of log2 r steps, a ring 1/r of them in each of 2 (r-1): of many bytes the
// ring is 2 (r-1) / (r log2 r) of it, and no NCCL collective does it, so that we have none to compare.
TEST_CASE("SMPI's recursive doubling takes log2 r (n/B + a), which a ring undercuts from four ranks on",
          "[collective][smpi]") {
  for (const int ranks : {2, 4, 8}) {
    CAPTURE(ranks);
    const double theirs = oracle("allreduce", "rdb", ranks);
    CHECK(agree(theirs, std::log2(ranks) * (kBytes / kBandwidth + kHop)));
    CHECK((ours("ring", CollectiveKind::all_reduce, ranks) < 0.999 * theirs) == (ranks > 2));
  }
}

} // namespace
} // namespace stagecraft
