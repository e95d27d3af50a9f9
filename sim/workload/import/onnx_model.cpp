// Reads ONNX files and infers shapes; the only file that includes ONNX and protobuf. This is a module:
// docs/decisions/0017-short-runs.md.
// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/stubs/logging.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <unordered_map>

#include "sim/base/process/child.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/import/onnx_module.hpp"

namespace stagecraft {
namespace {

constexpr size_t kAnswerKind = 5; // length of "model" and "error", the first word of the child's answer

using Values = google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>;

bool is_floating(int type) {
  return type == onnx::TensorProto::FLOAT || type == onnx::TensorProto::FLOAT16 || type == onnx::TensorProto::DOUBLE ||
         type == onnx::TensorProto::BFLOAT16;
}

onnx::ModelProto parse(std::string_view bytes, const Where& where) {
  const google::protobuf::LogSilencer silencer;
  onnx::ModelProto model;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw InputError(where, "not an ONNX model, or cut short");
  }
  if (model.graph().node().empty()) {
    throw InputError(where, "an ONNX model without nodes");
  }
  if (model.opset_import().empty()) {
    throw InputError(where, "an ONNX model that names no operator set; is it cut short?");
  }
  return model;
}

// Gives every dimension of the inputs a size. Symbols without a size get one, recorded in `sizes`.
void bind_inputs(onnx::GraphProto& graph, const std::set<std::string>& initializers, std::map<std::string, int>& sizes,
                 const Where& where) {
  for (onnx::ValueInfoProto& input : *graph.mutable_input()) {
    if (initializers.contains(input.name())) {
      continue;
    }
    if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape()) {
      throw InputError(where, "input '" + input.name() + "' has no shape; allowed: tensors of known shape");
    }
    auto& dimensions = *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim();
    for (int i = 0; i < dimensions.size(); ++i) {
      if (dimensions[i].dim_value() > 0) {
        continue;
      }
      const std::string symbol = dimensions[i].dim_param();
      const auto given = sizes.find(symbol);
      if (given == sizes.end() && i > 0) {
        throw InputError(where, "dimension " + std::to_string(i) + " of input '" + input.name() + "' is " +
                                    (symbol.empty() ? "not known; allowed: a size in the file"
                                                    : "the symbol '" + symbol +
                                                          "'; allowed: a size for it, as by --dim " + symbol + "=N"));
      }
      const int size = given != sizes.end() ? given->second : 1;
      if (size < 1) {
        throw InputError(where,
                         "dimension '" + symbol + "' is given as " + std::to_string(size) + "; allowed: 1 or more");
      }
      dimensions[i].set_dim_value(size);
      if (!symbol.empty()) {
        sizes[symbol] = size;
      }
    }
  }
}

// Drops the weights, which would only be copied around. Inference needs just integers and short lists of scales, which
// stay.
void drop_weights(onnx::GraphProto& graph) {
  constexpr int kLongestList = 64;
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    if (is_floating(tensor.data_type()) &&
        (tensor.dims_size() > 1 || tensor.dims_size() == 0 || tensor.dims(0) > kLongestList)) {
      tensor.clear_raw_data();
      tensor.clear_float_data();
      tensor.clear_double_data();
      tensor.clear_int32_data();
    }
  }
}

bool has_size(const onnx::TensorShapeProto::Dimension& dimension) { return dimension.dim_value() > 0; }

// Replaces symbols by their sizes. Drops a shape that stays incomplete, so that inference finds it.
void bind_values(Values& values, const std::map<std::string, int>& sizes) {
  for (onnx::ValueInfoProto& value : values) {
    if (!value.type().has_tensor_type() || !value.type().tensor_type().has_shape()) {
      continue;
    }
    onnx::TypeProto::Tensor& tensor = *value.mutable_type()->mutable_tensor_type();
    for (onnx::TensorShapeProto::Dimension& dimension : *tensor.mutable_shape()->mutable_dim()) {
      const auto found = sizes.find(dimension.dim_param());
      if (!has_size(dimension) && found != sizes.end()) {
        dimension.set_dim_value(found->second);
      }
    }
    if (!std::all_of(tensor.shape().dim().begin(), tensor.shape().dim().end(), has_size)) {
      tensor.clear_shape();
    }
  }
}

const onnx::TensorProto* find_constant(const onnx::GraphProto& graph, const std::string& name) {
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    if (tensor.name() == name) {
      return &tensor;
    }
  }
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() == "Constant" && node.output_size() == 1 && node.output(0) == name &&
        node.attribute_size() == 1 && node.attribute(0).has_t()) {
      return &node.attribute(0).t();
    }
  }
  return nullptr;
}

std::vector<std::int64_t> integers_of(const onnx::TensorProto& tensor) {
  if (tensor.data_type() == onnx::TensorProto::INT64 && !tensor.raw_data().empty()) {
    std::vector<std::int64_t> values(tensor.raw_data().size() / sizeof(std::int64_t));
    std::copy_n(tensor.raw_data().data(), values.size() * sizeof(std::int64_t), reinterpret_cast<char*>(values.data()));
    return values;
  }
  return {tensor.int64_data().begin(), tensor.int64_data().end()};
}

