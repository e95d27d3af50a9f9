// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/layer/layer_shapes.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/workload/layer/layer_parts.hpp"

namespace stagecraft {
namespace {

const Shape& image_of(const Layer& layer) {
  const Shape& shape = layer.inputs.front();
  if (shape.size() != 3) {
    refuse(layer, "the input has shape " + to_text(shape) + "; allowed: [channels, height, width]");
  }
  return shape;
}

// Positions of a window along one dimension, as all frameworks count them; with `ceil`, a last window that would start
// in the padding does not count.
std::int64_t windows(const Layer& layer, size_t dimension, std::int64_t size) {
  const std::int64_t kernel = layer.kernel[dimension];
  const std::int64_t stride = layer.stride[dimension];
  const std::int64_t padding = layer.padding[dimension];
  const std::int64_t reach = static_cast<std::int64_t>(layer.dilation[dimension]) * (kernel - 1) + 1;
  const std::int64_t room = size + 2 * padding - reach;
  if (room < 0) {
    refuse(layer, "a window of " + std::to_string(reach) + " does not fit into " + std::to_string(size) +
                      " with padding " + std::to_string(padding));
  }
  if (!layer.ceil) {
    return room / stride + 1;
  }
  const std::int64_t count = (room + stride - 1) / stride + 1;
  return (count - 1) * stride >= size + padding ? count - 1 : count;
}

void read_features(Layer& layer, std::int64_t count) { layer.features_in = static_cast<double>(count); }

size_t axis_of(const Layer& layer, const Shape& shape) {
  if (layer.axis < 0 || layer.axis >= static_cast<int>(shape.size())) {
    refuse(layer, "axis " + std::to_string(layer.axis) + " is outside the shape " + to_text(shape));
  }
  return static_cast<size_t>(layer.axis);
}

} // namespace

double elements_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0,
                         [](double product, std::int64_t size) { return product * static_cast<double>(size); });
}

