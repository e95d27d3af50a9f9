// ONNX models: docs/formats/onnx.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "sim/workload/import/import.hpp"
#include "sim/workload/import/onnx_operators.hpp"
#include "sim/workload/layer/layers.hpp"

namespace stagecraft {
namespace {

// Where a tensor comes from: data (the model's input or a layer), or a constant, with the weights that it consists of.
struct Origin {
  bool constant = false;
  int layer = kModelInput;
  std::set<std::string> weights;
};

class Importer {
public:
  Importer(const OnnxModel& model, Where where) : model_(model), where_(std::move(where)) {
    for (const std::string& name : model.initializers) {
      origins_[name] = {true, kModelInput, weight_named(name)};
    }
    for (const std::string& name : model.inputs) {
      origins_[name] = {};
    }
    read_batch();
  }

  ModelGraph import(const std::string& name) {
    for (const OnnxNode& node : model_.nodes) {
      if (is_static(node)) {
        fold(node);
      } else {
        add_layer(node);
      }
    }
    std::vector<std::pair<int, int>> edges;
    for (size_t v = 0; v < layers_.size(); ++v) {
      for (const int input : layers_[v].inputs) {
        if (input != kModelInput) {
          edges.emplace_back(input, static_cast<int>(v));
        }
      }
    }
    ModelGraph graph =
        make_graph(name, make_operators(std::move(layers_), input_elements_), std::move(edges), {}, where_);
    graph.input_elements = input_elements_;
    graph.description = model_.description;
    return graph;
  }

private:
  [[noreturn]] void refuse(const OnnxNode& node, const std::string& problem) const {
    throw InputError(where_, "node '" + node.name + "' (" + node.type + "): " + problem);
  }

  std::set<std::string> weight_named(const std::string& name) const {
    const auto found = model_.tensors.find(name);
    return found != model_.tensors.end() && found->second.floating ? std::set{name} : std::set<std::string>();
  }

  const Shape& shape_of(const std::string& name, const OnnxNode& node) const {
    const auto found = model_.tensors.find(name);
    if (found == model_.tensors.end() || !found->second.known) {
      refuse(node, "the shape of '" + name + "' is neither in the file nor can it be inferred");
    }
    if (elements_of(found->second.shape) > kMostElements) {
      refuse(node, "'" + name + "' has more than 1e15 elements");
    }
    return found->second.shape;
  }

  const Origin& origin_of(const std::string& name, const OnnxNode& node) const {
    const auto found = origins_.find(name);
    if (found == origins_.end()) {
      refuse(node, "it reads '" + name + "', which no earlier node writes");
    }
    return found->second;
  }

  // Reads the batch size: the first dimension of every input counts samples.
  void read_batch() {
    for (const std::string& name : model_.inputs) {
      const Shape& shape = model_.tensors.at(name).shape;
      if (shape.empty()) {
        continue;
      }
      const auto first = static_cast<double>(shape.front());
      if (batch_ && *batch_ != first) {
        throw InputError(where_, "the first dimension of the inputs, the batch, is " + to_text(*batch_, 0) + " and " +
                                     to_text(first, 0) + "; allowed: one size");
      }
      batch_ = first;
      input_elements_ += elements_of(shape) / first;
    }
  }

  // A node that depends only on constants and shapes is computed before training starts.
  bool is_static(const OnnxNode& node) const {
    return node.type == "Shape" || node.type == "Size" ||
           std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](const std::string& input) { return input.empty() || origin_of(input, node).constant; });
  }

  void fold(const OnnxNode& node) {
    Origin origin{.constant = true};
    if (node.type != "Shape" && node.type != "Size") {
      for (const std::string& input : node.inputs) {
        if (!input.empty()) {
          origin.weights.merge(std::set(origin_of(input, node).weights));
        }
      }
    }
    for (const std::string& output : node.outputs) {
      origins_[output] = origin;
      if (origin.weights.empty()) {
        origins_[output].weights = weight_named(output);
      }
    }
  }

  OnnxOperands operands_of(const OnnxNode& node) const {
    OnnxOperands operands{node, {}, {}, where_};
    for (const std::string& input : node.inputs) {
      operands.shapes.push_back(input.empty() ? Shape() : shape_or_empty(input, node));
      operands.constant.push_back(!input.empty() && origin_of(input, node).constant);
    }
    return operands;
  }

  // Constants that control an operator (axes, sizes) may lack a shape; they cost nothing.
  Shape shape_or_empty(const std::string& name, const OnnxNode& node) const {
    const auto found = model_.tensors.find(name);
    const bool unknown = found == model_.tensors.end() || !found->second.known;
    return unknown && origin_of(name, node).constant ? Shape() : shape_of(name, node);
  }

