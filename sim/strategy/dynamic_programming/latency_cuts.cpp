// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/latency_cuts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "sim/base/improves.hpp"
#include "sim/base/wide_loops.hpp"

namespace stagecraft {
namespace {

// Where sums that go on from `before` are better than those that are known: notes from which layer they go on, `first`.
STAGECRAFT_WIDE_LOOP void note_better(double* __restrict from, const double* __restrict sum,
                                      const double* __restrict seconds, std::size_t count, double before,
                                      double first) {
  for (std::size_t end = 0; end < count; ++end) {
    const double was = from[end];
    from[end] = improves(before + seconds[end], sum[end]) ? first : was;
  }
}

// Takes those that are better.
STAGECRAFT_WIDE_LOOP void take_better(double* __restrict sum, const double* __restrict seconds, std::size_t count,
                                      double before) {
  for (std::size_t end = 0; end < count; ++end) {
    const double now = before + seconds[end], least = sum[end];
    sum[end] = improves(now, least) ? now : least;
  }
}

class Cutter {
public:
  explicit Cutter(const LatencyChain& chain) : chain_(chain), width_(chain.layers + 1), kind_(chain.kind) {
    if (kind_.empty()) {
      kind_.resize(chain.parts);
      std::iota(kind_.begin(), kind_.end(), 0);
    }
    seconds_.resize((*std::max_element(kind_.begin(), kind_.end()) + 1) * width_);
    transfer_.assign(static_cast<std::size_t>(chain.parts) * width_, 0.0);
    for (int part = 1; part < chain.parts; ++part) {
      for (int first = part; first <= chain.layers - (chain.parts - part); ++first) {
        transfer_[part * width_ + first] = chain.transfer(part, first);
      }
    }
    if (chain.fits) {
      fitting_.assign(static_cast<std::size_t>(chain.parts) * width_, {});
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
  // [last]: seconds of a part from `first` on.
  const std::vector<double>& seconds_from(int part, int first) {
    std::vector<double>& row = seconds_[kind_[part] * width_ + first];
    if (row.empty()) {
      row.assign(width_, 0.0);
      for (int last = first + 1; last <= chain_.layers; ++last) {
        row[last] = chain_.seconds(part, first, last);
      }
    }
    return row;
  }

  // The ends, from the nearest on, that are known to fit; whether the next one does not.
  struct Fitting {
    std::int32_t upto = 0;
    bool ends = false;
  };

  // The last end of a part, no later than `last`, such that it and all before it fit.
  int fits_upto(int part, int first, int last) {
    Fitting& known = fitting_[part * width_ + first];
    known.upto = std::max(known.upto, first);
    const auto fits = [&](int end) { return chain_.fits(part, first, end) == Fit::yes; };
    int beyond = chain_.layers + 1; // does not fit
    while (chain_.shorter_fit && !known.ends) {
      const int middle = (known.upto + beyond) / 2;
      (fits(middle) ? known.upto : beyond) = middle;
      known.ends = known.upto + 1 == beyond;
    }
    while (!known.ends && known.upto < last) {
      known.ends = !fits(known.upto + 1);
      known.upto += known.ends ? 0 : 1;
    }
    return std::min(last, static_cast<int>(known.upto));
  }

  // [part]: no earlier layer can begin this part if all layers from there on are to have an end with no part above
  // `limit`. Empty if the first part cannot begin with the first layer.
  std::vector<int> earliest_starts(double limit) {
    std::vector<int> earliest(chain_.parts + 1, chain_.layers);
    for (int part = chain_.parts - 1; part >= 0; --part) {
      earliest[part] = earliest[part + 1];
      while (earliest[part] > part && seconds_from(part, earliest[part] - 1)[earliest[part + 1]] <= limit) {
        --earliest[part];
      }
    }
    return earliest.front() > 0 ? std::vector<int>{} : earliest;
  }

  // The least sum with no part above `limit`. With a limit, a part ends before the first end that does not fit.
  std::optional<LatencyCuts> solve(double limit) {
    const int parts = chain_.parts;
    const std::vector<int> earliest = earliest_starts(limit);
    if (earliest.empty()) {
      return std::nullopt;
    }
    sum_.assign(static_cast<std::size_t>(parts + 1) * width_, kInfinity);
    from_.assign(sum_.size(), -1);
    sum_[0] = 0;
    for (int part = 0; part < parts; ++part) {
      for (int first = earliest[part]; first < chain_.layers; ++first) {
        const double before = sum_[part * width_ + first] + transfer_[part * width_ + first];
        if (before < kInfinity) {
          extend(part, first, earliest[part + 1], before, limit);
        }
      }
    }
    return trace();
  }

  // Ends before `nearest` lead nowhere. With a limit, or where a part fits if a longer one does, all ends up to the
  // first that does not fit may be taken.
  void extend(int part, int first, int nearest, double before, double limit) {
    const std::vector<double>& seconds = seconds_from(part, first);
    const int begin = std::max(nearest, first + 1), most = chain_.layers - (chain_.parts - 1 - part);
    if (begin > most) {
      return;
    }
    const auto within = std::upper_bound(seconds.begin() + begin, seconds.begin() + most + 1, limit);
    const int last = static_cast<int>(within - seconds.begin()) - 1;
    if (!chain_.fits || chain_.shorter_fit || limit < kInfinity) {
      take(part, first, begin, chain_.fits && last >= begin ? fits_upto(part, first, last) : last, before, seconds);
      return;
    }
    for (int end = begin; end <= last; ++end) {
      const Fit fit =
          improves(before + seconds[end], sum_[(part + 1) * width_ + end]) ? chain_.fits(part, first, end) : Fit::no;
      if (fit == Fit::never) {
        break;
      }
      if (fit == Fit::yes) {
        take(part, first, end, end, before, seconds);
      }
    }
  }

  // Takes a part for all ends of some range that it improves.
  void take(int part, int first, int begin, int last, double before, const std::vector<double>& seconds) {
    double* const sum = sum_.data() + (part + 1) * width_ + begin;
    double* const from = from_.data() + (part + 1) * width_ + begin;
    const auto count = static_cast<std::size_t>(std::max(0, last + 1 - begin));
    note_better(from, sum, seconds.data() + begin, count, before, first);
    take_better(sum, seconds.data() + begin, count, before);
  }

  std::optional<LatencyCuts> trace() {
    LatencyCuts cuts;
    cuts.sum = sum_[chain_.parts * width_ + chain_.layers];
    if (std::isinf(cuts.sum)) {
      return std::nullopt;
    }
    cuts.bounds.assign(chain_.parts + 1, chain_.layers);
    for (int part = chain_.parts; part > 0; --part) {
      cuts.bounds[part - 1] = static_cast<int>(from_[part * width_ + cuts.bounds[part]]);
      cuts.bottleneck = std::max(cuts.bottleneck, seconds_from(part - 1, cuts.bounds[part - 1])[cuts.bounds[part]]);
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
  std::vector<int> kind_;
  std::vector<std::vector<double>> seconds_; // [kind, first][last], filled when asked for
  std::vector<double> transfer_;
  std::vector<double> sum_, from_; // [part, end]: least sum, and the part's first layer
  std::vector<Fitting> fitting_;   // [part, first]
  LatencyCuts best_;
};

} // namespace

std::optional<LatencyCuts> latency_cuts(const LatencyChain& chain) {
  return chain.parts < 1 || chain.parts > chain.layers ? std::nullopt : Cutter(chain).run();
}

} // namespace stagecraft
