// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/program/program.hpp"

namespace stagecraft {

double local_elements(const ProgramTensor& tensor, const Layout& layout) {
  double elements = 1;
  for (const TensorDimension& dimension : tensor.dimensions) {
    elements *= static_cast<double>(dimension.size());
  }
  for (std::size_t axis = 0; axis < layout.dimensions.size(); ++axis) {
    elements /= tensor.placements[axis].is_shard() ? layout.dimensions[axis].size : 1;
  }
  return elements;
}

} // namespace stagecraft