// Whether an operator that the library does not know writes what is as large as its first input.
bool keeps_shape(const onnx::NodeProto& node) {
  constexpr std::array<std::string_view, 7> kTypes = {"Gelu",
                                                      "Mish",
                                                      "RMSNormalization",
                                                      "SimplifiedLayerNormalization",
                                                      "SkipSimplifiedLayerNormalization",
                                                      "SkipLayerNormalization",
                                                      "RotaryEmbedding"};
  if (node.op_type() == "GroupQueryAttention") { // unless queries, keys and values are one input
    return node.input_size() > 2 && !node.input(1).empty() && !node.input(2).empty();
  }
  return node.input_size() > 0 && std::find(kTypes.begin(), kTypes.end(), node.op_type()) != kTypes.end();
}

// The reductions of later sets have axes as an input.
void say_axes(onnx::NodeProto& node, const onnx::TensorProto& axes) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name("axes");
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const std::int64_t axis : integers_of(axes)) {
    attribute.add_ints(axis);
  }
  node.mutable_input()->RemoveLast();
}

// Rewrites operators of com.microsoft and of later sets in terms of operator set 17, the last that libonnx 1.12 knows.
// Only shape inference sees this; the nodes are read before.
void say_in_older_words(onnx::GraphProto& graph) {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    if (keeps_shape(node)) {
      constexpr int kSumOfSkip = 3; // an output of norms that add a skip first
      for (const int output : {0, kSumOfSkip}) {
        if (output < node.output_size() && !node.output(output).empty()) {
          onnx::NodeProto& copy = *nodes.Add();
          copy.set_op_type("Identity");
          copy.add_input(node.input(0));
          copy.add_output(node.output(output));
        }
      }
      continue;
    }
    if (node.op_type().starts_with("Reduce") && node.op_type() != "ReduceSum" && node.input_size() == 2) {
      if (const onnx::TensorProto* axes = find_constant(graph, node.input(1))) {
        say_axes(node, *axes);
      }
    }
    *nodes.Add() = node;
  }
  graph.mutable_node()->Swap(&nodes);
}

using ShapeData = std::unordered_map<std::string, onnx::TensorShapeProto>;

// Replaces nodes that compute shapes by constants, where the library has evaluated them: its Reshape reads only
// constants. Returns how many are new.
int fold_shape_data(onnx::GraphProto& graph, const ShapeData& data) {
  std::map<std::string, bool> scalar; // whether each tensor of known rank is a scalar
  for (const onnx::ValueInfoProto& value : graph.value_info()) {
    if (value.type().tensor_type().has_shape()) {
      scalar[value.name()] = value.type().tensor_type().shape().dim().empty();
    }
  }
  google::protobuf::RepeatedPtrField<onnx::NodeProto> remaining;
  int folded = 0;
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    const auto found = node.output_size() == 1 ? data.find(node.output(0)) : data.end();
    const auto has_value = [](const onnx::TensorShapeProto::Dimension& size) { return size.has_dim_value(); };
    if (found == data.end() || !scalar.contains(found->first) ||
        !std::all_of(found->second.dim().begin(), found->second.dim().end(), has_value)) {
      *remaining.Add() = std::move(node);
      continue;
    }
    ++folded;
    onnx::TensorProto& constant = *graph.add_initializer();
    constant.set_name(found->first);
    constant.set_data_type(onnx::TensorProto::INT64);
    for (const onnx::TensorShapeProto::Dimension& size : found->second.dim()) {
      constant.add_int64_data(size.dim_value());
    }
    if (!scalar[found->first]) {
      constant.add_dims(found->second.dim_size());
    }
  }
  graph.mutable_node()->Swap(&remaining);
  return folded;
}

void infer_shapes(onnx::ModelProto& model) {
  say_in_older_words(*model.mutable_graph());
  ShapeData data;
  do {
    data.clear();
    const onnx::ShapeInferenceOptions options{false, 0, true};
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), options, &data);
  } while (fold_shape_data(*model.mutable_graph(), data) > 0);
}

constexpr unsigned kLongestInference = 60; // seconds

// Infers shapes in a child process, since the library divides by zero and overruns its arrays on some damaged models.
// If the child is killed, the input is at fault. The child returns the model serialized.
onnx::ModelProto infer_shapes_apart(onnx::ModelProto model, const Where& where) {
  const std::optional<std::string> answer = answer_of_child(
      [&] {
        try {
          infer_shapes(model);
          return "model" + model.SerializeAsString();
        } catch (const std::exception& failure) {
          return "error" + std::string(failure.what());
        }
      },
      kLongestInference);
  if (!answer) {
    throw InputError(where, "shapes cannot be inferred: the ONNX library fails on this model; is it damaged?");
  }
  const std::string_view content = std::string_view(*answer).substr(kAnswerKind);
  if (answer->starts_with("error")) {
    throw InputError(where, "shapes cannot be inferred: " + std::string(content.substr(0, content.find('\n'))));
  }
  return parse(content, where);
}

