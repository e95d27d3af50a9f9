// Our own workload files: docs/formats/workload.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "sim/base/count_of.hpp"
#include "sim/base/format/physical_ranges.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/blocks.hpp"
#include "sim/workload/import/import.hpp"
#include "sim/workload/layer/expand_blocks.hpp"
#include "sim/workload/layer/expert_layers.hpp"
#include "sim/workload/layer/layers.hpp"

namespace stagecraft {
namespace {

constexpr yaml::Range kCount{0, kMostElements, true, "0 or more, at most 1e15"};
constexpr std::string_view kCustom = "custom";

Shape read_shape(const yaml::Node& node, std::string_view key) {
  constexpr int kLargestSize = 1'000'000'000;
  if (node.kind != yaml::Node::Kind::sequence || node.items.empty()) {
    throw InputError(node.where, "'" + std::string(key) + "' must be a list of sizes, such as [3, 224, 224]");
  }
  Shape shape;
  for (const yaml::Node& item : node.items) {
    shape.push_back(yaml::integer(item, key, 1, kLargestSize));
  }
  return shape;
}

void check_size(const Shape& shape, const Where& where) {
  if (elements_of(shape) > kMostElements) {
    throw InputError(where, "the shape " + to_text(shape) + " has more than 1e15 elements");
  }
}

// Reads one file, and keeps the layers read so far with the shapes of their outputs.
class WorkloadReader {
public:
  /// Adapters stand beside products in numbered blocks, all else is frozen, where `options` ask for them.
  WorkloadReader(yaml::Map& document, const ImportOptions& options)
      : placed_(expand(document)), input_where_(document.where()), lora_(options.lora.value_or(0)),
        lora_layers_(options.lora_layers), lora_where_(options.lora_where), experts_(options.experts) {
    if (const yaml::Node* node = document.find("input")) {
      yaml::Map input(*node, "input");
      input_ = read_shape(input.node("shape"), "shape");
      if (options.sequence && input_.size() != 1) {
        throw InputError(node->where, "a length of sequences is given, but a sample has the shape " + to_text(input_) +
                                          "; allowed: with a shape of tokens alone");
      }
      input_.front() = options.sequence.value_or(input_.front());
      input.finish();
      check_size(input_, node->where);
    }
    if (const yaml::Node* node = document.find("profile")) {
      read_profiles(*node);
    }
  }

  ModelGraph read(const std::string& name) {
    index_names();
    std::vector<std::pair<int, int>> edges;
    for (size_t v = 0; v < placed_.layers.size(); ++v) {
      read_layer(static_cast<int>(v));
      for (const int input : layers_.back().inputs) {
        if (input != kModelInput) {
          edges.emplace_back(input, static_cast<int>(v));
        }
      }
    }
    fill_defaults();
    check_adapters();
    check_experts();
    const double input_elements = input_.empty() ? 0 : elements_of(input_);
    ModelGraph graph = make_graph(name, make_operators(std::move(layers_), input_elements), std::move(edges),
                                  std::move(profiles_), input_where_);
    graph.input_elements = input_elements;
    return graph;
  }

private:
  static PlacedLayers expand(yaml::Map& document) {
    const yaml::Node& layers = document.node("layers");
    const yaml::Node* blocks = document.find("blocks");
    for (const yaml::Node* node : {blocks, &layers}) {
      if (node != nullptr && node->kind != yaml::Node::Kind::sequence) {
        throw InputError(node->where, "'blocks' and 'layers' must be lists");
      }
    }
    if (layers.items.empty()) {
      throw InputError(layers.where, "'layers' is empty; allowed: at least one layer");
    }
    return expand_blocks(blocks, layers);
  }

  void index_names() {
    for (const PlacedLayer& layer : placed_.layers) {
      if (placed_.outputs.contains(layer.name) || !index_.emplace(layer.name, static_cast<int>(index_.size())).second) {
        throw InputError(layer.node.where, "duplicate layer '" + layer.name + "'; allowed: each name once");
      }
    }
  }

