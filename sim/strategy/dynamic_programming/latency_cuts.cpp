// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/latency_cuts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sim/base/improves.hpp"

namespace stagecraft {
namespace {

class Cutter {
public:
  explicit Cutter(const LatencyChain& chain) : chain_(chain), width_(chain.layers + 1) {
    seconds_.assign(static_cast<std::size_t>(chain.parts) * width_ * width_, kInfinity);
    transfer_.assign(static_cast<std::size_t>(chain.parts) * width_, 0.0);
    for (int part = 0; part < chain.parts; ++part) {
      const int later = chain.parts - 1 - part; // later parts, each with at least one layer
      for (int first = part; first <= (part == 0 ? 0 : chain.layers - 1 - later); ++first) {
        transfer_[part * width_ + first] = part > 0 ? chain.transfer(part, first) : 0;
        for (int last = later == 0 ? chain.layers : first + 1; last <= chain.layers - later; ++last) {
          seconds_[at(part, first, last)] = chain.seconds(part, first, last);
        }
      }
    }
  }

  std::optional<LatencyCuts> run() {
    const std::optional<LatencyCuts> unbound = solve(kInfinity);
    if (!unbound) {
      return std::nullopt;
    }
    best_ = *unbound;
    halve(0, unbound->bottleneck, unbound->sum);
    return best_;
  }

private:
  std::size_t at(int part, int first, int last) const {
    return (static_cast<std::size_t>(part) * width_ + first) * width_ + last;
  }

  // The least sum with no part above `limit`.
  std::optional<LatencyCuts> solve(double limit) {
    const int parts = chain_.parts;
    sum_.assign(static_cast<std::size_t>(parts + 1) * width_, kInfinity);
    from_.assign(sum_.size(), -1);
    sum_[0] = 0;
    for (int part = 0; part < parts; ++part) {
      for (int first = part; first < chain_.layers; ++first) {
        const double before = sum_[part * width_ + first] + transfer_[part * width_ + first];
        const int most = chain_.layers - (parts - 1 - part);
        for (int last = part + 1 == parts ? chain_.layers : first + 1; last <= most && before < kInfinity; ++last) {
          const double seconds = seconds_[at(part, first, last)];
          if (seconds > limit) {
            break;
          }
          double& sum = sum_[(part + 1) * width_ + last];
          if (improves(before + seconds, sum)) {
            sum = before + seconds;
            from_[(part + 1) * width_ + last] = first;
          }
        }
      }
    }
    return trace();
  }

  std::optional<LatencyCuts> trace() const {
    LatencyCuts cuts;
    cuts.sum = sum_[chain_.parts * width_ + chain_.layers];
    if (std::isinf(cuts.sum)) {
      return std::nullopt;
    }
    cuts.bounds.assign(chain_.parts + 1, chain_.layers);
    for (int part = chain_.parts; part > 0; --part) {
      cuts.bounds[part - 1] = static_cast<int>(from_[part * width_ + cuts.bounds[part]]);
      cuts.bottleneck = std::max(cuts.bottleneck, seconds_[at(part - 1, cuts.bounds[part - 1], cuts.bounds[part])]);
    }
    cuts.latency = chain_.repeats * cuts.bottleneck + cuts.sum;
    return cuts;
  }

  // Searches bottlenecks strictly between `low` and `high`; none has a sum below `least_sum`, which is that of `high`.
  void halve(double low, double high, double least_sum) {
    if (!improves(chain_.repeats * low + least_sum, best_.latency) || high - low <= kTie * high) {
      return;
    }
    const double middle = (low + high) / 2;
    const std::optional<LatencyCuts> found = solve(middle);
    if (found && improves(found->latency, best_.latency)) {
      best_ = *found;
    }
    halve(middle, high, least_sum);
    if (found) {
      halve(low, found->bottleneck, found->sum);
    }
  }

  const LatencyChain& chain_;
  std::size_t width_;
  std::vector<double> seconds_, transfer_, sum_;
  std::vector<std::int32_t> from_;
  LatencyCuts best_;
};

} // namespace

std::optional<LatencyCuts> latency_cuts(const LatencyChain& chain) {
  return chain.parts < 1 || chain.parts > chain.layers ? std::nullopt : Cutter(chain).run();
}

} // namespace stagecraft
