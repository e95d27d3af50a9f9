// SPDX-License-Identifier: Apache-2.0
#include "tests/program/rules.hpp"

namespace stagecraft::testing {
namespace {

Letters by_search(const std::vector<Signature>& operators, const Layout& layout, const SearchRule& rule,
                  double per_element) {
  SharedLetters shared(operators.size(), std::vector<int>(layout.dimensions.size(), kNone));
  for (std::size_t axis = 0; axis < layout.dimensions.size(); ++axis) {
    const int size = layout.dimensions[axis].size;
    const Layout alone = make_layout({{layout.dimensions[axis].axis, size}});
    const bool tensor = layout.dimensions[axis].axis == Axis::tensor;
    const SharedLetters column =
        tensor ? share_by_search(operators, alone, rule, made_up_times(operators, size, per_element)).shared
               : std::get<SharedLetters>(share_by_megatron(operators, alone, {}));
    for (std::size_t op = 0; op < operators.size(); ++op) {
      shared[op][axis] = column[op].front();
    }
  }
  return shared;
}

} // namespace

std::vector<NamedRule> named_rules() {
  std::vector<NamedRule> rules;
  for (const bool sequence : {false, true}) {
    const std::string end = sequence ? ", sequence" : "";
    rules.push_back({"megatron" + end, [=](const auto& operators, const Layout& layout) {
                       return share_by_megatron(operators, layout, {.sequence = sequence});
                     }});
    rules.push_back({"megatron, gathered tokens" + end, [=](const auto& operators, const Layout& layout) {
                       return share_by_megatron(operators, layout, {.sequence = sequence, .gathers_tokens = true});
                     }});
    for (const bool loss : {true, false}) {
      rules.push_back(
          {"torchtitan" + end + (loss ? "" : ", whole loss"), [=](const auto& operators, const Layout& layout) {
             return share_by_torchtitan(operators, layout, {sequence, loss});
           }});
    }
  }
  for (const bool whole : {false, true}) {
    for (const double per_element : {0.01, 100.0}) {
      rules.push_back({std::string("search on ") + (per_element < 1 ? "fast" : "slow") + " links" +
                           (whole ? ", whole weights" : ""),
                       [=](const auto& operators, const Layout& layout) {
                         return by_search(operators, layout, {.sequence = true, .whole_weights = whole}, per_element);
                       }});
    }
  }
  return rules;
}

StepTimes made_up_times(const std::vector<Signature>& operators, int degree, double per_element) {
  constexpr double kElement = 1e-9;
  const auto computation = [&operators](int op, const Shard& shard) {
    const Signature& signature = operators[op];
    double elements = elements_of(signature.output);
    for (const InputSignature& input : signature.inputs) {
      elements += elements_of(input.dimensions);
    }
    for (const ParameterSignature& parameter : signature.parameters) {
      elements += elements_of(parameter.dimensions);
    }
    return Seconds{elements * kElement * (shard.activations + 1.0 / shard.degree)};
  };
  const PathCost path{Seconds{kElement * per_element}, kElement * per_element};
  return {.computation = computation, .group = {degree, path}, .samples = 2, .micro_batches = 3};
}

} // namespace stagecraft::testing
