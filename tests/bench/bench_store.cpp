// Points into a file of results, as the parent of a sweep stores them, for the instruction counter: 22 figures, and
// keys in no order.
//   bench_store FILE POINTS
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "sim/sweep/store/sweep_store.hpp"

int main(int count, char** arguments) {
  using namespace stagecraft;
  if (count != 3) {
    std::fprintf(stderr, "usage: bench_store FILE POINTS\n");
    return 2;
  }
  const auto points = static_cast<std::uint64_t>(std::atoll(arguments[2]));
  SweepStore store(arguments[1], SweepStore::Mode::write);
  const std::int64_t sweep = store.add_sweep({});
  constexpr std::size_t kTask = 500, kCommitted = 8000, kMeasured = 22;
  for (std::uint64_t number = 0; number < points;) {
    PackedPoints packed;
    for (std::size_t i = 0; i < kTask; ++i, ++number) {
      PointRow row;
      row.key = Fingerprint().add(number).digest();
      row.number = number;
      row.settings = R"({"platform.network.bandwidth":"12.3456789012 Gb/s"})";
      row.strategy = "uniform";
      row.schedule = row.order = "1f1b";
      row.recompute = "none";
      row.engine = "analytic";
      for (std::size_t figure = 0; figure < kFigures; ++figure) {
        row.figures.at(figure) = figure < kMeasured ? std::sqrt(static_cast<double>(number + figure)) : std::nan("");
      }
      packed.add(row);
    }
    store.add(sweep, std::move(packed));
    if (store.added() >= kCommitted) {
      store.commit();
    }
  }
  store.commit();
  return 0;
}
