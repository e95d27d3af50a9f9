// How fast a device is under a power cap: docs/model.md, "Power caps".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/base/units.hpp"

namespace stagecraft {

struct DeviceType; // sim/platform/platform.hpp

/// What a device draws at a clock, as a share c of its highest: fixed + (full - fixed) c v(c)^2. The voltage v falls
/// from 1 at the highest clock in a straight line to its least at `knee`, and no lower (Weste and Harris, "CMOS VLSI
/// Design", dynamic power; constants by fits to runs under caps, docs/calibration.md).
struct Clocks {
  Watts fixed;                ///< at any clock: leakage, memory
  Watts full;                 ///< at the highest clock, which the board's own limit may not allow
  double knee = 0.84;         ///< share of the highest clock
  double voltage = 0.7;       ///< the least, as a share of that at the highest clock
  double memory_clock = 0.84; ///< share of the highest clock from which on memory is as fast as it can be

  /// The power at a clock, which is a share of the highest.
  Watts power(double clock) const;
  /// The highest clock, at most 1, that draws no more than `limit`; 0 where none does.
  double clock_under(Watts limit) const;

  bool operator==(const Clocks&) const = default;
};

/// Of a type whose file states none: an assumption from four GPUs that were measured.
Clocks usual_clocks(const DeviceType& type);

/// The least that a device type can be capped to: it then runs at a tenth of its highest clock.
Watts least_cap(const DeviceType& type);

/// The type under a cap of at least least_cap(): named "NAME-150w", arithmetic as slow as its clocks, memory as they
/// allow, `busy` at most the cap and `full`. The type itself where the cap is no less than its `busy`. Nominal peaks
/// stay.
DeviceType capped(DeviceType type, Watts cap);

} // namespace stagecraft