std::string to_text(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

namespace {

// The image that a convolution reads, whose channels its groups divide.
const Shape& convolved_image(Layer& layer) {
  const Shape& image = image_of(layer);
  read_features(layer, image[0]);
  if (image[0] % layer.groups != 0 || static_cast<std::int64_t>(layer.features) % layer.groups != 0) {
    refuse(layer, "groups " + std::to_string(layer.groups) + " does not divide the channels, " +
                      std::to_string(image[0]) + " in and " + to_text(layer.features, 0) + " out");
  }
  return image;
}

// A side that grows stays a number of which elements can be counted.
void check_growth(const Layer& layer, std::int64_t size, int by) {
  if (static_cast<double>(size) * by > kMostElements) {
    refuse(layer, "a side of " + std::to_string(size) + " grows by " + std::to_string(by) +
                      " to more than 1e15; allowed: less");
  }
}

} // namespace

Shape convolution_shape(Layer& layer) {
  const Shape& image = convolved_image(layer);
  return {static_cast<std::int64_t>(layer.features), windows(layer, 0, image[1]), windows(layer, 1, image[2])};
}

// As large as an image of which a convolution with these attributes makes the one given. Of the `stride` sizes that
// are, the smallest, unless another is asked for.
Shape transposed_convolution_shape(Layer& layer) {
  const Shape& image = convolved_image(layer);
  const auto size = [&](std::size_t i) {
    check_growth(layer, image[i + 1], layer.stride[i]);
    const std::int64_t written = (image[i + 1] - 1) * layer.stride[i] + layer.kernel[i];
    const std::int64_t least = written - 2LL * layer.padding[i];
    if (least < 1) {
      refuse(layer, "padding " + std::to_string(layer.padding[i]) + " leaves nothing of the " +
                        std::to_string(written) + " that are written; allowed: less");
    }
    const std::int64_t asked = layer.target.empty() ? least : layer.target[i];
    if (asked < least || asked >= least + layer.stride[i]) {
      refuse(layer, "output " + std::to_string(asked) + " is no size of which a convolution makes " +
                        std::to_string(image[i + 1]) + "; allowed: " + std::to_string(least) + " to " +
                        std::to_string(least + layer.stride[i] - 1));
    }
    return asked;
  };
  return {static_cast<std::int64_t>(layer.features), size(0), size(1)};
}

Shape upsample_shape(Layer& layer) {
  const Shape& image = image_of(layer);
  check_growth(layer, image[1], layer.stride[0]);
  check_growth(layer, image[2], layer.stride[1]);
  return {image[0], image[1] * layer.stride[0], image[2] * layer.stride[1]};
}

Shape pool_shape(Layer& layer) {
  const Shape& image = image_of(layer);
  for (size_t i = 0; i < layer.kernel.size(); ++i) {
    if (layer.padding[i] > layer.kernel[i] / 2) {
      refuse(layer, "padding " + std::to_string(layer.padding[i]) + " is more than half the window " +
                        std::to_string(layer.kernel[i]));
    }
  }
  return {image[0], windows(layer, 0, image[1]), windows(layer, 1, image[2])};
}

Shape global_pool_shape(Layer& layer) {
  const Shape& image = image_of(layer);
  layer.kernel = {static_cast<int>(image[1]), static_cast<int>(image[2])};
  return {image[0], 1, 1};
}

// The windows cover the input, and overlap where the sizes do not divide.
Shape adaptive_pool_shape(Layer& layer) {
  const Shape& image = image_of(layer);
  for (size_t i = 0; i < 2; ++i) {
    layer.kernel[i] = static_cast<int>((image[i + 1] + layer.target[i] - 1) / layer.target[i]);
  }
  return {image[0], layer.target[0], layer.target[1]};
}

Shape linear_shape(Layer& layer) {
  Shape shape = layer.inputs.front();
  read_features(layer, shape.back());
  shape.back() = static_cast<std::int64_t>(layer.features);
  return shape;
}

Shape image_shape(Layer& layer) {
  read_features(layer, layer.inputs.front().front());
  return layer.inputs.front();
}

Shape same_shape(Layer& layer) {
  read_features(layer, layer.inputs.front().back());
  return layer.inputs.front();
}

Shape rms_norm_shape(Layer& layer) {
  const std::int64_t features = layer.inputs.front().back();
  if (features % layer.groups != 0) {
    refuse(layer, "groups is " + std::to_string(layer.groups) + ", which does not divide the " +
                      std::to_string(features) + " features; allowed: a divisor");
  }
  return same_shape(layer);
}

// numpy's rule: shapes are aligned at the last dimension; sizes are equal or 1.
Shape broadcast_shape(Layer& layer) {
  Shape result = layer.inputs.front();
  for (const Shape& other : layer.inputs) {
    if (other.size() > result.size()) {
      result.insert(result.begin(), other.size() - result.size(), 1);
    }
    for (size_t i = 1; i <= other.size(); ++i) {
      std::int64_t& size = result[result.size() - i];
      const std::int64_t given = other[other.size() - i];
      if (size != given && size != 1 && given != 1) {
        refuse(layer, "the inputs' shapes " + to_text(layer.inputs.front()) + " and " + to_text(other) +
                          " do not fit; allowed: equal sizes, or 1");
      }
      size = size == 1 ? given : size;
    }
  }
  return result;
}

Shape concat_shape(Layer& layer) {
  Shape result = layer.inputs.front();
  const size_t axis = axis_of(layer, result);
  for (size_t i = 1; i < layer.inputs.size(); ++i) {
    Shape other = layer.inputs[i];
    const bool same_rank = other.size() == result.size();
    const std::int64_t size = same_rank ? std::exchange(other[axis], result[axis]) : 0;
    if (other != result) {
      refuse(layer, "the inputs' shapes " + to_text(layer.inputs.front()) + " and " + to_text(layer.inputs[i]) +
                        " differ beside axis " + std::to_string(axis));
    }
    result[axis] += size;
  }
  return result;
}

Shape flatten_shape(Layer& layer) { return {static_cast<std::int64_t>(elements_of(layer.inputs.front()))}; }

Shape reshape_shape(Layer& layer) {
  if (elements_of(layer.target) != elements_of(layer.inputs.front())) {
    refuse(layer, "the input's shape " + to_text(layer.inputs.front()) + " has not as many elements as " +
                      to_text(layer.target));
  }
  return layer.target;
}

// layer.target gives, for each dimension of the output, the dimension of the input that it comes from.
Shape transpose_shape(Layer& layer) {
  const Shape& input = layer.inputs.front();
  Shape sorted = layer.target;
  std::sort(sorted.begin(), sorted.end());
  Shape expected(input.size());
  std::iota(expected.begin(), expected.end(), 0);
  if (sorted != expected) {
    refuse(layer, "the axes " + to_text(layer.target) + " are not those of the input's shape " + to_text(input) +
                      "; allowed: each once, from 0");
  }
  Shape result;
  for (const std::int64_t axis : layer.target) {
    result.push_back(input[static_cast<size_t>(axis)]);
  }
  return result;
}

Shape slice_shape(Layer& layer) {
  Shape result = layer.inputs.front();
  const size_t axis = axis_of(layer, result);
  if (layer.start >= layer.end || layer.end > result[axis]) {
    refuse(layer, "the slice from " + std::to_string(layer.start) + " to " + std::to_string(layer.end) +
                      " is empty or outside the shape " + to_text(result));
  }
  result[axis] = layer.end - layer.start;
  return result;
}

Shape scalar_shape(Layer&) { return {1}; }

Shape embedding_shape(Layer& layer) {
  Shape shape = layer.inputs.front();
  if (layer.positions > 0 && static_cast<double>(shape.back()) > layer.positions) {
    refuse(layer, "the sequence of " + std::to_string(shape.back()) + " is longer than positions " +
                      to_text(layer.positions, 0));
  }
  shape.push_back(static_cast<std::int64_t>(layer.features));
  return shape;
}

namespace {

void require_sequence(const Layer& layer, const Shape& shape) {
  if (shape.size() != 2) {
    refuse(layer, "an input has shape " + to_text(shape) + "; allowed: [sequence, features]");
  }
}

// Width of a head in a tensor that holds `parts` of them side by side.
std::int64_t head_width(const Layer& layer, const Shape& shape, std::int64_t parts) {
  if (shape[1] % parts != 0 || layer.heads % layer.key_value_heads != 0) {
    refuse(layer, "features " + std::to_string(shape[1]) + " do not split into heads " + std::to_string(layer.heads) +
                      " and key_value_heads " + std::to_string(layer.key_value_heads));
  }
  return shape[1] / parts;
}

std::int64_t parts_side_by_side(const Layer& layer) {
  return layer.heads + 2 * static_cast<std::int64_t>(layer.key_value_heads);
}

} // namespace

Shape query_key_norm_shape(Layer& layer) {
  const Shape& shape = layer.inputs.front();
  require_sequence(layer, shape);
  read_features(layer, head_width(layer, shape, parts_side_by_side(layer)));
  layer.sequence = static_cast<double>(shape[0]);
  layer.features = layer.features_in * (layer.heads + static_cast<double>(layer.key_value_heads));
  return shape;
}

Shape rotary_shape(Layer& layer) {
  Shape shape = query_key_norm_shape(layer);
  const auto turned = static_cast<std::int64_t>(layer.features_in * layer.part);
  if (turned == 0 || turned % 2 != 0) {
    refuse(layer, "a rotary embedding of " + std::to_string(turned) + " of the " + to_text(layer.features_in, 0) +
                      " features of a head; allowed: pairs of features");
  }
  layer.features *= static_cast<double>(turned) / layer.features_in;
  return shape;
}

Shape gated_shape(Layer& layer) {
  Shape shape = layer.inputs.front();
  if (shape.back() % 2 != 0) {
    refuse(layer,
           "the input's shape " + to_text(shape) + " does not split into two halves; allowed: [..., 2 * features]");
  }
  shape.back() /= 2;
  if (layer.inputs.size() == 2 && (shape.size() != 2 || layer.inputs[1].size() != 2)) {
    refuse(layer, "the inputs have shapes " + to_text(layer.inputs[0]) + " and " + to_text(layer.inputs[1]) +
                      "; allowed: [rows, features] and [tokens, experts of a token], the output of a router");
  }
  return shape;
}

void complete_documents(Layer& layer, std::int64_t tokens) {
  std::vector<int>& lengths = layer.documents;
  if (lengths.size() == 1 && lengths.front() <= tokens) {
    const std::int64_t length = lengths.front();
    lengths.assign(static_cast<std::size_t>(tokens / length), static_cast<int>(length));
    if (tokens % length > 0) {
      lengths.push_back(static_cast<int>(tokens % length));
    }
  }
  const std::int64_t sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (!lengths.empty() && sum != tokens) {
    refuse(layer, "the documents have " + std::to_string(sum) + " tokens, the sequence has " + std::to_string(tokens) +
                      "; allowed: lengths that add up to it, or one length of all");
  }
}

std::optional<double> length_of_documents(const Layer& layer) {
  const std::vector<int>& documents = layer.documents;
  const double length = documents.empty() ? layer.sequence : documents.front();
  const bool alike = std::all_of(documents.begin(), documents.end(), [&](int one) { return one == length; });
  return alike ? std::optional(length) : std::nullopt;
}

// One input holds queries, keys and values side by side, or three inputs hold one each. Sets layer.sequence and
// layer.positions to the number of queries and of keys, features_in and features to the width of q and of the output.
Shape attention_shape(Layer& layer) {
  if (layer.inputs.size() == 2) {
    refuse(layer, "attention of 2 inputs; allowed: 1 (queries, keys and values side by side) or 3");
  }
  for (const Shape& shape : layer.inputs) {
    require_sequence(layer, shape);
  }
  const bool fused = layer.inputs.size() == 1;
  const Shape& query = layer.inputs.front();
  const Shape& key = fused ? query : layer.inputs[1];
  const Shape& value = fused ? query : layer.inputs[2];
  const std::int64_t heads = layer.heads;
  const std::int64_t shared = layer.key_value_heads;
  const std::int64_t width = head_width(layer, query, fused ? parts_side_by_side(layer) : heads);
  if (!fused && (key[1] != width * shared || value[1] % shared != 0 || key[0] != value[0])) {
    refuse(layer, "queries " + to_text(query) + ", keys " + to_text(key) + " and values " + to_text(value) +
                      " do not fit; allowed: [n, heads * d], [m, key_value_heads * d], [m, key_value_heads * e]");
  }
  if (layer.causal && key[0] != query[0]) {
    refuse(layer, "causal attention needs as many keys as queries, not " + std::to_string(key[0]) + " and " +
                      std::to_string(query[0]));
  }
  layer.sequence = static_cast<double>(query[0]);
  layer.positions = static_cast<double>(key[0]);
  const std::int64_t value_width = fused ? width : value[1] / shared;
  layer.features_in = static_cast<double>(width * heads);
  layer.features = static_cast<double>(value_width * heads);
  if (!layer.documents.empty() && key[0] != query[0]) {
    refuse(layer, "packed documents need as many keys as queries, not " + std::to_string(key[0]) + " and " +
                      std::to_string(query[0]));
  }
  complete_documents(layer, query[0]);
  return {query[0], value_width * heads};
}

Shape lstm_shape(Layer& layer) {
  Shape shape = layer.inputs.front();
  if (shape.size() != 2) {
    refuse(layer, "the input has shape " + to_text(shape) + "; allowed: [sequence, features]");
  }
  layer.sequence = static_cast<double>(shape[0]);
  read_features(layer, shape[1]);
  shape[1] = static_cast<std::int64_t>(layer.features) * (layer.bidirectional ? 2 : 1);
  return shape;
}

Shape matmul_shape(Layer& layer) {
  Shape result = layer.inputs[0];
  Shape other = layer.inputs[1];
  if (other.size() < 2 || result.size() != other.size()) {
    refuse(layer, "the inputs' shapes " + to_text(result) + " and " + to_text(other) +
                      " differ in rank; allowed: [..., m, k] and [..., k, n]");
  }
  const size_t last = result.size() - 1;
  if (layer.transpose) {
    std::swap(other[last], other[last - 1]);
  }
  if (other[last - 1] != result[last] || !std::equal(result.begin(), result.end() - 2, other.begin())) {
    refuse(layer, "the inputs' shapes " + to_text(layer.inputs[0]) + " and " + to_text(layer.inputs[1]) +
                      " do not multiply; allowed: [..., m, k] and [..., k, n]");
  }
  read_features(layer, result[last]);
  result[last] = other[last];
  return result;
}

} // namespace stagecraft