  int resolve(const LayerReference& reference) const {
    for (const std::string& candidate : reference.candidates) {
      const auto output = placed_.outputs.find(candidate);
      const auto found = index_.find(output == placed_.outputs.end() ? candidate : output->second);
      if (found != index_.end()) {
        return found->second;
      }
    }
    if (reference.candidates.back() == kModelInputName) {
      return kModelInput;
    }
    std::vector<std::string> known = {std::string(kModelInputName)};
    for (const auto& [name, position] : index_) {
      known.push_back(name);
    }
    const std::string close = nearest(reference.candidates.back(), known);
    throw InputError(reference.where, "unknown layer '" + excerpt(reference.candidates.back()) + "'; " +
                                          (close.empty() ? "allowed: 'input', or the name of a layer or block"
                                                         : "did you mean '" + close + "'?"));
  }

  void read_layer(int position) {
    const PlacedLayer& placed = placed_.layers[static_cast<size_t>(position)];
    yaml::Map map(placed.node, "layer '" + placed.name + "'");
    map.has("name");
    map.has("inputs");
    CostedLayer layer;
    layer.op.name = placed.name;
    layer.op.type = map.text("kind");
    for (const LayerReference& input : placed.inputs) {
      layer.inputs.push_back(resolve(input));
    }
    layer.measured = layer.op.type == kCustom || map.has("forward");
    if (layer.measured) {
      read_numbers(map, layer);
    } else {
      read_shaped(map, placed, layer);
    }
    if (!profiles_.empty()) {
      read_times(map, placed.name);
    }
    map.finish();
    layers_.push_back(std::move(layer));
  }

  // A device type that was measured. Its profiles, one per size of micro-batch, follow one another.
  struct MeasuredType {
    std::string device;
    std::size_t first = 0, sizes = 0;
  };

  // One device type, or a list of them. In a list each has a name, and they agree on what times mean.
  void read_profiles(const yaml::Node& node) {
    if (node.kind != yaml::Node::Kind::sequence) {
      yaml::Map map(node, "profile");
      read_profile(map, map.text("device", ""));
      return;
    }
    if (node.items.empty()) {
      throw InputError(node.where, "'profile' is an empty list; allowed: a mapping for each device type measured");
    }
    by_type_ = true;
    for (const yaml::Node& item : node.items) {
      yaml::Map map(item, "profile");
      const std::string device = map.text("device");
      if (std::any_of(types_.begin(), types_.end(), [&](const MeasuredType& one) { return one.device == device; })) {
        throw InputError(map.where("device"),
                         "a second profile of '" + excerpt(device) + "'; allowed: each device type once");
      }
      read_profile(map, device);
      const Profile &first = profiles_.front(), &last = profiles_.back();
      if (last.precision != first.precision) {
        throw InputError(item.where, "another 'precision' than that of the first profile; allowed: the same, " +
                                         std::string(row_of(first.precision).name));
      }
      if ((last.samples == 0) != (first.samples == 0)) {
        throw InputError(item.where, "some profiles have 'samples', others none; allowed: all, or none");
      }
    }
  }

  // Reads one profile per size of micro-batch; a size that is not given is 0.
  void read_profile(yaml::Map& map, const std::string& device) {
    Profile profile{.device = device};
    profile.precision = map.choice("precision", kPrecisions, "fp32").precision;
    MeasuredType type{.device = device, .first = profiles_.size()};
    for (const yaml::Node* size : map.list("samples")) {
      profile.samples = yaml::number(*size, "samples", physical::kFactor);
      if (type.sizes > 0 && profile.samples <= profiles_.back().samples) {
        throw InputError(size->where, "the sizes in 'samples' do not ascend; allowed: each once, as [1, 2, 4]");
      }
      profiles_.push_back(profile);
      ++type.sizes;
    }
    if (type.sizes == 0) {
      profiles_.push_back(profile);
      type.sizes = 1;
    }
    types_.push_back(std::move(type));
    map.finish();
  }

