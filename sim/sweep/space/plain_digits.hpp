// Numbers without an exponent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace stagecraft {

/// As to_digits(), but without an exponent: with four digits, 0.00002 and 12346. All digits before the point are
/// written. Numbers below 1e-30 still have an exponent.
std::string plain_digits(double value, int digits);

} // namespace stagecraft
