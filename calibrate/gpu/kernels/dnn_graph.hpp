// Graphs of operations for cuDNN's backend: tensors, operations on them, and cuDNN's plan to run them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/gpu/device/cudnn.hpp"

namespace stagecraft::gpu {

using Extents = std::vector<std::int64_t>;

/// What cuDNN plans for: a device, by its handle or else by its description, and the workspace that plans may use.
struct DnnTarget {
  const Cudnn* dnn = nullptr;
  dnn::Handle handle = nullptr;
  std::string properties; ///< JSON as in CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION; used without a handle
  std::size_t workspace = 0;
};

/// One descriptor; failing calls throw DeviceError with cuDNN's message.
class DnnDescriptor {
public:
  DnnDescriptor(const Cudnn& dnn, dnn::Kind kind);

  DnnDescriptor& set(dnn::Attribute attribute, dnn::Type type, std::int64_t count, const void* values);
  DnnDescriptor& set(dnn::Attribute attribute, const Extents& values);
  DnnDescriptor& set(dnn::Attribute attribute, dnn::DataType value);
  DnnDescriptor& set(dnn::Attribute attribute, bool value);
  DnnDescriptor& set(dnn::Attribute attribute, float value);
  DnnDescriptor& set(dnn::Attribute attribute, const DnnDescriptor& value);
  DnnDescriptor& set_enum(dnn::Attribute attribute, dnn::Type type, int value);
  DnnDescriptor& finalize();

  dnn::Descriptor get() const { return descriptor_.get(); }
  const Cudnn& api() const { return *dnn_; }

private:
  const Cudnn* dnn_;
  std::shared_ptr<void> descriptor_;
};

/// One tensor of a graph; `id` is its name there. Virtual tensors never reach memory.
struct DnnTensor {
  std::int64_t id = 0;
  Extents extents, strides;
  dnn::DataType type = dnn::kFloat;
};

/// The operations of one fused kernel, in the order in which they were added.
class DnnGraph {
public:
  explicit DnnGraph(const Cudnn& dnn) : dnn_(dnn) {}

  DnnTensor tensor(const Extents& extents, const Extents& strides, dnn::DataType type) {
    return add({0, extents, strides, type}, false, false);
  }
  DnnTensor virtual_tensor(const Extents& extents, const Extents& strides, dnn::DataType type) {
    return add({0, extents, strides, type}, true, false);
  }
  /// A single value, given by the host.
  DnnTensor scalar(dnn::DataType type) { return add({0, {1, 1, 1, 1}, {1, 1, 1, 1}, type}, false, true); }

  const DnnDescriptor& descriptor(const DnnTensor& tensor) const {
    return tensors_[static_cast<std::size_t>(tensor.id - 1)];
  }
  void operation(DnnDescriptor operation) { operations_.push_back(std::move(operation)); }

  void matmul(const DnnTensor& a, const DnnTensor& b, const DnnTensor& c);
  void pointwise(dnn::Pointwise mode, const DnnTensor& x, const DnnTensor& y, const DnnTensor* b = nullptr,
                 const DnnTensor* t = nullptr, dnn::DataType precision = dnn::kFloat, std::int64_t axis = -1);
  void reduce(int op, const DnnTensor& x, const DnnTensor& y);
  void reshape(const DnnTensor& x, const DnnTensor& y);

  const std::vector<DnnDescriptor>& operations() const { return operations_; }

private:
  DnnTensor add(DnnTensor tensor, bool is_virtual, bool by_value);

  const Cudnn& dnn_;
  std::vector<DnnDescriptor> tensors_, operations_;
};

/// cuDNN's plan to run a graph.
class DnnPlan {
public:
  /// Takes the first configuration of cuDNN's heuristics that works. Without `tensor_cores`, none that rounds fp32
  /// operands for the matrix units. Throws DeviceError with the last configuration's reason if none works.
  DnnPlan(const DnnTarget& target, const DnnGraph& graph, bool tensor_cores);

  std::size_t workspace() const { return workspace_; }
  /// The plan's name, such as "engine 62".
  const std::string& variant() const { return variant_; }

  /// Sets the operands: a pointer for each tensor, on the device, or on the host for scalars.
  void bind(const std::vector<std::pair<DnnTensor, void*>>& pointers, void* workspace);
  void run(dnn::Handle handle) const;

private:
  const Cudnn* dnn_;
  std::vector<DnnDescriptor> plan_; ///< the plan, and what it was made from
  std::vector<DnnDescriptor> pack_; ///< one element after bind()
  std::size_t workspace_ = 0;
  std::string variant_;
};

} // namespace stagecraft::gpu