  // The values of a key, one for each size of micro-batch.
  static std::vector<const yaml::Node*> per_size(yaml::Map& map, std::string_view key, const MeasuredType& type) {
    map.node(key);
    std::vector<const yaml::Node*> values = map.list(key);
    if (values.size() != type.sizes) {
      throw InputError(map.where(key), "'" + excerpt(key) + "' has " + std::to_string(values.size()) +
                                           " values; allowed: one for each size in 'samples', " +
                                           std::to_string(type.sizes));
    }
    return values;
  }

  void read_times(yaml::Map& map, const std::string& layer) {
    read_values(map, "forward_time", layer, [](MeasuredTime& time, const yaml::Node& value) {
      time.forward = physical::read_time(value, "forward_time");
    });
    read_values(map, "backward_time", layer, [](MeasuredTime& time, const yaml::Node& value) {
      time.backward = physical::read_time(value, "backward_time");
    });
    if (map.has("spread")) {
      read_values(map, "spread", layer, [](MeasuredTime& time, const yaml::Node& value) {
        time.spread = yaml::number(value, "spread", {0, 10, true, "0 to 10"});
      });
    }
  }

  // Puts the values of one key of a layer into its times: a value or a list of them, or where the profile is a list,
  // such for each device type by name.
  template <class Put>
  void read_values(yaml::Map& map, std::string_view key, const std::string& layer, const Put& put) {
    const auto take = [&](const MeasuredType& type, const std::vector<const yaml::Node*>& values) {
      for (std::size_t i = 0; i < type.sizes; ++i) {
        std::vector<MeasuredTime>& times = profiles_[type.first + i].times;
        times.resize(layers_.size() + 1);
        put(times.back(), *values[i]);
      }
    };
    if (!by_type_) {
      take(types_.front(), per_size(map, key, types_.front()));
      return;
    }
    yaml::Map by_type(map.node(key), "'" + std::string(key) + "' of layer '" + layer + "'");
    for (const MeasuredType& type : types_) {
      take(type, per_size(by_type, type.device, type));
    }
    by_type.finish();
  }

  void read_shaped(yaml::Map& map, const PlacedLayer& placed, CostedLayer& layer) {
    const LayerKind& kind = kind_of(layer.op.type, map.where("kind"));
    const int count = static_cast<int>(layer.inputs.size());
    if (count < kind.least_inputs || count > kind.most_inputs) {
      const std::string least = std::to_string(kind.least_inputs);
      const std::string most = std::to_string(kind.most_inputs);
      throw InputError(map.where("inputs"), "layer '" + placed.name + "' (" + layer.op.type + ") has " +
                                                count_of(count, "input") +
                                                "; allowed: " + (least == most ? least : least + " to " + most));
    }
    Layer shaped;
    shaped.where = map.where();
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      shaped.inputs.push_back(shape_of(layer.inputs[i], placed.inputs[i]));
    }
    kind.read(map, shaped);
    limit_experts(layer, shaped);
    shaped.output = kind.shape(shaped);
    check_size(shaped.output, map.where());
    layer.op.kind = kind.kernel;
    layer.op.output_elements = elements_of(shaped.output);
    if (lora_ > 0 && adapts(placed.name, layer.op.type) && shaped.lora == 0) {
      shaped.lora = lora_;
    }
    layer.cost = cost_of(kind, shaped);
    layer.op.signature = signature_of(kind, shaped, layer.inputs);
    follow_rows(layer);
    if (map.boolean("frozen", lora_ > 0 && shaped.lora == 0)) {
      layer.cost = freeze(std::move(layer.cost));
      freeze_parameters(layer.op.signature);
    }
    shapes_.push_back(shaped.output);
  }

  // What works on rows of experts keeps them where these are.
  void follow_rows(CostedLayer& layer) const {
    const int maker = layer.inputs.front();
    if (layer.op.signature && maker != kModelInput && layers_[static_cast<std::size_t>(maker)].op.signature) {
      keep_with_expert(*layer.op.signature, *layers_[static_cast<std::size_t>(maker)].op.signature);
    }
  }

