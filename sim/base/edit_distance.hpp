// How far two names are apart as typing errors count.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// The number of letters that are put in, left out, changed or swapped with the next one to make one name of the other;
/// letters of another case are the same.
std::size_t edit_distance(std::string_view one, std::string_view other);

/// The one of the names that `name` misspells: the nearest one, at most two typing errors away, one where `name` is
/// shorter than eight letters; "" where there is none, where `name` is one of them, and where it is shorter than four.
std::string misspelt(std::string_view name, const std::vector<std::string>& names);

} // namespace stagecraft
