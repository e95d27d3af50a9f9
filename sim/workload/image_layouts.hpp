// How images lie in memory, which decides whether convolutions transpose them and which kernels look over windows
// (docs/model.md, "Channels first").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "sim/base/kernel/kernel.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

struct ImageLayoutRow {
  std::string_view name, help;
  bool transposes = false; ///< convolutions on tensor cores, which read channels last
};
inline constexpr std::array kImageLayouts = {
    ImageLayoutRow{"channels-last", "as kernels of tensor cores read images"},
    ImageLayoutRow{"channels-first", "PyTorch's default: such kernels transpose what they read and write", true},
};

/// The model whose convolutions transpose what they read and write where the layout and the precision ask for it, each
/// with a kernel that reads and writes it once, and whose kernels over windows are those for this layout. Grouped
/// convolutions have kernels for either layout.
ModelGraph with_image_layout(ModelGraph model, const ImageLayoutRow& row, Precision precision);

} // namespace stagecraft
