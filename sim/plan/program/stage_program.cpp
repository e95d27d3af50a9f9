// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/program/stage_program.hpp"

#include <algorithm>
#include <iterator>

#include "sim/plan/program/emit_program.hpp"
#include "sim/plan/program/share_by_search.hpp"
#include "sim/workload/derive_signatures.hpp"

namespace stagecraft {
namespace {

// A tensor at a border: each sample and token by itself, all else at once.
Signature border_of(const Signature& maker) {
  Signature border;
  for (const TensorDimension& dimension : maker.output) {
    Letter letter = maker.letters[dimension.letter];
    const bool apart = letter.name == kSamples || (letter.name == kTokens && letter.along == Along::each);
    letter.along = apart ? Along::each : Along::whole;
    letter.any_order = false;
    border.output.push_back({static_cast<int>(border.letters.size()), dimension.sections});
    border.letters.push_back(letter);
  }
  return border;
}

class Cutter {
public:
  Cutter(const std::vector<const Signature*>& all, const std::vector<OperatorId>& stage)
      : all_(all), stage_(stage), index_of_(all.size(), -1), inside_(all.size(), 0) {
    for (const OperatorId op : stage) {
      inside_[op] = 1;
    }
  }

  CutStage cut() {
    for (std::size_t at = 0; at < stage_.size(); ++at) {
      for (const InputSignature& input : all_[stage_[at]]->inputs) {
        if (input.maker >= 0 && inside_[input.maker] == 0 && index_of_[input.maker] < 0) {
          Signature incoming = border_of(*all_[input.maker]);
          incoming.inputs = {{-1, incoming.output}};
          add(input.maker, std::move(incoming), at);
        }
      }
    }
    made_.incoming = static_cast<int>(made_.operators.size());
    for (std::size_t at = 0; at < stage_.size(); ++at) {
      add(stage_[at], renumbered(*all_[stage_[at]]), at);
    }
    add_outgoing();
    return std::move(made_);
  }

private:
  void add(OperatorId op, Signature signature, std::size_t position) {
    index_of_[op] = static_cast<int>(made_.operators.size());
    made_.operators.push_back(std::move(signature));
    made_.position.push_back(static_cast<int>(position));
  }

  void add_outgoing() {
    std::vector<char> leaves(all_.size(), 0); // [operator of the model]: is read outside
    for (std::size_t op = 0; op < all_.size(); ++op) {
      for (const InputSignature& input : all_[op]->inputs) {
        if (input.maker >= 0 && inside_[op] == 0) {
          leaves[input.maker] = 1;
        }
      }
    }
    for (std::size_t at = 0; at < stage_.size(); ++at) {
      if (leaves[stage_[at]] != 0) {
        Signature outgoing = border_of(*all_[stage_[at]]);
        outgoing.inputs = {{index_of_[stage_[at]], outgoing.output}};
        made_.operators.push_back(std::move(outgoing));
        made_.position.push_back(static_cast<int>(at));
      }
    }
  }

  Signature renumbered(Signature signature) const {
    for (InputSignature& input : signature.inputs) {
      input.maker = input.maker < 0 ? input.maker : index_of_[input.maker];
    }
    for (ParameterSignature& parameter : signature.parameters) {
      parameter.tied_to = parameter.tied_to < 0 ? parameter.tied_to : index_of_[parameter.tied_to];
    }
    return signature;
  }

  const std::vector<const Signature*>& all_;
  const std::vector<OperatorId>& stage_;
  std::vector<int> index_of_; // [operator of the model]: in what is made
  std::vector<char> inside_;
  CutStage made_;
};

SharedLetters search(const CutStage& cut, const std::vector<OperatorId>& stage, const Layout& layout,
                     const TensorAxis& axis, const StepTimes& times) {
  const auto is_border = [&](int op) {
    return op < cut.incoming || op >= cut.incoming + static_cast<int>(stage.size());
  };
  SearchRule rule{.sequence = axis.sequence};
  for (int op = 0; op < static_cast<int>(cut.operators.size()); ++op) {
    rule.borders.push_back(is_border(op) ? 1 : 0);
  }
  StepTimes of_cut = times;
  of_cut.computation = [&](int op, const Shard& shard) {
    return is_border(op) ? Seconds{0} : times.computation(stage[op - cut.incoming], shard);
  };
  return share_by_search(cut.operators, layout, rule, of_cut).shared;
}

std::variant<SharedLetters, Infeasible> share(const CutStage& cut, const std::vector<OperatorId>& stage,
                                              const Layout& layout, const TensorAxis& axis, const StepTimes& times) {
  switch (axis.rule) {
  case TensorRule::torchtitan:
    return share_by_torchtitan(cut.operators, layout, {.sequence = axis.sequence});
  case TensorRule::torchtitan_whole_loss:
    return share_by_torchtitan(cut.operators, layout, {.sequence = axis.sequence, .loss_parallel = false});
  case TensorRule::search:
    return search(cut, stage, layout, axis, times);
  default:
    return share_by_megatron(cut.operators, layout, {axis.sequence, true, true});
  }
}

} // namespace

namespace {

// The same of a model, whose own signatures are long to copy.
CutStage cut_stage(const ModelGraph& model, const std::vector<OperatorId>& stage) {
  std::vector<const Signature*> own;
  for (const Operator& op : model.operators) {
    if (!op.signature) {
      return stagecraft::cut_stage(signatures_of(model), stage);
    }
    own.push_back(&*op.signature);
  }
  return Cutter(own, stage).cut();
}

} // namespace

CutStage cut_stage(const std::vector<Signature>& all, const std::vector<OperatorId>& stage) {
  std::vector<const Signature*> places;
  std::transform(all.begin(), all.end(), std::back_inserter(places), [](const Signature& one) { return &one; });
  return Cutter(places, stage).cut();
}

std::variant<StageProgram, Infeasible> stage_program(const ModelGraph& model, const std::vector<OperatorId>& stage,
                                                     const TensorAxis& axis, const StepTimes& times) {
  CutStage cut = cut_stage(model, stage);
  const Layout layout = make_layout({{Axis::tensor, axis.degree}});
  auto shared = share(cut, stage, layout, axis, times);
  if (const Infeasible* reason = std::get_if<Infeasible>(&shared)) {
    return *reason;
  }
  StageProgram made{.shared = std::move(std::get<SharedLetters>(shared)),
                    .position = std::move(cut.position),
                    .incoming = cut.incoming};
  made.program = emit_program(std::move(cut.operators), made.shared, layout);
  return made;
}

} // namespace stagecraft
