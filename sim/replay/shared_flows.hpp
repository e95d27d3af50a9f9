// Transfers that may share a link, in the order of time. As long as the links carry all that flows at once, each flow
// takes the time that it takes alone, and nothing needs to share. Those that meet on a full link are handed over to
// whoever shares it out among them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/replay/replay.hpp"

namespace stagecraft {

/// A transfer that is over.
struct ArrivedFlow {
  std::size_t executed = 0; ///< iteration * tasks + task
  double start = 0, finish = 0;
};

/// A flow that has met others on a full link, and that its owner must carry on from now on.
struct MetFlow {
  std::int32_t number = 0; ///< for SharedFlows::end()
  std::int32_t leg = 0;
  double bytes = 0; ///< that have not arrived
};

/// The flows of a graph. A link is contended if transfers of several channels cross it, and a flow may share if its leg
/// crosses such a link. What a channel sends follows its order; a transfer's bytes flow after its latency.
class SharedFlows {
public:
  static constexpr bool kShares = true;

  SharedFlows(const TaskGraph& graph, const Platform& platform);

  /// Whether transfers of a work of the graph may share a link.
  bool may_share(std::size_t work) const { return may_share_[work] != 0; }
  /// Seconds for which a transfer's bytes flow that has its links for itself.
  double seconds_alone(const Work& work) const;

  /// All inputs of a transfer that may share are there at `time`, which is not before now.
  void ready(std::size_t executed, std::int32_t work, double time);

  bool done() const { return events_.empty(); }
  /// When something happens next to flows that are not handed over. Not when done().
  double next() const { return events_.front().time; }
  /// Lets that happen. What has met then is in met(); a transfer that has arrived is returned.
  std::optional<ArrivedFlow> step();
  /// Flows that have met others in the last step; empty after the next one.
  std::span<const MetFlow> met() const { return met_; }
  /// A flow that was handed over has arrived.
  ArrivedFlow end(std::int32_t number, double time);

  /// A link that a leg crosses, among the contended ones.
  struct Use {
    std::int32_t link;
    double times;  ///< how often the leg crosses it
    double wanted; ///< B/s that the leg fills of it on its own
  };
  std::span<const Use> uses_of_leg(std::int32_t leg) const {
    return {uses_.data() + use_begin_[leg], uses_.data() + use_begin_[leg + 1]};
  }
  /// B/s of the contended links.
  const std::vector<double>& bandwidths() const { return bandwidth_; }

private:
  struct Live {
    std::int32_t flow;
    double wanted; // B/s
  };
  struct Flow {
    std::size_t executed = 0;
    std::int32_t work = 0;
    std::uint32_t serial = 0; // how often this place was used, or its end changed
    bool handed_over = false;
    double start = 0, begin = 0; // of the transfer and of its bytes
  };
  struct Sent {
    std::size_t executed;
    std::int32_t work;
    double start;
  };
  // The transfers of a channel that are ready, in the order of time; the first may be flowing.
  struct Channel {
    std::vector<Sent> sent;
    std::size_t first = 0;
    bool flows = false;
    double begin = 0; // when the first one's bytes begin to flow
  };
  enum class What : std::uint8_t {
    end,
    begin,
    begin_on_channel
  }; // ends first, so that what follows does not meet them
  struct Event {
    double time;
    std::uint32_t serial;
    std::uint32_t rank; // among those at one time: by what happens, then by the number of a flow or a channel

    static constexpr int kNumberBits = 30; // few of all flows are under way at once
    static std::uint32_t rank_of(What what, std::int32_t number) {
      return static_cast<std::uint32_t>(what) << kNumberBits | static_cast<std::uint32_t>(number);
    }
    What what() const { return static_cast<What>(rank >> kNumberBits); }
    std::int32_t number() const { return static_cast<std::int32_t>(rank & ((1U << kNumberBits) - 1)); }
    bool operator>(const Event& other) const { return time != other.time ? time > other.time : rank > other.rank; }
  };

  void find_contended(const TaskGraph& graph, const Platform& platform);
  void mark_unordered(const TaskGraph& graph);
  void push(double time, std::int32_t number, std::uint32_t serial, What what);
  void begin_first(std::int32_t channel, double time);
  void begin(std::int32_t number, double time);
  void fill_links(std::int32_t number, double time);
  void hand_over(std::int32_t number, double time);
  void follow(const Work& work, double time);
  std::int32_t new_flow(const Sent& sent);
  std::span<const Use> uses_of(const Work& work) const { return uses_of_leg(work.leg); }

  const TaskGraph& graph_;
  std::vector<char> may_share_;         // [work]
  std::vector<std::int32_t> use_begin_; // [leg], and the end
  std::vector<Use> uses_;
  std::vector<double> bandwidth_;       // [contended link]
  std::vector<std::vector<Live>> live_; // [contended link]: flows on it
  std::vector<Flow> flows_;
  std::vector<std::int32_t> free_; // places in flows_
  std::vector<Channel> channels_;
  std::vector<Event> events_; // a heap, the earliest first
  std::vector<MetFlow> met_;
};

} // namespace stagecraft
