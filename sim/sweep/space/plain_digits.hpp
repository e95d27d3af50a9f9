// Numbers without an exponent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace stagecraft {

/// As to_digits(), but 0.00002 and 12346, with four digits, where that has an exponent: all digits before the point are
/// written. Below 1e-30 there is an exponent after all.
std::string plain_digits(double value, int digits);

} // namespace stagecraft
