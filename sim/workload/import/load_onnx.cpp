// Loads the module of ONNX when it is first asked for a model.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/process/module.hpp"
#include "sim/workload/import/onnx_module.hpp"

namespace stagecraft {

OnnxModel read_onnx(std::string_view bytes, const std::string& file, const ImportOptions& options) {
  const auto read = module_function<decltype(stagecraft_read_onnx)>("stagecraft_onnx.so", "stagecraft_read_onnx");
  OnnxModel model;
  read(bytes, file, options, model);
  return model;
}

} // namespace stagecraft
