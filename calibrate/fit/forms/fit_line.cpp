// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/forms/fit_line.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "sim/base/improves.hpp"
#include "sim/base/statistics.hpp"

#include "calibrate/fit/forms/blocks.hpp"
#include "calibrate/fit/forms/least_squares.hpp"

namespace stagecraft::fit {
namespace {

struct Piece {
  LineSegment segment;
  double error = 0; ///< sum of absolute relative errors
};

// Fits one segment to points [begin, end) of a sorted list.
Piece fit_piece(const std::vector<LinePoint>& points, std::size_t begin, std::size_t end) {
  const auto rows = static_cast<Eigen::Index>(end - begin);
  Eigen::MatrixXd relative(rows, 2);
  for (Eigen::Index i = 0; i < rows; ++i) {
    const LinePoint& point = points[begin + static_cast<std::size_t>(i)];
    relative(i, 0) = 1 / point.time.value;
    relative(i, 1) = point.bytes / point.time.value;
  }
  constexpr double kSquaredUpTo = 0.02;
  constexpr int kReweightings = 3;
  Eigen::VectorXd trust = Eigen::VectorXd::Ones(rows), solution, errors;
  for (int round = 0; round < kReweightings; ++round) {
    solution = solve_non_negative(trust.asDiagonal() * relative, trust);
    errors = ((relative * solution).array() - 1).abs();
    trust = (kSquaredUpTo / errors.array().max(kSquaredUpTo)).sqrt();
  }
  return {{0, Seconds{solution[0]}, solution[1]}, errors.sum()};
}

// Where each size begins, and the end. A segment never separates points of one size.
std::vector<std::size_t> size_bounds(const std::vector<LinePoint>& points) {
  std::vector<std::size_t> bounds;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i == 0 || points[i].bytes > points[i - 1].bytes) {
      bounds.push_back(i);
    }
  }
  bounds.push_back(points.size());
  return bounds;
}

// The best division of the first sizes into some number of segments, and where the last segment begins.
struct Cut {
  double error = kInfinity;
  std::size_t last_begins = 0;
};

} // namespace

PiecewiseLine fit_line(std::vector<LinePoint> points, int segments) {
  std::stable_sort(points.begin(), points.end(), [](auto& a, auto& b) { return a.bytes < b.bytes; });
  const std::vector<std::size_t> bounds = size_bounds(points);
  const std::size_t sizes = bounds.size() - 1, least = std::min<std::size_t>(2, sizes);
  const auto most = std::clamp<std::size_t>(static_cast<std::size_t>(segments), 1, std::max<std::size_t>(1, sizes / 2));
  std::vector<std::vector<Cut>> cuts(most + 1, std::vector<Cut>(sizes + 1));
  cuts[0][0].error = 0;
  for (std::size_t begin = 0; begin < sizes; ++begin) {
    for (std::size_t end = begin + least; end <= sizes; ++end) {
      const double error = fit_piece(points, bounds[begin], bounds[end]).error;
      for (std::size_t count = 1; count <= most; ++count) {
        if (cuts[count - 1][begin].error + error < cuts[count][end].error) {
          cuts[count][end] = {cuts[count - 1][begin].error + error, begin};
        }
      }
    }
  }
  std::size_t count = 1;
  for (std::size_t more = 2; more <= most; ++more) {
    count = cuts[more][sizes].error < cuts[count][sizes].error ? more : count;
  }
  PiecewiseLine line;
  for (std::size_t end = sizes; count > 0; --count) {
    const std::size_t begin = cuts[count][end].last_begins;
    LineSegment segment = fit_piece(points, bounds[begin], bounds[end]).segment;
    // half way to the next size, in logarithms
    segment.upto = end == sizes ? kInfinity : std::sqrt(points[bounds[end] - 1].bytes * points[bounds[end]].bytes);
    line.segments.insert(line.segments.begin(), segment);
    end = begin;
  }
  return line;
}

