// Large counts as people write them: tokens of a training.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "sim/base/error.hpp"

namespace stagecraft {

/// The largest count that is read.
inline constexpr double kMostCounted = 1e18;

/// "300e9", "300B", "300 billion", "1.5T", "15 trillion", "50M": from 1 to kMostCounted. Throws InputError that says
/// what is allowed.
double parse_large_count(std::string_view text, const Where& where);

/// "300 billion", "1.5 trillion", "336 million", "64,000".
std::string in_words(double count);

/// A number in digits, thousands apart: "27,963", "5.2" below 100.
std::string with_commas(double number);
/// At least three digits, thousands apart: "27,963", "19.6", "0.132".
std::string three_digits(double number);

} // namespace stagecraft
