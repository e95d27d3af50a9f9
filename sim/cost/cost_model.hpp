// How long an operator takes: the one interface with several implementations, and its table of names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "sim/base/error.hpp"
#include "sim/platform/platform.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// Times of one operator for one micro-batch on one device.
struct OperatorTime {
  Seconds forward, backward_input, backward_weight;
};

/// One device's part of an operator that a tensor-parallel group computes together.
struct Shard {
  int degree = 1;                  ///< devices of the group
  bool splits_activations = false; ///< its activations are divided too, not replicated
};

/// How far off a time may be: errors of one family on one device type go together.
struct CostError {
  std::string_view family; ///< valid while the cost model and the platform live
  double spread = 0;       ///< relative standard deviation of truth / prediction; 0: taken at its word
};

/// Of each pass.
struct OperatorError {
  CostError forward, backward_input, backward_weight;
};

/// What a roofline with one efficiency per kernel kind is taken to miss by, and a profile, at home and scaled to
/// another device type (docs/model.md, "Confidence").
inline constexpr double kRooflineSpread = 0.2, kProfileSpread = 0.04, kScaledProfileSpread = 0.15;

/// Cost is a function of operator, device type, micro-batch size and precision. Implementations are pure.
class CostModel {
public:
  virtual ~CostModel() = default;

  /// Nothing where the device type lacks the operator's kernel or the precision.
  virtual std::optional<OperatorTime> time(OperatorId op, const DeviceType& type, double samples,
                                           Precision precision) const = 0;

  /// Time of one shard, without its communication. FLOPs and parameters are divided by the degree, activations only
  /// where the shard says so, launches never. Where a cost model knows no parts: one launch a pass, the rest divided.
  virtual std::optional<OperatorTime> time_of_shard(OperatorId op, const DeviceType& type, double samples,
                                                    Precision precision, const Shard& shard) const;

  /// How far off time() may be.
  virtual OperatorError error(OperatorId op, const DeviceType& type, double samples, Precision precision) const;
};

/// What a cost model is made from. `reference` is the device type that the model's first profiles were taken
/// on, nullptr where they name none, or one that only the model's file knows; then every other device counts as like
/// it.
struct CostModelRequest {
  const ModelGraph& model;
  const DeviceType* reference = nullptr;
};

using CostModelResult = std::variant<std::unique_ptr<CostModel>, Infeasible>;

struct CostModelRow {
  std::string_view name, help;
  CostModelResult (*make)(const CostModelRequest& request);
};
std::span<const CostModelRow> cost_models();

/// The model named, or for "auto": profiled where the model has profiles, else roofline.
CostModelResult make_cost_model(std::string_view name, const CostModelRequest& request, const Where& where);

/// One roofline pass: launches + max(FLOPs / rate, bytes / bandwidth), from shapes; nothing without the kernel.
std::optional<Seconds> roofline_time(const Pass& pass, KernelKind kind, const DeviceType& type, double samples,
                                     Precision precision);
/// The amounts of a pass that are left for one device of a group; without its calls.
Pass pass_of_shard(const Pass& pass, const Shard& shard);

CostModelResult make_roofline(const CostModelRequest& request);
CostModelResult make_calibrated(const CostModelRequest& request);
CostModelResult make_profiled(const CostModelRequest& request);
CostModelResult make_constant(const CostModelRequest& request);

} // namespace stagecraft
