// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/study/truth_study.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/count_of.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"
#include "sim/validate/truth/rows/truth_metrics.hpp"
#include "sim/validate/truth/study/truth_device.hpp"
#include "sim/validate/truth/study/truth_slice.hpp"

namespace stagecraft {

namespace {

// How many devices share a model. Each degree is as large as a cell may be.
double shared_by(const TruthDegrees& degrees) {
  const auto at_least_one = [](int degree) { return static_cast<double>(std::max(degree, 1)); };
  return at_least_one(degrees.tensor) * at_least_one(degrees.pipeline) * at_least_one(degrees.context);
}

int within_int(double count) { return static_cast<int>(std::min<double>(count, std::numeric_limits<int>::max())); }

} // namespace

int truth_devices(const TruthRow& row) {
  if (row.devices > 0) {
    return row.devices;
  }
  const TruthDegrees& degrees = row.degrees;
  const double stated = static_cast<double>(row.nodes) * row.devices_per_node;
  if (degrees.data == 0) {
    return within_int(stated);
  }
  const double all = degrees.data * shared_by(degrees);
  const bool shares_context = all / std::max(degrees.context, 1) == stated; // contexts count as replicas, too
  return within_int(shares_context ? stated : all);
}

// Where a row states degrees that share a model, but nothing of replicas: one.
int devices_of_one_replica(const TruthDegrees& degrees) {
  const int devices = within_int(shared_by(degrees));
  return devices > 1 ? devices : 0;
}

namespace {

// Nodes may have more devices than a run used, of which the last may stand in part of a node; "": it may be so. Where
// the row does not count devices, its degrees do.
std::string contradiction_of(const TruthRow& row) {
  const long long each = row.devices_per_node, all = each * row.nodes, devices = truth_devices(row);
  if (all == 0 || (devices <= all && devices > all - each)) {
    return "";
  }
  return (row.devices > 0 ? "num_gpus " + std::to_string(devices) + " are"
                          : "the " + count_of(devices, "device") + " of its degrees are") +
         " not those of " + count_of(row.nodes, "node") + " of " + count_of(each, "device") +
         "; allowed: " + std::to_string(all - each + 1) + " to " + std::to_string(all);
}

std::string reason_of(const std::string& metric) {
  const std::string_view why = why_not_predicted(metric);
  if (!why.empty()) {
    return ": " + std::string(why);
  }
  std::vector<std::string> names;
  for (const TruthMetric& one : truth_metrics()) {
    if (names.empty() || names.back() != one.name) {
      names.emplace_back(one.name);
    }
  }
  return "; allowed: " + join(names);
}

} // namespace

std::variant<TruthStudy, Infeasible> truth_study(const TruthRow& row, const std::filesystem::path& shipped) {
  if (row.known == nullptr) {
    return Infeasible{"the metric " + (row.metric.empty() ? "is not stated" : "'" + row.metric + "' is not predicted") +
                      reason_of(row.metric)};
  }
  if (plain_words(row.model).empty()) {
    return Infeasible{"the row names no model"};
  }
  if (!row.unreadable.empty()) {
    return Infeasible{row.unreadable};
  }
  if (row.metric == "epoch_seconds" && row.epoch_samples == 0) {
    return Infeasible{"how many samples an epoch of its data set has is not known"};
  }
  if (row.value == 0 && row.known->kind != FigureKind::verdict) {
    return Infeasible{"it was measured as 0, from which nothing is off by a share"};
  }
  if (std::string reason = contradiction_of(row); !reason.empty()) {
    return Infeasible{std::move(reason)};
  }
  const int stated = truth_devices(row);
  const int devices = stated > 0 ? stated : devices_of_one_replica(row.degrees);
  if (devices == 0) {
    return Infeasible{"neither num_gpus, nor nodes and gpus_per_node, nor data_parallel say how many devices ran"};
  }
  if (shared_by(row.degrees) > devices) {
    return Infeasible{"its degrees, " + to_text(shared_by(row.degrees), 0) + " in all, do not divide " +
                      count_of(devices, "device")};
  }
  const TruthFramework& framework = framework_of(row);
  TruthStudy study{.framework = std::string(framework.name), .devices = devices};
  if (!names_framework(row)) {
    study.assumed.push_back("the framework " + study.framework);
  }
  if (stated == 0) {
    study.assumed.emplace_back("one replica");
  }
  if (!row.data_set.empty() && row.epoch_samples == 0) {
    study.assumed.push_back("nothing of the data set '" + excerpt(row.data_set) + "', which is not known");
  }
  std::optional<ShippedModel> named = shipped_model(row, shipped);
  TrainingSetting setting{.devices = devices, .model = named ? &*named : nullptr};
  if (framework.name == "maxtext") { // others ask nothing of the device
    if (const auto device = truth_device(row, shipped); std::holds_alternative<std::string>(device)) {
      setting.device = std::get<std::string>(device);
      setting.slice = chips_of_slice(setting.device, row, devices);
    }
  }
  if (plain_words(row.precision).empty()) {
    setting.precisions = device_precisions(row, shipped);
  }
  const auto parts = {named ? std::variant<StudyPart, Infeasible>(std::move(named->part))
                            : truth_model(row, framework.pads_vocabulary),
                      truth_platform(row, devices, shipped), truth_training(row, framework, setting)};
  for (const auto& part : parts) {
    if (const auto* reason = std::get_if<Infeasible>(&part)) {
      return *reason;
    }
    const auto& [text, assumed] = std::get<StudyPart>(part);
    study.text += text;
    study.assumed.insert(study.assumed.end(), assumed.begin(), assumed.end());
  }
  return study;
}

} // namespace stagecraft
