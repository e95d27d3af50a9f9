// SPDX-License-Identifier: Apache-2.0
#include "sim/result/fit_change.hpp"

#include <limits>

#include "sim/base/units.hpp"

namespace stagecraft {
namespace {

// Bytes to buy: 0 for a setting.
double bytes_of(std::string_view change) {
  if (change.empty()) {
    return std::numeric_limits<double>::infinity();
  }
  const std::size_t more = change.find(" more memory per device");
  return more == std::string_view::npos ? 0 : find_amount(change.substr(0, more)).value_or(0);
}

} // namespace

bool is_smaller_change(std::string_view one, std::string_view other) { return bytes_of(one) < bytes_of(other); }

} // namespace stagecraft
