// Traces of PyTorch's profiler: the GPU kernels that each operator launched, and the operator's inputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace stagecraft::foreign {

/// An operator's input, as record_shapes records it.
struct OperatorInput {
  std::string type;            ///< "float", "c10::BFloat16", "Scalar", ""
  std::string value;           ///< value of an input that is no tensor, if recorded: "[1, 1]", "True"
  std::vector<double> dims;    ///< empty if it is no tensor
  std::vector<double> strides; ///< empty if not recorded
};

struct TraceKernel {
  std::string name;
  Seconds time;
};

/// A call of an operator that launched kernels.
struct OperatorCall {
  std::string name; ///< "aten::mm"
  std::vector<OperatorInput> inputs;
  bool in_backward = false; ///< the autograd engine called it
  std::vector<TraceKernel> kernels;
};

/// A collective of NCCL, with the time of its kernel, which includes waiting for other ranks.
struct TraceCollective {
  std::string name, type; ///< "_allgather_base", "BFloat16"
  double elements_in = 0, elements_out = 0;
  int ranks = 0;
  Seconds time;
};

struct KinetoTrace {
  std::string device; ///< "" if the trace has no device properties
  Bytes memory;
  std::vector<OperatorCall> calls;  ///< ordered by their first kernels
  std::vector<TraceKernel> unowned; ///< kernels whose operator the trace does not name
  std::vector<TraceCollective> collectives;
  Seconds kernel_time; ///< sum over all kernels
};

/// Reads the JSON of one rank. A kernel belongs to the innermost operator that launched it, found by the correlation of
/// its launch or by its own External id. InputError for events that lack necessary fields, and for a compressed file.
KinetoTrace read_kineto(std::string_view text, const std::string& file);

} // namespace stagecraft::foreign
