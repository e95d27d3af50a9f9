// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/signature.hpp"

#include <algorithm>

namespace stagecraft {

double elements_of(const TensorDimensions& dimensions) {
  return std::accumulate(dimensions.begin(), dimensions.end(), 1.0, [](double product, const TensorDimension& one) {
    return product * static_cast<double>(one.size());
  });
}

int dimension_of(const TensorDimensions& dimensions, int letter) {
  if (letter < 0) {
    return -1;
  }
  const auto found = std::find_if(dimensions.begin(), dimensions.end(), [&](const TensorDimension& dimension) {
    return dimension.letter == letter || dimension.sorted_by == letter;
  });
  return found == dimensions.end() ? -1 : static_cast<int>(found - dimensions.begin());
}

std::vector<std::vector<OutputReader>> readers_of(const std::vector<Signature>& operators) {
  std::vector<std::vector<OutputReader>> readers(operators.size());
  for (std::size_t op = 0; op < operators.size(); ++op) {
    for (std::size_t input = 0; input < operators[op].inputs.size(); ++input) {
      if (const int maker = operators[op].inputs[input].maker; maker >= 0) {
        readers[maker].push_back({static_cast<int>(op), static_cast<int>(input)});
      }
    }
  }
  return readers;
}

} // namespace stagecraft