  // Whether a layer gets an adapter. Notes the names of those that could.
  bool adapts(const std::string& name, const std::string& type) {
    if (type != "linear" || !is_in_numbered_block(name)) {
      return false;
    }
    const std::string in_block = name.substr(name.rfind('.') + 1);
    adaptable_.insert(in_block);
    return lora_layers_.empty() || std::find(lora_layers_.begin(), lora_layers_.end(), in_block) != lora_layers_.end();
  }

  // The capacity that was asked for in place of the file's.
  void limit_experts(const CostedLayer& layer, Layer& shaped) {
    if (!experts_ || layer.op.type != "dispatch" || layer.inputs[1] == kModelInput) {
      return;
    }
    const std::optional<Routing>& router = layers_[static_cast<size_t>(layer.inputs[1])].cost.routing;
    if (!router) {
      return; // dispatch_shape() says what is wrong
    }
    shaped.experts = router->experts;
    shaped.capacity = experts_->factor;
    shaped.rows = 0;
    shaped.padded = experts_->padded && experts_->factor > 0;
    limits_experts_ = true;
  }

  void check_experts() const {
    if (experts_ && !limits_experts_) {
      throw InputError(experts_->where, "the model has no mixture of experts that could have a capacity; allowed: a "
                                        "model that has one, or no 'expert_capacity'");
    }
  }

  void check_adapters() const {
    if (lora_ > 0 && adaptable_.empty()) {
      throw InputError(input_where_,
                       "no product of numbered blocks, such as 'layer.0.qkv', can have an adapter; allowed: "
                       "a model that has some, or no 'lora'");
    }
    for (const std::string& name : lora_layers_) {
      if (!adaptable_.contains(name)) {
        throw InputError(lora_where_,
                         unknown_name("product of a numbered block", name, {adaptable_.begin(), adaptable_.end()}));
      }
    }
  }

  static void freeze_parameters(std::optional<Signature>& signature) {
    for (std::size_t i = 0; signature && i < signature->parameters.size(); ++i) {
      signature->parameters[i].trained = false;
    }
  }

  static const LayerKind& kind_of(const std::string& name, const Where& where) {
    for (const LayerKind& kind : layer_kinds()) {
      if (kind.name == name) {
        return kind;
      }
    }
    std::vector<std::string> known = names_of(layer_kinds());
    known.emplace_back(kCustom);
    throw InputError(where, unknown_name("kind", name, known));
  }

  const Shape& shape_of(int layer, const LayerReference& reference) const {
    if (layer == kModelInput && input_.empty()) {
      throw InputError(input_where_, "missing key 'input' in workload: its shape is what the first layers read");
    }
    if (layer >= static_cast<int>(shapes_.size())) {
      throw InputError(reference.where, "layer '" + placed_.layers[static_cast<size_t>(layer)].name +
                                            "' stands later; layers with shapes read earlier ones");
    }
    return layer == kModelInput ? input_ : shapes_[static_cast<size_t>(layer)];
  }

