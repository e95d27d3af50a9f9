// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/perseus_power.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

namespace stagecraft::perseus {
namespace {

/// A reference that is stated rather than read: fitted to the runs of Chung et al. 2024, as
/// docs/validation/clocks.md says.
struct StatedPower {
  std::string_view gpu;
  double busy, blocked; ///< W
};
constexpr std::array kStated = {StatedPower{"A100", 306.6, 138.8}, StatedPower{"A40", 297.0, 124.0}};
// Of energies predicted from the reference of another configuration: as measured within a type, and between the two.
constexpr double kLeastSpread = 0.03, kStatedSpread = 0.05;

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double blocked_seconds(const MeasuredRun& run) { return run.ranks() * run.seconds - sum(run.rank_busy); }

double spread_of_busy(const MeasuredRun& run) {
  const auto [least, most] = std::minmax_element(run.rank_busy.begin(), run.rank_busy.end());
  return (*most - *least) / run.seconds;
}

// Joules of a rank = busy W x busy s + blocked W x the rest, by least squares over the ranks; nothing where they are
// too alike to tell the two apart.
std::optional<std::pair<double, double>> fit_ranks(const MeasuredRun& run) {
  double bb = 0;
  double bw = 0;
  double ww = 0;
  double bj = 0;
  double wj = 0;
  for (int rank = 0; rank < run.ranks(); ++rank) {
    const double busy = run.rank_busy[rank];
    const double waiting = run.seconds - busy;
    bb += busy * busy;
    bw += busy * waiting;
    ww += waiting * waiting;
    bj += busy * run.rank_joules[rank];
    wj += waiting * run.rank_joules[rank];
  }
  const double determinant = bb * ww - bw * bw;
  const std::pair power{(bj * ww - wj * bw) / determinant, (bb * wj - bw * bj) / determinant};
  const bool known = determinant > 1e-9 * bb * ww && power.second >= 0 && power.first >= power.second;
  return known ? std::optional(power) : std::nullopt;
}

// The reference of a GPU type whose ranks differ most in how busy they are, if that tells its powers.
const MeasuredRun* widest_reference(const Data& data, const std::string& gpu) {
  const MeasuredRun* widest = nullptr;
  for (const MeasuredRun& run : data.runs) {
    if (run.gpu == gpu && run.plan == kReference &&
        (widest == nullptr || spread_of_busy(run) > spread_of_busy(*widest))) {
      widest = &run;
    }
  }
  return widest;
}

GpuPower power_of_reference(const MeasuredRun& run) {
  GpuPower power{.mean = sum(run.rank_joules) / run.seconds / run.ranks(), .from = run.name()};
  if (const auto fitted = fit_ranks(run)) {
    std::tie(power.busy, power.blocked) = *fitted;
  } else {
    power.why_not = "the ranks of '" + power.from + "' are too alike to tell busy from blocked power";
  }
  return power;
}

// How far off the energies of the type's other references are when this power predicts them.
double spread_of(const GpuPower& power, const Data& data, const std::string& gpu) {
  double spread = kLeastSpread;
  for (const MeasuredRun& run : data.runs) {
    if (run.gpu == gpu && run.plan == kReference) {
      const double joules = power.busy * sum(run.rank_busy) + power.blocked * blocked_seconds(run);
      spread = std::max(spread, std::abs(joules / sum(run.rank_joules) - 1));
    }
  }
  return spread;
}

GpuPower power_as_stated(const std::string& gpu) {
  const auto stated =
      std::find_if(kStated.begin(), kStated.end(), [&](const StatedPower& row) { return row.gpu == gpu; });
  if (stated == kStated.end()) {
    return {.why_not = "no run '" + std::string(kReference) + "' on " + gpu +
                       " to take powers from, and none is stated for it"};
  }
  return {.busy = stated->busy,
          .blocked = stated->blocked,
          .mean = (stated->busy + stated->blocked) / 2,
          .from = "what is stated of " + gpu,
          .spread = kStatedSpread};
}

} // namespace

GpuPower power_of(const Data& data, const std::string& configuration, const std::string& gpu) {
  const MeasuredRun* const widest = widest_reference(data, gpu);
  GpuPower nearest = widest != nullptr ? power_of_reference(*widest) : power_as_stated(gpu);
  const auto own = std::find_if(data.runs.begin(), data.runs.end(), [&](const MeasuredRun& run) {
    return run.configuration == configuration && run.plan == kReference;
  });
  if (own == data.runs.end()) {
    if (nearest.why_not.empty() && widest != nullptr) {
      nearest.spread = spread_of(nearest, data, gpu);
    }
    return nearest;
  }
  if (&*own == widest || !nearest.why_not.empty()) {
    return nearest;
  }
  GpuPower power = power_of_reference(*own);
  power.why_not.clear();
  power.blocked = nearest.blocked;
  power.busy = (sum(own->rank_joules) - power.blocked * blocked_seconds(*own)) / sum(own->rank_busy);
  return power;
}

} // namespace stagecraft::perseus
