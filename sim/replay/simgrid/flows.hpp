// A graph of which SimGrid carries the flows that meet on full links, and nothing else. Only the module includes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simgrid/kernel/Timer.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "sim/replay/byte_parts.hpp"
#include "sim/replay/replay_apart.hpp"
#include "sim/replay/simgrid/network.hpp"
#include "sim/replay/until_steady.hpp"

namespace stagecraft {

// Time passes in the recurrence and among the flows that have their links for themselves. Only while SimGrid carries
// some does its clock lead: a timer stands for whatever happens next outside.
class FlowPhase {
public:
  /// `number`: which of the network's requests it is. `apart`: how far it has come, from the engine's clock on, to
  /// where flows have met; null: nowhere.
  FlowPhase(const sg::Engine& engine, const Network& network, const ReplayRequest& request, std::size_t number,
            ApartReplay* apart)
      : engine_(engine), ends_(network.ends(number)), until_(request, clock_now()),
        own_(apart == nullptr ? std::make_unique<ApartReplay>(until_.request(), clock_now()) : nullptr),
        apart_(apart == nullptr ? *own_ : *apart), flows_(apart_.flows), recurrence_(apart_.recurrence),
        scale_(parts_of_byte(request.graph)) {
    network.adopt(request.platform, request.graph, scale_);
  }

  /// Runs the graph to its end, or as far as its period shows; false if tasks remain that wait for each other.
  bool run() {
    if (apart_.has_met()) {
      share_from(apart_.met_at);
    } else {
      recurrence_.start();
    }
    while (!flows_.done() && !until_.reached()) {
      const double now = flows_.next();
      step();
      if (!flows_.met().empty()) {
        share_from(now);
      }
    }
    return until_.reached() || recurrence_.complete();
  }

  Timeline take() { return until_.take(recurrence_); }

  void finished(const sg::Activity& activity) {
    const auto number = reinterpret_cast<std::uintptr_t>(activity.get_data<void>());
    if (number == 0) {
      return;
    }
    last_ = std::move(live_[number - 1]); // the last reference must outlive the callback
    --under_way_;
    if (!until_.reached()) { // else what is under way ends for itself
      arrived(flows_.end(static_cast<std::int32_t>(number - 1), clock_now()));
      follow();
    }
  }

private:
  using Timer = simgrid::kernel::timer::Timer;

  // Has SimGrid carry the flows that have met then, and all that meet these, until none of them is under way.
  void share_from(double now) {
    Timer::set(now, [this] {
      enter();
      follow();
    });
    engine_.run();
  }

  void step() {
    if (const std::optional<ArrivedFlow> one = flows_.step()) {
      arrived(*one);
    }
  }

  void arrived(const ArrivedFlow& one) {
    recurrence_.arrived(one.executed, one.start, one.finish);
    until_.watch(recurrence_, one.finish);
  }

  // Hands the flows that have met over to SimGrid, whose clock stands where they met.
  void enter() {
    for (const MetFlow& met : flows_.met()) {
      live_.resize(std::max(live_.size(), static_cast<std::size_t>(met.number) + 1));
      const Network::Ends& ends = ends_[static_cast<std::size_t>(met.leg)];
      const sg::CommPtr comm = sg::Comm::sendto_init();
      comm->set_payload_size(whole_parts(met.bytes, scale_));
      comm->set_data(reinterpret_cast<void*>(static_cast<std::uintptr_t>(met.number) + 1));
      live_[met.number] = comm;
      ++under_way_;
      comm->set_source(ends.sender);
      comm->set_destination(ends.sink); // starts it
    }
  }

  // Lets happen what happens outside SimGrid by now, and sets a timer for what happens next there.
  void follow() {
    while (!until_.reached() && !flows_.done() && flows_.next() <= clock_now()) {
      step();
      enter();
    }
    const bool waits = !until_.reached() && under_way_ > 0 && !flows_.done();
    if (timer_ != nullptr && !(waits && timer_->get_date() == flows_.next())) {
      timer_->remove();
      timer_ = nullptr;
    }
    if (timer_ == nullptr && waits) {
      timer_ = Timer::set(flows_.next(), [this] {
        timer_ = nullptr;
        follow();
      });
    }
  }

  const sg::Engine& engine_;
  const std::vector<Network::Ends>& ends_; // [leg]
  UntilSteady until_;
  std::unique_ptr<ApartReplay> own_; // null: goes on where another one stopped
  ApartReplay& apart_;
  SharedFlows& flows_;
  Recurrence<SharedFlows>& recurrence_;
  double scale_;
  std::vector<sg::ActivityPtr> live_; // [number of a flow]
  int under_way_ = 0;
  Timer* timer_ = nullptr; // for flows_.next()
  sg::ActivityPtr last_;
};

} // namespace stagecraft