  // Reads a layer given by its amounts; its kind is a kernel kind.
  void read_numbers(yaml::Map& map, CostedLayer& layer) {
    Operator& op = layer.op;
    op.kind = op.type == kCustom ? KernelKind::other : map.choice("kind", kKernelKinds).kind;
    const auto forward = map.quantity<Flops>("forward", physical::kWork);
    op.parameters = map.number("parameters", kCount, 0);
    Flops backward_input, backward_weight;
    if (map.has("backward_input") || map.has("backward_weight")) {
      backward_input = map.quantity<Flops>("backward_input", physical::kWork);
      backward_weight = map.quantity<Flops>("backward_weight", physical::kWork, Flops{0});
    } else {
      const auto backward = map.quantity<Flops>("backward", physical::kWork, 2 * forward);
      backward_weight = op.parameters > 0 ? backward / 2 : Flops{0};
      backward_input = backward - backward_weight;
    }
    const yaml::Node& output = map.node("output");
    shapes_.push_back(output.kind == yaml::Node::Kind::sequence ? read_shape(output, "output") : Shape());
    check_size(shapes_.back(), output.where);
    if (shapes_.back().empty()) {
      op.output_elements = yaml::number(output, "output", kCount);
      shapes_.back() = {static_cast<std::int64_t>(op.output_elements)};
    } else {
      op.output_elements = elements_of(shapes_.back());
    }
    constexpr double kUnknown = -1;
    op.stash_elements = map.number("stash", kCount, kUnknown);
    const Moved moved = read_moved(map, "moved", kUnknown), weights = read_moved(map, "moved_weights", op.parameters);
    op.divisible = map.boolean("divisible", true);
    op.forward = {forward, moved.forward, weights.forward, 1};
    op.backward_input = {backward_input, moved.backward, weights.backward, 1};
    op.backward_weight = {backward_weight, moved.backward, op.parameters > 0 ? weights.backward : 0,
                          op.parameters > 0 ? 1 : 0};
  }

  struct Moved {
    double forward, backward;
  };

  // A count of both directions, or one of each.
  static Moved read_moved(yaml::Map& map, const char* key, double otherwise) {
    const yaml::Node* node = map.find(key);
    if (node == nullptr || node->kind != yaml::Node::Kind::map) {
      const double both = map.number(key, kCount, otherwise);
      return {both, both};
    }
    yaml::Map each(*node, key);
    const Moved moved{each.number("forward", kCount, otherwise), each.number("backward", kCount, otherwise)};
    each.finish();
    return moved;
  }

  // Fills in what a layer given by numbers leaves out: it keeps its inputs, and moves its inputs and outputs.
  void fill_defaults() {
    for (CostedLayer& layer : layers_) {
      if (!layer.measured) {
        continue;
      }
      double inputs = 0;
      for (const int input : layer.inputs) {
        inputs += input != kModelInput ? layers_[static_cast<size_t>(input)].op.output_elements
                                       : (input_.empty() ? 0 : elements_of(input_));
      }
      Operator& op = layer.op;
      op.stash_elements = op.stash_elements < 0 ? inputs : op.stash_elements;
      for (Pass* pass : {&op.forward, &op.backward_input, &op.backward_weight}) {
        pass->moved_elements = pass->moved_elements < 0 ? inputs + op.output_elements : pass->moved_elements;
      }
      if (op.parameters == 0) {
        op.backward_weight.moved_elements = 0;
      }
    }
  }

  PlacedLayers placed_;
  Where input_where_;
  Shape input_;
  std::vector<Profile> profiles_;   ///< of each type one per micro-batch size
  std::vector<MeasuredType> types_; ///< in the order of their profiles
  int lora_ = 0;
  std::vector<std::string> lora_layers_;
  Where lora_where_;
  std::optional<ExpertCapacity> experts_;
  bool limits_experts_ = false;     ///< a mixture read so far has the capacity
  std::set<std::string> adaptable_; ///< names in their blocks of products that could have an adapter
  bool by_type_ = false;            ///< layers give their times by the type's name
  std::map<std::string, int> index_;
  std::vector<Shape> shapes_;       ///< per layer read so far
  std::vector<CostedLayer> layers_; ///< per layer read so far
};

} // namespace

ModelGraph load_workload(const yaml::Node& document, const ImportOptions& options) {
  yaml::Map map(document, "workload");
  const std::string name = map.text("name");
  const std::string description = map.text("description", "");
  map.text("sources", "");
  for (const yaml::Node* name_of_others : map.list("also_called")) { // by which validate finds the file
    yaml::scalar(*name_of_others, "also_called");
  }
  ModelGraph graph = WorkloadReader(map, options).read(name);
  map.finish();
  graph.description = description;
  return graph;
}

} // namespace stagecraft
