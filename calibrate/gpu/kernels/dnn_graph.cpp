// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/dnn_graph.hpp"

#include <algorithm>
#include <array>

#include "calibrate/gpu/device/cuda_error.hpp"

namespace stagecraft::gpu {
namespace {

constexpr std::int64_t kMostConfigurations = 16;
constexpr std::int64_t kAlignment = 16; // bytes, for every tensor

[[noreturn]] void fail(const Cudnn& dnn, int status, const std::string& what) {
  std::array<char, 1024> words{};
  dnn.last_error(words.data(), words.size());
  throw DeviceError("cuDNN: " + what + ": " + dnn.error_string(status) + " (" + words.data() + ")");
}

} // namespace

DnnDescriptor::DnnDescriptor(const Cudnn& dnn, dnn::Kind kind) : dnn_(&dnn) {
  dnn::Descriptor made = nullptr;
  if (const int status = dnn.descriptor_create(kind, &made); status != 0) {
    fail(dnn, status, "descriptor " + std::to_string(kind));
  }
  descriptor_ = std::shared_ptr<void>(made, [destroy = dnn.descriptor_destroy](void* one) { destroy(one); });
}

DnnDescriptor& DnnDescriptor::set(dnn::Attribute attribute, dnn::Type type, std::int64_t count, const void* values) {
  if (const int status = dnn_->set(get(), attribute, type, count, values); status != 0) {
    fail(*dnn_, status, "attribute " + std::to_string(attribute));
  }
  return *this;
}

DnnDescriptor& DnnDescriptor::set(dnn::Attribute attribute, const Extents& values) {
  return set(attribute, dnn::kTypeInt64, static_cast<std::int64_t>(values.size()), values.data());
}

DnnDescriptor& DnnDescriptor::set(dnn::Attribute attribute, dnn::DataType value) {
  return set(attribute, dnn::kTypeDataType, 1, &value);
}

DnnDescriptor& DnnDescriptor::set(dnn::Attribute attribute, bool value) {
  return set(attribute, dnn::kTypeBoolean, 1, &value);
}

DnnDescriptor& DnnDescriptor::set(dnn::Attribute attribute, float value) {
  return set(attribute, dnn::kTypeFloat, 1, &value);
}

DnnDescriptor& DnnDescriptor::set(dnn::Attribute attribute, const DnnDescriptor& value) {
  const dnn::Descriptor raw = value.get();
  return set(attribute, dnn::kTypeDescriptor, 1, &raw);
}

DnnDescriptor& DnnDescriptor::set_enum(dnn::Attribute attribute, dnn::Type type, int value) {
  return set(attribute, type, 1, &value);
}

DnnDescriptor& DnnDescriptor::finalize() {
  if (const int status = dnn_->finalize(get()); status != 0) {
    fail(*dnn_, status, "finalize");
  }
  return *this;
}

DnnTensor DnnGraph::add(DnnTensor tensor, bool is_virtual, bool by_value) {
  tensor.id = static_cast<std::int64_t>(tensors_.size()) + 1;
  DnnDescriptor descriptor(dnn_, dnn::kTensor);
  descriptor.set(dnn::kTensorId, Extents{tensor.id})
      .set(dnn::kTensorType, tensor.type)
      .set(dnn::kTensorAlignment, Extents{kAlignment})
      .set(dnn::kTensorDimensions, tensor.extents)
      .set(dnn::kTensorStrides, tensor.strides);
  if (is_virtual) {
    descriptor.set(dnn::kTensorVirtual, true);
  }
  if (by_value) {
    descriptor.set(dnn::kTensorByValue, true);
  }
  tensors_.push_back(descriptor.finalize());
  return tensor;
}

void DnnGraph::matmul(const DnnTensor& a, const DnnTensor& b, const DnnTensor& c) {
  DnnDescriptor matmul(dnn_, dnn::kMatmul);
  matmul.set(dnn::kMatmulType, dnn::kFloat).finalize();
  operation(DnnDescriptor(dnn_, dnn::kOperationMatmul)
                .set(dnn::kMatmulA, descriptor(a))
                .set(dnn::kMatmulB, descriptor(b))
                .set(dnn::kMatmulC, descriptor(c))
                .set(dnn::kMatmulDescriptor, matmul)
                .finalize());
}

void DnnGraph::pointwise(dnn::Pointwise mode, const DnnTensor& x, const DnnTensor& y, const DnnTensor* b,
                         const DnnTensor* t, dnn::DataType precision, std::int64_t axis) {
  DnnDescriptor pointwise(dnn_, dnn::kPointwise);
  pointwise.set_enum(dnn::kPointwiseMode, dnn::kTypePointwiseMode, mode).set(dnn::kPointwisePrecision, precision);
  if (axis >= 0) {
    pointwise.set(dnn::kPointwiseAxis, Extents{axis});
  }
  pointwise.finalize();
  DnnDescriptor made(dnn_, dnn::kOperationPointwise);
  made.set(dnn::kPointwiseDescriptor, pointwise)
      .set(dnn::kPointwiseX, descriptor(x))
      .set(dnn::kPointwiseY, descriptor(y));
  if (b != nullptr) {
    made.set(dnn::kPointwiseB, descriptor(*b));
  }
  if (t != nullptr) {
    made.set(dnn::kPointwiseT, descriptor(*t));
  }
  operation(made.finalize());
}

void DnnGraph::reduce(int op, const DnnTensor& x, const DnnTensor& y) {
  DnnDescriptor reduction(dnn_, dnn::kReduction);
  reduction.set(dnn::kReductionType, dnn::kFloat)
      .set_enum(dnn::kReductionOperator, dnn::kTypeReductionOperator, op)
      .finalize();
  operation(DnnDescriptor(dnn_, dnn::kOperationReduction)
                .set(dnn::kReductionX, descriptor(x))
                .set(dnn::kReductionY, descriptor(y))
                .set(dnn::kReductionDescriptor, reduction)
                .finalize());
}

void DnnGraph::reshape(const DnnTensor& x, const DnnTensor& y) {
  operation(DnnDescriptor(dnn_, dnn::kOperationReshape)
                .set(dnn::kReshapeX, descriptor(x))
                .set(dnn::kReshapeY, descriptor(y))
                .finalize());
}

namespace {

DnnDescriptor graph_descriptor(const DnnTarget& target, const DnnGraph& graph) {
  std::vector<dnn::Descriptor> raw;
  for (const DnnDescriptor& operation : graph.operations()) {
    raw.push_back(operation.get());
  }
  DnnDescriptor made(*target.dnn, dnn::kOperationGraph);
  made.set(dnn::kGraphOperations, dnn::kTypeDescriptor, static_cast<std::int64_t>(raw.size()), raw.data());
  if (target.handle != nullptr) {
    made.set(dnn::kGraphHandle, dnn::kTypeHandle, 1, &target.handle);
  }
  return made.finalize();
}

std::vector<DnnDescriptor> configurations(const DnnTarget& target, const DnnDescriptor& graph,
                                          const DnnDescriptor* device, int mode) {
  DnnDescriptor heuristic(*target.dnn, dnn::kEngineHeuristic);
  heuristic.set(dnn::kHeuristicGraph, graph).set_enum(dnn::kHeuristicMode, dnn::kTypeHeuristicMode, mode);
  if (device != nullptr) {
    heuristic.set(dnn::kHeuristicDevice, *device);
  }
  heuristic.finalize();
  std::vector<DnnDescriptor> found;
  std::vector<dnn::Descriptor> raw;
  for (std::int64_t i = 0; i < kMostConfigurations; ++i) {
    found.emplace_back(*target.dnn, dnn::kEngineConfig);
    raw.push_back(found.back().get());
  }
  std::int64_t count = 0;
  const int status = target.dnn->get(heuristic.get(), dnn::kHeuristicResults, dnn::kTypeDescriptor, kMostConfigurations,
                                     &count, raw.data());
  if (status != 0) {
    fail(*target.dnn, status, "heuristics");
  }
  found.erase(found.begin() + static_cast<std::ptrdiff_t>(std::clamp<std::int64_t>(count, 0, kMostConfigurations)),
              found.end());
  return found;
}

struct Engine {
  std::int64_t index = -1;
  bool rounds = false; ///< rounds fp32 operands for the matrix units
};

Engine engine_of(const DnnDescriptor& configuration) {
  const Cudnn& dnn = configuration.api();
  const DnnDescriptor descriptor(dnn, dnn::kEngine);
  dnn::Descriptor raw = descriptor.get();
  std::int64_t count = 0;
  Engine engine;
  if (dnn.get(configuration.get(), dnn::kConfigEngine, dnn::kTypeDescriptor, 1, &count, &raw) != 0) {
    return engine;
  }
  dnn.get(raw, dnn::kEngineIndex, dnn::kTypeInt64, 1, &count, &engine.index);
  std::array<int, 16> notes{};
  count = 0;
  if (dnn.get(raw, dnn::kEngineNotes, dnn::kTypeNumericalNote, notes.size(), &count, notes.data()) == 0) {
    const auto end = notes.begin() + std::clamp<std::int64_t>(count, 0, static_cast<std::int64_t>(notes.size()));
    engine.rounds = std::any_of(notes.begin(), end,
                                [](int note) { return note == dnn::kNoteTensorCore || note == dnn::kNoteDownConvert; });
  }
  return engine;
}

} // namespace

DnnPlan::DnnPlan(const DnnTarget& target, const DnnGraph& graph, bool tensor_cores) : dnn_(target.dnn) {
  std::vector<DnnDescriptor> device;
  if (target.handle == nullptr) {
    device.emplace_back(*dnn_, dnn::kDeviceProperties);
    device.front()
        .set(dnn::kDeviceJson, dnn::kTypeChar, static_cast<std::int64_t>(target.properties.size()) + 1,
             target.properties.c_str())
        .finalize();
  }
  const DnnDescriptor made = graph_descriptor(target, graph);
  std::string reason = "no configuration for this graph";
  for (const int mode : {dnn::kModeA, dnn::kModeFallback}) {
    std::vector<DnnDescriptor> found;
    try {
      found = configurations(target, made, device.empty() ? nullptr : &device.front(), mode);
    } catch (const DeviceError& error) {
      reason = error.what();
    }
    for (const DnnDescriptor& configuration : found) {
      const Engine engine = engine_of(configuration);
      if (engine.rounds && !tensor_cores) {
        reason = "every configuration rounds fp32";
        continue;
      }
      try {
        DnnDescriptor plan(*dnn_, dnn::kPlan);
        plan.set(dnn::kPlanConfig, configuration);
        target.handle != nullptr ? plan.set(dnn::kPlanHandle, dnn::kTypeHandle, 1, &target.handle)
                                 : plan.set(dnn::kPlanDevice, device.front());
        plan.finalize();
        std::int64_t bytes = 0, count = 0;
        dnn_->get(plan.get(), dnn::kPlanWorkspace, dnn::kTypeInt64, 1, &count, &bytes);
        if (bytes > static_cast<std::int64_t>(target.workspace)) {
          reason = "wants " + std::to_string(bytes) + " B of workspace";
          continue;
        }
        workspace_ = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0));
        variant_ = "engine " + std::to_string(engine.index);
        plan_ = {plan, configuration, made};
        return;
      } catch (const DeviceError& error) {
        reason = error.what();
      }
    }
  }
  throw DeviceError(reason);
}

void DnnPlan::bind(const std::vector<std::pair<DnnTensor, void*>>& pointers, void* workspace) {
  std::vector<std::int64_t> ids;
  std::vector<void*> raw;
  for (const auto& [tensor, pointer] : pointers) {
    ids.push_back(tensor.id);
    raw.push_back(pointer);
  }
  const auto count = static_cast<std::int64_t>(ids.size());
  pack_.clear();
  pack_.emplace_back(*dnn_, dnn::kVariantPack);
  pack_.front()
      .set(dnn::kPackPointers, dnn::kTypeVoidPointer, count, raw.data())
      .set(dnn::kPackIds, dnn::kTypeInt64, count, ids.data())
      .set(dnn::kPackWorkspace, dnn::kTypeVoidPointer, 1, &workspace)
      .finalize();
}

void DnnPlan::run(dnn::Handle handle) const {
  if (const int status = dnn_->execute(handle, plan_.front().get(), pack_.front().get()); status != 0) {
    fail(*dnn_, status, "execute");
  }
}

} // namespace stagecraft::gpu
