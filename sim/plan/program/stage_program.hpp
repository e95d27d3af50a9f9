// The program of a pipeline stage whose devices share its operators.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/plan/program/program.hpp"
#include "sim/plan/program/program_seconds.hpp"
#include "sim/plan/program/shared_letters.hpp"
#include "sim/plan/program/stage_axes.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// The operators of a stage, with one without work for each tensor that comes in, first, and for each that goes out,
/// last: at a stage's border a tensor is whole, or cut by samples or tokens.
struct CutStage {
  std::vector<Signature> operators;
  /// [operator]: its position in the stage; for a tensor that comes in and for keys apart that of the first reader, for
  /// one that goes out that of its maker.
  std::vector<int> position;
  std::vector<int> op_of; ///< [position in the stage]: the operator
  int incoming = 0;       ///< tensors that come in
  int outgoing = 0;       ///< the first of the tensors that go out

  bool is_border(int op) const { return op < incoming || op >= outgoing; }
  bool operator==(const CutStage&) const = default;
};
/// With `keys_apart`, what attention needs of all tokens stands apart from what it needs of its own (keys_apart()).
CutStage cut_stage(const std::vector<Signature>& all, const std::vector<OperatorId>& stage, bool keys_apart = false);

/// The program of the ranks that exchange data in a pass, by the axes' rule: Megatron-LM's with products that stand
/// alone shared too and vocabularies padded.
struct StageProgram {
  Program program;
  SharedLetters shared;
  std::vector<int> position, op_of; ///< as in CutStage
  int incoming = 0, outgoing = 0;
  std::vector<char> of_experts; ///< [dimension of the layout]: whether its ranks share experts

  bool is_border(int op) const { return op < incoming || op >= outgoing; }
};

/// Why ranks cannot share experts beside these axes; "" if they can: they are whole axes from the inside.
std::string expert_defect(const StageAxes& axes);

/// Infeasible, with the nearest degree that works, where something does not divide. Only a search asks for times, whose
/// computation() is of operators of the model.
std::variant<StageProgram, Infeasible> stage_program(const ModelGraph& model, const std::vector<OperatorId>& stage,
                                                     const StageAxes& axes, const StepTimes& times = {});

/// Programs that were made before. Stages of equal layers have equal ones, which are made once.
class KnownPrograms {
public:
  /// stage_program(), valid as long as this. A search, which asks for times, is made each time.
  std::variant<const StageProgram*, Infeasible> make(const ModelGraph& model, const std::vector<OperatorId>& stage,
                                                     const StageAxes& axes, const StepTimes& times = {});

private:
  struct Known {
    StageAxes axes;
    CutStage cut;
    StageProgram program;
  };
  std::list<Known> known_;
};

} // namespace stagecraft
