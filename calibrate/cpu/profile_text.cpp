// Writes a measured model as a workload file.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "sim/base/yaml_text.hpp"

#include "calibrate/cpu/profile.hpp"
#include "calibrate/gpu/output/measurement_file.hpp"

namespace stagecraft::cpu {
namespace {

constexpr int kExact = 15; // digits of counts

// The operators' names without commas, blanks and dollars, which workload files do not allow; each is there once, and
// none is that of the model's input.
std::vector<std::string> names_of(const ModelGraph& model) {
  std::vector<std::string> names;
  std::set<std::string> taken = {"input"};
  for (const Operator& op : model.operators) {
    std::string name = op.name;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return std::string_view("$, \t\n").find(c) != std::string_view::npos; },
        '_');
    while (!taken.insert(name).second) {
      name += '_';
    }
    names.push_back(yaml_text(name));
  }
  return names;
}

template <class Value> std::string list_of(const MeasuredModel& measured, std::size_t op, Value value) {
  std::string text;
  for (const Profile& profile : measured.profiles) {
    text += (text.empty() ? "" : ", ") + value(profile.times[op]);
  }
  return "[" + text + "]";
}

std::string time_text(Seconds time) { return time.value > 0 ? gpu::time_text(time.value) : "0 s"; }

std::string layer_text(const ModelGraph& model, const std::vector<std::string>& names, const MeasuredModel& measured,
                       std::size_t index) {
  const Operator& op = model.operators[index];
  std::string inputs;
  for (const OperatorId before : model.predecessors[index]) {
    inputs += (inputs.empty() ? "" : ", ") + names[static_cast<std::size_t>(before)];
  }
  const auto flops = [](const Pass& pass) { return to_digits(pass.flops.value, kExact) + " FLOP"; };
  std::string text = "  - {name: " + names[index] + ", kind: " + std::string(row_of(op.kind).name) + ", inputs: [" +
                     (inputs.empty() ? "input" : inputs) + "], forward: " + flops(op.forward) +
                     ", backward_input: " + flops(op.backward_input) +
                     ", backward_weight: " + flops(op.backward_weight);
  const auto add = [&](const char* key, double value) {
    text += std::string(", ") + key + ": " + to_digits(value, kExact);
  };
  add("parameters", op.parameters);
  add("output", op.output_elements);
  add("stash", op.stash_elements);
  add("moved", op.forward.moved_elements);
  text += op.divisible ? "" : ", divisible: false";
  text += ", forward_time: " + list_of(measured, index, [](const MeasuredTime& t) { return time_text(t.forward); });
  text += ", backward_time: " + list_of(measured, index, [](const MeasuredTime& t) { return time_text(t.backward); });
  text += ", spread: " + list_of(measured, index, [](const MeasuredTime& t) { return to_digits(t.spread, 3); });
  return text + "}\n";
}

} // namespace

std::string profile_text(const ModelGraph& model, const MeasuredModel& measured, const std::string& sources) {
  const Profile& first = measured.profiles.front();
  std::string stand_ins, sizes;
  for (const std::string& one : measured.stand_ins) {
    stand_ins += (stand_ins.empty() ? "; without kernels of their own: " : ", ") + one;
  }
  for (const Profile& profile : measured.profiles) {
    sizes += (sizes.empty() ? "" : ", ") + to_digits(profile.samples, kExact);
  }
  std::string text = "name: " + yaml_text(model.name) + "\n";
  text += model.description.empty() ? "" : "description: " + yaml_text(model.description) + "\n";
  text += "sources: " + yaml_text(sources + stand_ins) + "\n";
  if (model.input_elements >= 1) {
    text += "input: {shape: [" + to_digits(model.input_elements, kExact) + "]}\n";
  }
  text += "profile: {device: " + yaml_text(first.device) + ", samples: [" + sizes +
          "], precision: " + std::string(row_of(first.precision).name) + "}\nlayers:\n";
  const std::vector<std::string> names = names_of(model);
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    text += layer_text(model, names, measured, i);
  }
  return text;
}

} // namespace stagecraft::cpu