PiecewiseLine interpolate(std::vector<LinePoint> points) {
  std::stable_sort(points.begin(), points.end(), [](auto& a, auto& b) { return a.bytes < b.bytes; });
  const std::vector<std::size_t> bounds = size_bounds(points);
  std::vector<LinePoint> knots;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    std::vector<double> times;
    for (std::size_t at = bounds[i]; at < bounds[i + 1]; ++at) {
      times.push_back(points[at].time.value);
    }
    knots.push_back({points[bounds[i]].bytes, Seconds{quantile(times, 0.5)}});
  }
  PiecewiseLine line;
  for (std::size_t i = 0; i + 1 < knots.size(); ++i) {
    const LinePoint &low = knots[i], &high = knots[i + 1];
    const double slope = std::max(0.0, (high.time - low.time).value / (high.bytes - low.bytes));
    // Where time falls with size, the mean of both ends holds between them.
    const Seconds at_low = slope > 0 ? low.time : (low.time + high.time) / 2;
    line.segments.push_back({high.bytes, at_low - Seconds{slope * low.bytes}, slope});
  }
  if (line.segments.empty()) {
    line.segments.push_back({kInfinity, knots.front().time, 0});
  }
  // Below the smallest size the line must not become negative: it goes through the origin.
  LineSegment& first = line.segments.front();
  if (first.start.value < 0) {
    line.segments.insert(line.segments.begin(),
                         {knots.front().bytes, Seconds{0}, knots.front().time.value / knots.front().bytes});
  }
  line.segments.back().upto = kInfinity;
  return line;
}

namespace {

// Errors at sizes held back, predicted by what `fit` makes of the other sizes.
template <class Fit> FitError validated(const std::vector<LinePoint>& points, std::uint64_t seed, const Fit& fit) {
  constexpr int kRounds = 6;
  constexpr double kShare = 0.2;
  std::vector<std::vector<double>> keys;
  for (const LinePoint& point : points) {
    keys.push_back({point.bytes});
  }
  std::vector<double> errors;
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<bool> held = hold_back(keys, kShare, seed + static_cast<std::uint64_t>(round));
    std::vector<LinePoint> known;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!held[i]) {
        known.push_back(points[i]);
      }
    }
    if (known.empty()) {
      continue;
    }
    const PiecewiseLine line = fit(known);
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (held[i]) {
        errors.push_back(line.time(points[i].bytes).value / points[i].time.value - 1);
      }
    }
  }
  return error_of(errors, scheme_text({kShare, kRounds, seed}));
}

} // namespace

PiecewiseLine fit_line_validated(const std::vector<LinePoint>& points, std::uint64_t seed) {
  constexpr int kMostSegments = 8;
  PiecewiseLine best = fit_line(points, 1);
  best.error = validated(points, seed, [](const auto& known) { return fit_line(known, 1); });
  const auto take_if_better = [&](const FitError& error, const auto& fit) {
    // An additional segment must gain enough.
    if (error.points > 0 && error.mean < 0.98 * best.error.mean) {
      best = fit(points);
      best.error = error;
    }
  };
  for (int count = 2; count <= kMostSegments; ++count) {
    const auto fit = [count](const std::vector<LinePoint>& known) { return fit_line(known, count); };
    take_if_better(validated(points, seed, fit), fit);
  }
  const auto straight = [](const std::vector<LinePoint>& known) { return interpolate(known); };
  take_if_better(validated(points, seed, straight), straight);
  return best;
}