void record(OnnxModel& result, const Values& values) {
  for (const onnx::ValueInfoProto& value : values) {
    if (result.initializers.contains(value.name())) {
      continue; // the shape that the file gives wins
    }
    OnnxTensor tensor;
    tensor.floating = is_floating(value.type().tensor_type().elem_type());
    const auto& dimensions = value.type().tensor_type().shape().dim();
    tensor.known = value.type().has_tensor_type() && value.type().tensor_type().has_shape() &&
                   std::all_of(dimensions.begin(), dimensions.end(), has_size);
    for (const auto& dimension : dimensions) {
      tensor.shape.push_back(dimension.dim_value());
    }
    result.tensors[value.name()] = std::move(tensor);
  }
}

void record_initializers(OnnxModel& result, const onnx::GraphProto& graph) {
  for (const onnx::TensorProto& initializer : graph.initializer()) {
    OnnxTensor tensor;
    tensor.floating = is_floating(initializer.data_type());
    tensor.shape.assign(initializer.dims().begin(), initializer.dims().end());
    tensor.known = std::all_of(tensor.shape.begin(), tensor.shape.end(), [](std::int64_t size) { return size > 0; });
    result.initializers.insert(initializer.name());
    result.tensors[initializer.name()] = std::move(tensor);
  }
}

void check_windows(const OnnxNode& node, const Where& where) {
  for (const char* name : {"kernel_shape", "strides", "dilations", "group"}) {
    const auto found = node.attributes.find(name);
    if (found != node.attributes.end() &&
        std::any_of(found->second.begin(), found->second.end(), [](std::int64_t size) { return size < 1; })) {
      throw InputError(where, "node '" + node.name + "' (" + node.type + "): " + name + " " + to_text(found->second) +
                                  "; allowed: 1 or more");
    }
  }
}

std::vector<OnnxNode> read_nodes(const onnx::GraphProto& graph, const Where& where) {
  std::vector<OnnxNode> nodes;
  std::set<std::string> names;
  for (const onnx::NodeProto& from : graph.node()) {
    if (from.output().empty()) {
      throw InputError(where, "node '" + from.name() + "' (" + from.op_type() + ") has no output");
    }
    OnnxNode node;
    node.name = from.name().empty() || names.contains(from.name()) ? from.output(0) : from.name();
    for (const std::string& text : {node.name, from.op_type(), from.domain()}) {
      if (first_bad_byte(text)) {
        throw InputError(where, "'" + on_one_line(text) + "' in node " + std::to_string(nodes.size()) +
                                    " is not UTF-8; allowed: names in UTF-8");
      }
    }
    names.insert(node.name);
    const bool standard = from.domain().empty() || from.domain() == "ai.onnx";
    node.type = standard ? from.op_type() : from.domain() + "." + from.op_type();
    node.inputs.assign(from.input().begin(), from.input().end());
    node.outputs.assign(from.output().begin(), from.output().end());
    for (const onnx::AttributeProto& attribute : from.attribute()) {
      if (attribute.type() == onnx::AttributeProto::INT) {
        node.attributes[attribute.name()] = {attribute.i()};
      } else if (attribute.type() == onnx::AttributeProto::INTS) {
        node.attributes[attribute.name()].assign(attribute.ints().begin(), attribute.ints().end());
      }
    }
    check_windows(node, where);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

OnnxModel read(std::string_view bytes, const std::string& file, const ImportOptions& options) {
  const Where where{file, 0, 0};
  onnx::ModelProto model = parse(bytes, where);
  onnx::GraphProto& graph = *model.mutable_graph();
  OnnxModel result;
  result.description = graph.doc_string();
  result.nodes = read_nodes(graph, where);
  drop_weights(graph);
  std::map<std::string, int> sizes = options.dimensions;
  record_initializers(result, graph);
  bind_inputs(graph, result.initializers, sizes, where);
  bind_values(*graph.mutable_value_info(), sizes);
  bind_values(*graph.mutable_output(), sizes);
  const onnx::ModelProto inferred = infer_shapes_apart(std::move(model), where);
  record(result, inferred.graph().value_info());
  record(result, inferred.graph().input());
  record(result, inferred.graph().output());
  for (const onnx::ValueInfoProto& input : inferred.graph().input()) {
    if (!result.initializers.contains(input.name())) {
      result.inputs.push_back(input.name());
    }
  }
  return result;
}

} // namespace

void stagecraft_read_onnx(std::string_view bytes, const std::string& file, const ImportOptions& options,
                          OnnxModel& model) {
  model = read(bytes, file, options);
}

} // namespace stagecraft
