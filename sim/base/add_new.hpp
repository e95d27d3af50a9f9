// Lists of which each element stands once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace stagecraft {

/// Adds a value behind the others, unless it is there already.
template <class T> void add_new(std::vector<T>& values, T value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) {
    values.push_back(std::move(value));
  }
}

} // namespace stagecraft