namespace {

// One point a size, ascending: the least time of it.
std::vector<LinePoint> least_times(std::vector<LinePoint> points) {
  std::sort(points.begin(), points.end(),
            [](auto& a, auto& b) { return std::tie(a.bytes, a.time) < std::tie(b.bytes, b.time); });
  const auto same = std::unique(points.begin(), points.end(), [](auto& a, auto& b) { return a.bytes == b.bytes; });
  points.erase(same, points.end());
  return points;
}

// Whether the chord from one point to another meets all between them.
bool is_chord(const std::vector<LinePoint>& points, std::size_t from, std::size_t to) {
  constexpr double kOff = 0.02;
  const LinePoint &low = points[from], &high = points[to];
  for (std::size_t i = from + 1; i < to; ++i) {
    const double share = (points[i].bytes - low.bytes) / (high.bytes - low.bytes);
    const Seconds on_chord = low.time * (1 - share) + high.time * share;
    if (std::abs(on_chord / points[i].time - 1) > kOff) {
      return false;
    }
  }
  return true;
}

void never_fall(std::vector<LinePoint>& points) {
  for (std::size_t i = points.size() - 1; i > 0; --i) {
    points[i - 1].time = std::min(points[i - 1].time, points[i].time);
  }
}

Seconds time_on_line(const LinePoint& one, const LinePoint& other, double bytes) {
  return one.time + (other.time - one.time) * ((bytes - one.bytes) / (other.bytes - one.bytes));
}

// Two points at the size at which a library changes between the i-th point and the next: the time just before, and just
// after. In between lies what the chord of both says, and what the sizes of the same protocol say.
std::array<LinePoint, 2> change_between(const std::vector<LinePoint>& points, std::size_t i, double bytes) {
  const LinePoint &low = points[i], &high = points[i + 1];
  const Seconds chord = time_on_line(low, high, bytes);
  const auto half_way = [&](const LinePoint& one, const LinePoint& other) {
    return (chord + std::clamp(time_on_line(one, other, bytes), low.time, high.time)) / 2;
  };
  const Seconds before = half_way(points[i - 1], low), after = half_way(high, points[i + 2]);
  const Seconds mean = (before + after) / 2;
  return {{{bytes, std::min(before, mean)}, {bytes, std::max(after, mean)}}};
}

std::vector<LinePoint> with_changes(const std::vector<LinePoint>& points, const std::vector<double>& changes) {
  constexpr double kDense = 2.01; // that neighbours need nothing between them
  std::vector<LinePoint> all;
  for (std::size_t i = 0; i < points.size(); ++i) {
    all.push_back(points[i]);
    if (i == 0 || i + 2 >= points.size() || points[i + 1].bytes < kDense * points[i].bytes) {
      continue;
    }
    const auto change = std::upper_bound(changes.begin(), changes.end(), points[i].bytes);
    if (change != changes.end() && *change < points[i + 1].bytes) {
      const auto both = change_between(points, i, *change);
      all.insert(all.end(), both.begin(), both.end());
    }
  }
  return all;
}

// From one knot to the next, the longest chord whose shorter ones hold as well.
std::vector<LinePoint> choose_knots(const std::vector<LinePoint>& points) {
  std::vector<LinePoint> knots = {points.front()};
  for (std::size_t from = 0; from + 1 < points.size();) {
    std::size_t to = from + 1;
    while (to + 1 < points.size() && is_chord(points, from, to + 1)) {
      ++to;
    }
    knots.push_back(points[to]);
    from = to;
  }
  return knots;
}

PiecewiseLine line_through(const std::vector<LinePoint>& knots) {
  PiecewiseLine line;
  line.segments.push_back({knots.front().bytes, knots.front().time, 0});
  for (std::size_t i = 0; i + 1 < knots.size(); ++i) {
    const LinePoint &low = knots[i], &high = knots[i + 1];
    if (high.bytes > low.bytes) { // else a change
      const double slope = (high.time - low.time).value / (high.bytes - low.bytes);
      line.segments.push_back({high.bytes, low.time - Seconds{slope * low.bytes}, slope});
    }
  }
  line.segments.back().upto = kInfinity;
  return line;
}

PiecewiseLine line_of(std::vector<LinePoint> points, const std::vector<double>& changes) {
  never_fall(points);
  return line_through(choose_knots(with_changes(points, changes)));
}

// Errors at every second size but the last, of the line through the others.
FitError error_between(const std::vector<LinePoint>& points, const std::vector<double>& changes) {
  std::vector<LinePoint> known;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i % 2 == 0 || i + 1 == points.size()) {
      known.push_back(points[i]);
    }
  }
  const PiecewiseLine line = line_of(known, changes);
  std::vector<double> errors;
  for (std::size_t i = 1; i + 1 < points.size(); i += 2) {
    errors.push_back(line.time(points[i].bytes) / points[i].time - 1);
  }
  return error_of(errors, "every second size held back");
}

} // namespace

PiecewiseLine fit_collective(std::vector<LinePoint> points, const std::vector<double>& changes) {
  constexpr std::size_t kFewest = 3;
  points = least_times(std::move(points));
  if (points.size() < kFewest) {
    return fit_line(points, 1);
  }
  PiecewiseLine line = line_of(points, changes);
  line.error = error_between(points, changes);
  return line;
}

} // namespace stagecraft::fit
