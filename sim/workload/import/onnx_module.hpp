// The one function of the module stagecraft_onnx.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/import/onnx_model.hpp"

namespace stagecraft {

/// What read_onnx() returns, or throws.
extern "C" [[gnu::visibility("default")]] void stagecraft_read_onnx(std::string_view bytes, const std::string& file,
                                                                    const ImportOptions& options, OnnxModel& model);

} // namespace stagecraft
