// How long an operator takes: the CostModel interface, and the table of its implementations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
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

/// One device's part of an operator that it computes together with others.
struct Shard {
  int degree = 1;         ///< devices of the group
  double activations = 1; ///< the part of the operator's activations that the device reads and writes
  bool sums = false;      ///< of products: it divides what they sum over, not their columns
  int heads = 1;  ///< of attention: devices that also share its heads, each with the tokens of all: so many times the
                  ///< samples that it is asked for
  int rounds = 1; ///< of attention: kernels, one after another, each on so small a part of the tokens, of so many times
                  ///< the samples that it is asked for
  int replicas = 1;       ///< of a mixture: those that share its experts, each of which has the rows of all of them
  bool by_expert = false; ///< of a mixture: the degree, too, divides its experts
  bool casts_own = false; ///< of products in 8 bits: the device casts its own part, before what is whole is gathered
  bool operator==(const Shard&) const = default;
};

/// What a time rests on. `table`: the kernel was measured in this very shape. `stated`: the cost model itself says it.
enum class CostSource { fit, table, roofline, profile, scaled_profile, stated };
struct CostSourceRow {
  std::string_view name, words;
};
/// In the order of CostSource.
inline constexpr std::array kCostSources = {
    CostSourceRow{"fit", "fits to measurements"},
    CostSourceRow{"table", "measurements of the same shapes"},
    CostSourceRow{"roofline", "the roofline"},
    CostSourceRow{"profile", "a profile"},
    CostSourceRow{"scaled_profile", "a profile scaled from another device"},
    CostSourceRow{"stated", "stated times"},
};

/// How far off a time may be, and what it rests on. Errors of one family on one device type are correlated.
struct CostError {
  std::string_view family; ///< valid while the cost model and the platform live
  double spread = 0;       ///< relative standard deviation of truth / prediction; 0: exact
  CostSource source = CostSource::stated;
};

/// The error of each pass.
struct OperatorError {
  CostError forward, backward_input, backward_weight;
};

/// Assumed relative errors of a roofline with one efficiency per kernel kind, of a profile on the device type that it
/// was measured on, and of a profile scaled to another type (docs/model.md, "Confidence").
inline constexpr double kRooflineSpread = 0.2, kProfileSpread = 0.04, kScaledProfileSpread = 0.15;

/// Any part of a micro-batch of at most `samples`, on any tensor-parallel group of at most `degree` devices. `gaps`, at
/// most its launches, are taken off each pass before it is divided by its samples, as far as something is left.
struct AnyPart {
  double samples = 1;
  int degree = 1;
  OperatorTime gaps = {};
};

/// Device seconds per sample that no part falls below: each pass by itself, and all three together.
struct LeastTime {
  OperatorTime each;
  Seconds all;
};

/// Cost is a function of operator, device type, micro-batch size and precision. Implementations are pure.
class CostModel {
public:
  virtual ~CostModel() = default;

  /// The times of an operator; nothing where the device type lacks its kernel or the precision.
  virtual std::optional<OperatorTime> time(OperatorId op, const DeviceType& type, double samples,
                                           Precision precision) const = 0;

  /// Time of one shard, without its communication. The degree divides FLOPs and parameters, activations as the
  /// shard says, and launches never. The default is for a model that only has whole times: one launch per pass
  /// stays, the rest is divided.
  virtual std::optional<OperatorTime> time_of_shard(OperatorId op, const DeviceType& type, double samples,
                                                    Precision precision, const Shard& shard) const;

  /// A proven bound: for each size n > 0 and degree that `part` allows, degree * (time_of_shard() - gaps) / n is no
  /// less. Sizes are any fractions, since replicas may share samples in any proportion. Nothing where time() has
  /// nothing.
  virtual std::optional<LeastTime> least_time(OperatorId op, const DeviceType& type, Precision precision,
                                              const AnyPart& part) const = 0;

  /// Whether two operators take the same time everywhere and at every size, which is as far off, so that one answer
  /// serves both. The default knows it of one operator only.
  virtual bool alike(OperatorId a, OperatorId b) const { return a == b; }

  /// How far off time() may be. The default is no error.
  virtual OperatorError error(OperatorId op, const DeviceType& type, double samples, Precision precision) const;
};

/// What a cost model is made from. `reference` is the device type that the model's first profiles were taken on. It is
/// nullptr where the profiles name none, or one that only the model's file knows; all devices then count as that type.
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

/// The cost model called `name`; for "auto", profiled where the model has profiles, else calibrated,
/// which takes a roofline where a device has no fits.
CostModelResult make_cost_model(std::string_view name, const CostModelRequest& request, const Where& where);

/// Time of the kernels that cast a pass's inputs to the format of its products: launches + bytes / bandwidth.
Seconds cast_time(const Pass& pass, const DeviceType& type, double samples);

/// Roofline time of one pass: launches + max(FLOPs / rate, bytes / bandwidth), from shapes, + cast_time(); nothing
/// where the device type lacks the kernel. `products`: the format in which it multiplies; nothing: `precision`.
std::optional<Seconds> roofline_time(const Pass& pass, KernelKind kind, const DeviceType& type, double samples,
                                     Precision precision, std::optional<Precision> products = std::nullopt);
/// A pass with the amounts that one device of a group has to do, without its kernel calls.
Pass pass_of_shard(const Pass& pass, const Shard& shard);

/// least_time() of a model whose device seconds per sample, less the gaps, fall with the size and rise with the degree:
/// those of the whole part on one device.
std::optional<LeastTime> least_of_whole(const CostModel& cost, OperatorId op, const DeviceType& type,
                                        Precision precision, const AnyPart& part);

CostModelResult make_roofline(const CostModelRequest& request);
CostModelResult make_calibrated(const CostModelRequest& request);
CostModelResult make_profiled(const CostModelRequest& request);
CostModelResult make_constant(const CostModelRequest& request);

} // namespace stagecraft
