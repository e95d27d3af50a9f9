// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/steps_beside.hpp"

#include <algorithm>
#include <limits>

namespace stagecraft {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// How a computation is slowed down at a time, and until when.
struct Slowing {
  double factor = 1, until = kNever;
};

// `at`: the first of some times that may not be over.
Slowing slowing_at(double now, TaskKind kind, std::span<const SlowedTime> times, std::size_t& at) {
  while (at < times.size() && times[at].end <= now) {
    ++at;
  }
  if (at == times.size()) {
    return {};
  }
  return times[at].begin > now ? Slowing{1, times[at].begin}
                               : Slowing{factor_of(times[at].beside, kind), times[at].end};
}

} // namespace

double factor_of(const BesideExchange& beside, TaskKind kind) {
  const bool pass = kind == TaskKind::forward || kind == TaskKind::backward || kind == TaskKind::weight ||
                    kind == TaskKind::recompute;
  return pass ? beside.matrix : beside.other;
}

// A run through the steps from one computation on, before which all exchanges have ended.
class StepsBeside::Run {
public:
  Run(const StepsBeside& steps, double scale, std::span<const SlowedTime> others, double rounding)
      : steps_(steps), scale_(scale), others_(others), rounding_(rounding) {}

  /// Returns the end. `starts`: where each computation begins; may be null.
  double from(std::size_t first, double start, std::vector<double>* starts = nullptr) {
    double now = start;
    free_ = start;
    const std::size_t before = steps_.begun_[first];
    for (std::size_t i = first; i < steps_.computations_.size(); ++i) {
      if (const std::size_t needs = steps_.computations_[i].needs; needs > before) {
        now = std::max(now, ends_[needs - 1 - before]);
      }
      if (starts != nullptr) {
        starts->push_back(now);
      }
      if (i > first && starts == nullptr && is_settled(i) && is_alone(now, i)) {
        return now + left(i);
      }
      now = compute(now, scale_ * steps_.computations_[i].seconds.value);
      for (std::size_t next = before + ends_.size();
           next < steps_.exchanges_.size() && steps_.exchanges_[next].after == i; ++next) {
        begin(now, steps_.exchanges_[next]);
      }
    }
    return now;
  }

private:
  bool is_settled(std::size_t computation) const {
    return std::binary_search(steps_.settled_.begin(), steps_.settled_.end(), computation);
  }

  // What remains beside its own exchanges alone.
  double left(std::size_t computation) const { return scale_ * (steps_.own_ - steps_.starts_[computation]); }

  bool is_alone(double now, std::size_t computation) {
    slowing_at(now, steps_.kind_, others_, other_);
    return other_ == others_.size() || others_[other_].begin >= now + left(computation) - rounding_;
  }

  void begin(double now, const Exchange& exchange) {
    const double at = std::max(now, free_);
    for (const SlowedTime& time : exchange.slowed) {
      own_.push_back({at + scale_ * time.begin, at + scale_ * time.end, time.beside});
    }
    free_ = at + scale_ * exchange.length;
    ends_.push_back(free_);
  }

  // The end of a computation: the integral of its speed is its work.
  double compute(double now, double work) {
    while (work > 0) {
      const Slowing own = slowing_at(now, steps_.kind_, own_, at_);
      const Slowing other = slowing_at(now, steps_.kind_, others_, other_);
      const double factor = std::max(own.factor, other.factor), until = std::min(own.until, other.until);
      if (work * factor <= until - now + rounding_) {
        return now + work * factor;
      }
      work -= (until - now) / factor;
      now = until;
    }
    return now;
  }

  const StepsBeside& steps_;
  double scale_;
  std::span<const SlowedTime> others_;
  double rounding_;
  std::vector<SlowedTime> own_;
  std::vector<double> ends_; // of exchanges, from the first computation's on
  double free_ = 0;          // when the last exchange ends
  std::size_t at_ = 0, other_ = 0;
};

StepsBeside::StepsBeside(const PassSteps& steps, TaskKind kind,
                         const std::function<BesideExchange(const Work& flow)>& beside)
    : kind_(kind), computations_(steps.computations) {
  for (const PassSteps::Exchange& one : steps.exchanges) {
    Exchange& made = exchanges_.emplace_back(Exchange{one.after, {}, 0});
    std::vector<const Work*> flows;
    for (const Work& flow : one.flows) {
      flows.push_back(&flow);
    }
    std::sort(flows.begin(), flows.end(), [](const Work* a, const Work* b) { return a->seconds < b->seconds; });
    for (auto flow = flows.begin(); flow != flows.end(); ++flow) { // of those that go on the one that takes most counts
      const double end = (*flow)->seconds.value;
      if (end > made.length) {
        BesideExchange most;
        for (auto other = flow; other != flows.end(); ++other) {
          const BesideExchange one_of = beside(**other);
          most = {std::max(most.matrix, one_of.matrix), std::max(most.other, one_of.other)};
        }
        made.slowed.push_back({made.length, end, most});
        made.length = end;
      }
    }
  }
  for (std::size_t i = 0, begun = 0; i < computations_.size(); ++i) {
    begun_.push_back(begun);
    if (computations_[i].needs >= begun) {
      settled_.push_back(i);
    }
    while (begun < exchanges_.size() && exchanges_[begun].after == i) {
      ++begun;
    }
  }
  own_ = Run(*this, 1, {}, 0).from(0, 0, &starts_);
  std::vector<Exchange> slowing = exchanges_;
  for (Exchange& one : exchanges_) {
    one.slowed.clear();
  }
  std::vector<double> starts;
  plain_ = Run(*this, 1, {}, 0).from(0, 0, &starts);
  exchanges_ = std::move(slowing);
}

double StepsBeside::seconds(double start, double scale, std::span<const SlowedTime> others, double rounding) const {
  if (others.empty() || others.front().begin >= start + scale * own_ - rounding) {
    return scale * own_;
  }
  // Until the first of them begins everything is as without.
  const auto later = std::upper_bound(settled_.begin(), settled_.end(), others.front().begin,
                                      [&](double at, std::size_t i) { return at < start + scale * starts_[i]; });
  const std::size_t first = later == settled_.begin() ? 0 : *(later - 1);
  return Run(*this, scale, others, rounding).from(first, start + scale * starts_[first]) - start;
}

} // namespace stagecraft
