// Traces of PyTorch's profiler: which kernels of the GPU each operator launched, and with which inputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace stagecraft::foreign {

/// One input of an operator as recorded with record_shapes.
struct OperatorInput {
  std::string type;            ///< "float", "c10::BFloat16", "Scalar", ""
  std::string value;           ///< of what is no tensor, where it was recorded: "[1, 1]", "True"
  std::vector<double> dims;    ///< empty for what is no tensor
  std::vector<double> strides; ///< empty where they were not recorded
};

struct TraceKernel {
  std::string name;
  Seconds time;
};

/// One call of an operator that launched kernels.
struct OperatorCall {
  std::string name; ///< "aten::mm"
  std::vector<OperatorInput> inputs;
  bool in_backward = false; ///< below the autograd engine
  std::vector<TraceKernel> kernels;
};

/// A collective of NCCL: its kernel's time, in which it may have waited for other ranks.
struct TraceCollective {
  std::string name, type; ///< "_allgather_base", "BFloat16"
  double elements_in = 0, elements_out = 0;
  int ranks = 0;
  Seconds time;
};

struct KinetoTrace {
  std::string device; ///< "" where the trace has no device properties
  Bytes memory;
  std::vector<OperatorCall> calls;  ///< in the order of their first kernels
  std::vector<TraceKernel> unowned; ///< whose operator the trace does not tell
  std::vector<TraceCollective> collectives;
  Seconds kernel_time; ///< of all kernels
};

/// Reads the JSON of one rank. A kernel belongs to the innermost operator that launched it, by the correlation of its
/// launch, or by its own External id. InputError for events without what they need, and for a compressed file.
KinetoTrace read_kineto(std::string_view text, const std::string& file);

} // namespace stagecraft::foreign
