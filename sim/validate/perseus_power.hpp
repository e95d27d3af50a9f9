// What the GPUs of measured pipelines draw at their highest clock. docs/validation/clocks.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/validate/perseus_data.hpp"

namespace stagecraft::perseus {

/// The power of one GPU of a configuration, busy and blocked in communication.
struct GpuPower {
  double busy = 0, blocked = 0; ///< W
  double mean = 0;              ///< W, over the reference run: a baseline
  std::string from;             ///< the reference: a run, or what is stated of the GPU type
  /// Of a configuration without a reference of its own: by how much energies may be off that are predicted from the
  /// nearest one; 0 where the reference is its own.
  double spread = 0;
  std::string why_not; ///< why no power is known, or ""

  bool borrowed() const { return spread > 0; }
};

/// The power of a configuration whose GPUs are of type `gpu`. From its own reference run where it is there: busy power
/// is the configuration's, blocked power that of the type's reference whose ranks differ most in how busy they are,
/// since nothing else tells the two apart. Else from that reference of the same type; else from what is stated here of
/// the type.
GpuPower power_of(const Data& data, const std::string& configuration, const std::string& gpu);

} // namespace stagecraft::perseus
