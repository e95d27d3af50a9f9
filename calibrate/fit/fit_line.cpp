// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_line.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "calibrate/fit/blocks.hpp"
#include "calibrate/fit/least_squares.hpp"

namespace stagecraft::fit {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Piece {
  Segment segment;
  double error = 0; ///< sum of squared relative errors
};

// Points [begin, end), which stand sorted.
Piece fit_piece(const std::vector<LinePoint>& points, std::size_t begin, std::size_t end) {
  const auto rows = static_cast<Eigen::Index>(end - begin);
  Eigen::MatrixXd relative(rows, 2);
  for (Eigen::Index i = 0; i < rows; ++i) {
    const LinePoint& point = points[begin + static_cast<std::size_t>(i)];
    relative(i, 0) = 1 / point.time.value;
    relative(i, 1) = point.bytes / point.time.value;
  }
  const Eigen::VectorXd ones = Eigen::VectorXd::Ones(rows);
  const Eigen::VectorXd solution = solve_non_negative(relative, ones);
  return {{0, Seconds{solution[0]}, solution[1]}, (relative * solution - ones).squaredNorm()};
}

// Where a new size begins, and the end: a segment never cuts the points of one size.
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

// The best cut of the first sizes into so many segments, and where the last of them begins.
struct Cut {
  double error = kNever;
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
    Segment segment = fit_piece(points, bounds[begin], bounds[end]).segment;
    // Half way, in logarithms, to the next size.
    segment.upto = end == sizes ? kNever : std::sqrt(points[bounds[end] - 1].bytes * points[bounds[end]].bytes);
    line.segments.insert(line.segments.begin(), segment);
    end = begin;
  }
  return line;
}

PiecewiseLine fit_line_validated(const std::vector<LinePoint>& points, std::uint64_t seed) {
  constexpr int kRounds = 6, kMostSegments = 8;
  constexpr double kShare = 0.2;
  std::vector<std::vector<double>> keys;
  for (const LinePoint& point : points) {
    keys.push_back({point.bytes});
  }
  int best_count = 1;
  FitError best;
  for (int count = 1; count <= kMostSegments; ++count) {
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
      const PiecewiseLine line = fit_line(known, count);
      for (std::size_t i = 0; i < points.size(); ++i) {
        if (held[i]) {
          errors.push_back(line.time(points[i].bytes).value / points[i].time.value - 1);
        }
      }
    }
    const FitError error = error_of(errors, scheme_text({kShare, kRounds, seed}));
    // A segment more must be worth it.
    if (count == 1 || error.mean < 0.97 * best.mean) {
      best = error;
      best_count = count;
    }
  }
  PiecewiseLine line = fit_line(points, best_count);
  line.error = best;
  return line;
}

} // namespace stagecraft::fit
