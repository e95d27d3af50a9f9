// How much slower a device computes while an exchange takes a part of it: docs/model.md, "Beside exchanges".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/platform/platform.hpp"

namespace stagecraft {

/// How many times as long kernels take that have all but this part of what they run on. The part is never all: a device
/// that has few multiprocessors starts fewer channels.
double slower_without(double part);

/// The same of products without so many of the type's multiprocessors; 1 where their number is not known.
double slower_without_processors(const DeviceType& type, double processors);

} // namespace stagecraft
