// Writes a measured model as a workload file.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "sim/base/format/yaml_text.hpp"

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

// The device types that were measured, each once.
std::vector<std::string> devices_of(const MeasuredModel& measured) {
  std::vector<std::string> devices;
  for (const Profile& profile : measured.profiles) {
    if (std::find(devices.begin(), devices.end(), profile.device) == devices.end()) {
      devices.push_back(profile.device);
    }
  }
  return devices;
}

// One value for each size of micro-batch.
template <class Value>
std::string list_of(const MeasuredModel& measured, const std::string& device, const Value& value) {
  std::string text;
  for (const Profile& profile : measured.profiles) {
    if (profile.device == device) {
      text += (text.empty() ? "" : ", ") + value(profile);
    }
  }
  return "[" + text + "]";
}

// Such a list, or where there are several device types, one for each by name.
template <class Value> std::string values_of(const MeasuredModel& measured, std::size_t op, const Value& value) {
  const std::vector<std::string> devices = devices_of(measured);
  const auto of_time = [&](const Profile& profile) { return value(profile.times[op]); };
  if (devices.size() == 1) {
    return list_of(measured, devices.front(), of_time);
  }
  std::string text;
  for (const std::string& device : devices) {
    text += (text.empty() ? "" : ", ") + yaml_text(device) + ": " + list_of(measured, device, of_time);
  }
  return "{" + text + "}";
}

std::string heading(const MeasuredModel& measured) {
  const std::string precision(row_of(measured.profiles.front().precision).name);
  const std::vector<std::string> devices = devices_of(measured);
  const auto size = [](const Profile& profile) { return to_digits(profile.samples, kExact); };
  std::string text = "profile:";
  for (const std::string& device : devices) {
    text += (devices.size() > 1 ? "\n  - {device: " : " {device: ") + yaml_text(device) +
            ", samples: " + list_of(measured, device, size) + ", precision: " + precision + "}";
  }
  return text + "\n";
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
  text += ", forward_time: " + values_of(measured, index, [](const MeasuredTime& t) { return time_text(t.forward); });
  text += ", backward_time: " + values_of(measured, index, [](const MeasuredTime& t) { return time_text(t.backward); });
  text += ", spread: " + values_of(measured, index, [](const MeasuredTime& t) { return to_digits(t.spread, 3); });
  return text + "}\n";
}

} // namespace

bool can_stay_beside(const Profile& profile, const Profile& measured) {
  return !profile.device.empty() && profile.device != measured.device && profile.samples > 0 &&
         profile.precision == measured.precision && profile.tensor_parallel == 1 &&
         std::all_of(profile.times.begin(), profile.times.end(), [](const MeasuredTime& time) {
           return std::isfinite(time.forward.value) && std::isfinite(time.backward.value);
         });
}

std::string profile_text(const ModelGraph& model, const MeasuredModel& measured, const std::string& sources) {
  std::string stand_ins;
  for (const std::string& one : measured.stand_ins) {
    stand_ins += (stand_ins.empty() ? "; without kernels of their own: " : ", ") + one;
  }
  std::string text = "name: " + yaml_text(model.name) + "\n";
  text += model.description.empty() ? "" : "description: " + yaml_text(model.description) + "\n";
  text += "sources: " + yaml_text(sources + stand_ins) + "\n";
  if (model.input_elements >= 1) {
    text += "input: {shape: [" + to_digits(model.input_elements, kExact) + "]}\n";
  }
  text += heading(measured) + "layers:\n";
  const std::vector<std::string> names = names_of(model);
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    text += layer_text(model, names, measured, i);
  }
  return text;
}

} // namespace stagecraft::cpu