  void add_layer(const OnnxNode& node) {
    const OnnxOperator& row = find_by_name(onnx_operators(), node.type, "operator of node '" + node.name + "'", where_);
    const OnnxOperands operands = operands_of(node);
    Layer layer;
    layer.where = where_;
    CostedLayer costed;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (operands.is_data(i)) {
        layer.inputs.push_back(operands.shapes[i]);
        costed.inputs.push_back(origin_of(node.inputs[i], node).layer);
      }
    }
    layer.output = shape_of(node.outputs.front(), node);
    const std::string_view special = row.prepare(operands, layer);
    const LayerKind& kind = find_by_name(layer_kinds(), special.empty() ? row.kind : special, "kind", where_);
    costed.cost = cost_of(kind, layer);
    costed.op.name = node.name;
    costed.op.type = node.type;
    costed.op.kind = kind.kernel;
    costed.op.output_elements = outputs_of(node);
    set_parameters(costed, layer, weights_of(row, node));
    scale_to_sample(costed);
    for (const std::string& output : node.outputs) {
      origins_[output] = {false, static_cast<int>(layers_.size()), {}};
    }
    layers_.push_back(std::move(costed));
  }

  double outputs_of(const OnnxNode& node) const {
    double sum = elements_of(shape_of(node.outputs.front(), node));
    const bool parts = node.type == "Split"; // the other operators' further outputs are not used in training
    for (size_t i = 1; parts && i < node.outputs.size(); ++i) {
      sum += elements_of(shape_of(node.outputs[i], node));
    }
    return sum;
  }

  // Parameters of the node: its constant weights that no earlier node has, so that shared ones count once. A weight of
  // one element is a constant of a formula and does not count.
  double weights_of(const OnnxOperator& row, const OnnxNode& node) {
    double parameters = 0;
    for (int i = row.first_weight; i <= row.last_weight && i < static_cast<int>(node.inputs.size()); ++i) {
      const std::string& input = node.inputs[static_cast<size_t>(i)];
      if (input.empty() || !origin_of(input, node).constant) {
        continue;
      }
      for (const std::string& weight : origin_of(input, node).weights) {
        const double elements = elements_of(shape_of(weight, node));
        if (elements > 1 && counted_.insert(weight).second) {
          parameters += elements;
        }
      }
    }
    return parameters;
  }

  // An element-wise operator with a weight gains a pass for the weight's gradient. One with a single operand and a
  // constant costs as a scaling.
  static void set_parameters(CostedLayer& costed, const Layer& layer, double parameters) {
    LayerCost& cost = costed.cost;
    const double y = elements_of(layer.output);
    const bool weighted = cost.backward_weight.kernels > 0;
    if (!weighted && costed.op.kind == KernelKind::elementwise && layer.inputs.size() == 1 &&
        cost.forward.flops.value == 0) {
      cost.forward.flops = cost.backward_input.flops = Flops{y};
      cost.backward_input.moved_elements = 2 * y;
      cost.kept = {.inputs = parameters > 0 && costed.op.type != "Add" && costed.op.type != "Sub"};
    }
    if (!weighted && parameters > 0) {
      cost.forward.moved_parameters += parameters;
      cost.backward_weight = {Flops{y}, 2 * y, parameters, 1};
    }
    cost.parameters = parameters;
  }

  void scale_to_sample(CostedLayer& costed) const {
    const double batch = batch_.value_or(1);
    for (Pass* pass : {&costed.cost.forward, &costed.cost.backward_input, &costed.cost.backward_weight}) {
      pass->flops = pass->flops / batch;
      pass->moved_elements /= batch;
      for (KernelCall& call : pass->calls) {
        call.shape[static_cast<size_t>(call.grows)] /= batch;
      }
    }
    costed.cost.kept.extra /= batch;
    costed.op.output_elements /= batch;
  }

  const OnnxModel& model_;
  Where where_;
  std::optional<double> batch_;
  double input_elements_ = 0;
  std::map<std::string, Origin> origins_; ///< for each tensor read or written so far
  std::set<std::string> counted_;         ///< weights already counted as some node's parameters
  std::vector<CostedLayer> layers_;
};

} // namespace

ModelGraph import_onnx(std::string_view bytes, const std::string& file, const ImportOptions& options) {
  const OnnxModel model = read_onnx(bytes, file, options);
  return Importer(model, {file, 0, 0}).import(std::filesystem::path(file).stem().string());
}

} // namespace stagecraft
