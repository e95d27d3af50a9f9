// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/program/stage_program.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "sim/plan/program/emit_program.hpp"
#include "sim/plan/program/keys_apart.hpp"
#include "sim/plan/program/product_regions.hpp"
#include "sim/plan/program/share_by_search.hpp"
#include "sim/workload/derive_signatures.hpp"

namespace stagecraft {
namespace {

// A tensor at a border: each sample and token by itself, all else at once. Where keys are apart, attention has each
// token by itself, too.
Signature border_of(const Signature& maker, bool keys_apart) {
  Signature border;
  for (const TensorDimension& dimension : maker.output) {
    Letter letter = maker.letters[dimension.letter];
    const bool apart =
        letter.name == kSamples || (letter.name == kTokens && (letter.along == Along::each || keys_apart));
    letter.along = apart ? Along::each : Along::whole;
    letter.any_order = false;
    border.output.push_back({static_cast<int>(border.letters.size()), dimension.sections});
    border.letters.push_back(letter);
  }
  return border;
}

class Cutter {
public:
  Cutter(const std::vector<const Signature*>& all, const std::vector<OperatorId>& stage, bool keys_apart)
      : all_(all), stage_(stage), keys_apart_(keys_apart), index_of_(all.size(), -1), inside_(all.size(), 0) {
    for (const OperatorId op : stage) {
      inside_[op] = 1;
    }
  }

  CutStage cut() {
    for (std::size_t at = 0; at < stage_.size(); ++at) {
      for (const InputSignature& input : all_[stage_[at]]->inputs) {
        if (input.maker >= 0 && inside_[input.maker] == 0 && index_of_[input.maker] < 0) {
          Signature incoming = border_of(*all_[input.maker], keys_apart_);
          incoming.inputs = {{-1, incoming.output}};
          add(input.maker, std::move(incoming), at);
        }
      }
    }
    made_.incoming = static_cast<int>(made_.operators.size());
    for (std::size_t at = 0; at < stage_.size(); ++at) {
      add_inside(at);
    }
    made_.outgoing = static_cast<int>(made_.operators.size());
    add_outgoing();
    return std::move(made_);
  }

private:
  void add(OperatorId op, Signature signature, std::size_t position) {
    index_of_[op] = static_cast<int>(made_.operators.size());
    made_.operators.push_back(std::move(signature));
    made_.position.push_back(static_cast<int>(position));
  }

  void add_inside(std::size_t at) {
    Signature own = renumbered(*all_[stage_[at]]);
    if (auto apart = keys_apart_ ? keys_apart(own) : std::nullopt) {
      if (apart->keys) {
        apart->attention.inputs.back().maker = static_cast<int>(made_.operators.size());
        made_.operators.push_back(*std::move(apart->keys));
        made_.position.push_back(static_cast<int>(at));
      }
      own = std::move(apart->attention);
    }
    add(stage_[at], std::move(own), at);
    made_.op_of.push_back(index_of_[stage_[at]]);
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
        Signature outgoing = border_of(*all_[stage_[at]], keys_apart_);
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
  bool keys_apart_;
  std::vector<int> index_of_; // [operator of the model]: in what is made
  std::vector<char> inside_;
  CutStage made_;
};

// What the other axes leave of each letter for the tensor axis to share.
std::vector<Signature> left_by_others(std::vector<Signature> operators, const Layout& layout,
                                      const SharedLetters& shared) {
  for (std::size_t op = 0; op < operators.size(); ++op) {
    for (std::size_t axis = 0; axis + 1 < layout.dimensions.size(); ++axis) {
      if (const int letter = shared[op][axis]; is_letter(letter)) {
        std::int64_t& pieces = operators[op].letters[letter].pieces;
        pieces = pieces > 0 ? std::max<std::int64_t>(1, pieces / layout.dimensions[axis].size) : 0;
      }
    }
  }
  return operators;
}

// Whether an operator chooses experts, or reads choices.
std::vector<char> is_of_mixture(const std::vector<Signature>& operators) {
  std::vector<char> is(operators.size(), 0);
  for (std::size_t op = 0; op < operators.size(); ++op) {
    for (const InputSignature& input : operators[op].inputs) {
      if (!input.passes_gradient) {
        is[op] = 1;
        is[static_cast<std::size_t>(std::max(0, input.maker))] |= input.maker >= 0 ? 1 : 0;
      }
    }
  }
  return is;
}

// Searched for along the tensor axis alone; the others share by rule what is theirs. Where tensor ranks have experts of
// their own, each routes its own tokens, as by Megatron-LM's rule.
std::variant<SharedLetters, Infeasible> search(const CutStage& cut, const std::vector<OperatorId>& stage,
                                               const Layout& layout, const StageAxes& axes, const StepTimes& times) {
  const auto none = [&](int) { return AxisLetters{std::vector<int>(cut.operators.size(), kNone), {}}; };
  auto others = share_axes(cut.operators, layout, "the search", none);
  if (std::holds_alternative<Infeasible>(others)) {
    return others;
  }
  SharedLetters shared = std::get<SharedLetters>(std::move(others));
  SearchRule rule{.sequence = axes.sequence};
  for (int op = 0; op < static_cast<int>(cut.operators.size()); ++op) {
    rule.borders.push_back(cut.is_border(op) ? 1 : 0);
  }
  StepTimes of_cut = times;
  of_cut.computation = [&](int op, const Shard& shard) {
    return cut.is_border(op) ? Seconds{0} : times.computation(stage[cut.position[op]], shard);
  };
  const FoundLetters found = share_by_search(left_by_others(cut.operators, layout, shared),
                                             make_layout({{Axis::tensor, axes.degree}}), rule, of_cut);
  const bool own_experts = axes.degree > 1 && !axes.shares_each_expert();
  auto by_rule = own_experts ? share_by_megatron(cut.operators, layout, {axes.sequence, true, true})
                             : std::variant<SharedLetters, Infeasible>{SharedLetters{}};
  if (std::holds_alternative<Infeasible>(by_rule)) {
    return by_rule;
  }
  const std::vector<char> of_mixture = is_of_mixture(cut.operators);
  for (std::size_t op = 0; op < shared.size(); ++op) {
    shared[op].back() =
        own_experts && of_mixture[op] != 0 ? std::get<SharedLetters>(by_rule)[op].back() : found.shared[op].front();
  }
  return shared;
}

std::variant<SharedLetters, Infeasible> share(const CutStage& cut, const std::vector<OperatorId>& stage,
                                              const Layout& layout, const StageAxes& axes, const StepTimes& times) {
  switch (axes.rule) {
  case TensorRule::torchtitan:
  case TensorRule::torchtitan_whole_loss:
    return share_by_torchtitan(cut.operators, layout,
                               {.sequence = axes.sequence,
                                .loss_parallel = axes.rule == TensorRule::torchtitan,
                                .experts_by_token = !axes.shares_each_expert()});
  case TensorRule::search:
    return search(cut, stage, layout, axes, times);
  default:
    return share_by_megatron(cut.operators, layout,
                             {axes.sequence, true, true, axes.gathers_tokens && axes.shares_each_expert()});
  }
}

// The ranks that exchange data in a pass: replicas that share experts, in each of these those that share tokens, and in
// each of these a tensor group.
Layout layout_of(const StageAxes& axes) {
  std::vector<AxisSize> sizes;
  if (const int replicas = axes.expert_replicas() / axes.context.ranks; replicas > 1) {
    sizes.push_back({Axis::data, replicas});
  }
  if (axes.context.loops() > 1) {
    sizes.push_back({Axis::context, axes.context.loops()});
  }
  if (axes.context.heads > 1) {
    sizes.push_back({Axis::heads, axes.context.heads});
  }
  sizes.push_back({Axis::tensor, axes.degree});
  return make_layout(sizes);
}

// [dimension of the layout]: whether its ranks share experts: all from the inside that these take.
std::vector<char> dimensions_of_experts(const StageAxes& axes, const Layout& layout) {
  std::vector<char> of_experts(layout.dimensions.size(), 0);
  int left = axes.experts.ranks;
  for (std::size_t i = layout.dimensions.size(); i-- > 0 && left > 1;) {
    const Layout::Dimension& one = layout.dimensions[i];
    if (one.axis != Axis::tensor || axes.experts.tensor == 1) {
      of_experts[i] = one.size > 1 ? 1 : 0;
      left /= one.size;
    }
  }
  return of_experts;
}

// The letter of experts that ranks may share; kNone for what is no part of a mixture's experts.
int expert_letter(const Signature& signature) {
  const int letter = find_letter(signature, kExperts);
  return letter != kNone && signature.letters[letter].along == Along::each ? letter : kNone;
}

// Shares out experts where the axes' rule has chosen letters for everything else.
std::optional<Infeasible> share_experts(const CutStage& cut, const Layout& layout, const std::vector<char>& of_experts,
                                        SharedLetters& shared) {
  for (std::size_t axis = 0; axis < of_experts.size(); ++axis) {
    if (of_experts[axis] == 0) {
      continue;
    }
    for (std::size_t op = 0; op < cut.operators.size(); ++op) {
      if (const int letter = expert_letter(cut.operators[op]); letter != kNone) {
        shared[op][axis] = letter;
      }
    }
    if (auto defect = sharing_defect(cut.operators, layout, shared, axis, {})) {
      return defect;
    }
  }
  return std::nullopt;
}

// Samples of a micro-batch, of which signatures show one, may be shared in any parts.
void allow_any_samples(std::vector<Signature>& operators) {
  for (Signature& signature : operators) {
    for (Letter& letter : signature.letters) {
      letter.pieces = letter.name == kSamples ? 0 : letter.pieces;
    }
  }
}

// Why ranks of these axes have nothing to share in the model, "" if they have. Where an operator's dimensions are not
// known, nobody's are.
std::string nothing_to_share(const ModelGraph& model, const StageAxes& axes) {
  const auto any = [&](const auto& holds) {
    return std::any_of(model.operators.begin(), model.operators.end(), holds);
  };
  const std::string asked = axes.experts.ranks > 1 ? "expert " + std::to_string(axes.experts.ranks)
                                                   : "context " + std::to_string(axes.context.ranks);
  const auto is_expert = [](const Operator& op) {
    return op.routing || (op.signature && expert_letter(*op.signature) != kNone);
  };
  if (axes.experts.ranks > 1 && !any(is_expert)) {
    return asked + " has no experts to share, since the model has none; allowed: 1";
  }
  for (const Operator& op : model.operators) {
    if (!op.signature && axes.experts.ranks * axes.context.ranks > 1) {
      return asked + " would share what operator '" + op.name + "' " + (op.type.empty() ? "" : "(" + op.type + ") ") +
             "does not tell: which of its dimensions are tokens or experts; allowed: 1";
    }
  }
  const auto has_tokens = [](const Operator& op) { return find_letter(*op.signature, kTokens) != kNone; };
  if (axes.context.ranks > 1 && !any(has_tokens)) {
    return asked + " has no tokens to share, since the model has none; allowed: 1";
  }
  return "";
}

// The reason with the name of the operator of which it tells the number.
Infeasible by_name(Infeasible infeasible, const CutStage& cut, const ModelGraph& model,
                   const std::vector<OperatorId>& stage) {
  constexpr std::string_view kNumbered = "operator ";
  if (std::string& reason = infeasible.reason; reason.starts_with(kNumbered)) {
    const std::size_t end = reason.find(' ', kNumbered.size());
    const auto number = static_cast<std::size_t>(std::stoi(reason.substr(kNumbered.size(), end)));
    reason.replace(kNumbered.size(), end - kNumbered.size(),
                   "'" + model.operators[stage[static_cast<std::size_t>(cut.position[number])]].name + "'");
  }
  return infeasible;
}

// The same of a model, whose own signatures are long to copy.
CutStage cut_stage(const ModelGraph& model, const std::vector<OperatorId>& stage, bool keys_apart) {
  std::vector<const Signature*> own;
  for (const Operator& op : model.operators) {
    if (!op.signature) {
      return stagecraft::cut_stage(signatures_of(model), stage, keys_apart);
    }
    own.push_back(&*op.signature);
  }
  return Cutter(own, stage, keys_apart).cut();
}

// Why these ranks cannot share anything of the model; "" if they can.
std::string axes_defect(const ModelGraph& model, const StageAxes& axes) {
  std::string defect = nothing_to_share(model, axes);
  return defect.empty() ? expert_defect(axes) : defect;
}

CutStage cut_for(const ModelGraph& model, const std::vector<OperatorId>& stage, const StageAxes& axes) {
  CutStage cut = cut_stage(model, stage, axes.context.loops() > 1);
  if (axes.experts.ranks > 1) {
    allow_any_samples(cut.operators);
  }
  return cut;
}

std::variant<StageProgram, Infeasible> program_of_cut(CutStage cut, const ModelGraph& model,
                                                      const std::vector<OperatorId>& stage, const StageAxes& axes,
                                                      const StepTimes& times) {
  const Layout layout = layout_of(axes);
  auto shared = share(cut, stage, layout, axes, times);
  if (const Infeasible* reason = std::get_if<Infeasible>(&shared)) {
    return by_name(*reason, cut, model, stage);
  }
  std::vector<char> of_experts = dimensions_of_experts(axes, layout);
  if (auto defect = share_experts(cut, layout, of_experts, std::get<SharedLetters>(shared))) {
    return by_name(*std::move(defect), cut, model, stage);
  }
  StageProgram made{.program = {},
                    .shared = std::move(std::get<SharedLetters>(shared)),
                    .position = std::move(cut.position),
                    .op_of = std::move(cut.op_of),
                    .incoming = cut.incoming,
                    .outgoing = cut.outgoing,
                    .of_experts = std::move(of_experts)};
  made.program = emit_program(std::move(cut.operators), made.shared, layout);
  return made;
}

} // namespace

CutStage cut_stage(const std::vector<Signature>& all, const std::vector<OperatorId>& stage, bool keys_apart) {
  std::vector<const Signature*> own;
  std::transform(all.begin(), all.end(), std::back_inserter(own), [](const Signature& one) { return &one; });
  return Cutter(own, stage, keys_apart).cut();
}

std::string expert_defect(const StageAxes& axes) {
  const auto& [ranks, tensor] = axes.experts;
  if (ranks == 1) {
    return "";
  }
  if (tensor != 1 && tensor != axes.degree) {
    return "expert_tensor " + std::to_string(tensor) + " is neither 1 nor the tensor degree " +
           std::to_string(axes.degree);
  }
  const int inside = tensor == 1 ? axes.degree : 1;
  if (inside > 1 && !axes.sequence) {
    return "the " + std::to_string(inside) +
           " ranks of a tensor group have the same tokens, so they cannot send them to " +
           "different experts; allowed: sequence: true, or expert_tensor: " + std::to_string(inside);
  }
  const int all = inside * axes.context.ranks;
  std::string known; // what experts may be shared by
  int size = inside;
  for (const int more : {1, axes.context.heads, axes.context.loops()}) {
    size *= more;
    if (size == ranks) {
      return "";
    }
    known += size > 1 && size < all && (more > 1 || known.empty()) ? std::to_string(size) + ", " : "";
  }
  if (ranks % size == 0) {
    return "";
  }
  return "expert " + std::to_string(ranks) + " does not go with the axes inside it; allowed: " + known +
         "multiples of " + std::to_string(size);
}

std::variant<StageProgram, Infeasible> stage_program(const ModelGraph& model, const std::vector<OperatorId>& stage,
                                                     const StageAxes& axes, const StepTimes& times) {
  if (std::string defect = axes_defect(model, axes); !defect.empty()) {
    return Infeasible{std::move(defect)};
  }
  return program_of_cut(cut_for(model, stage, axes), model, stage, axes, times);
}

std::variant<const StageProgram*, Infeasible> KnownPrograms::make(const ModelGraph& model,
                                                                  const std::vector<OperatorId>& stage,
                                                                  const StageAxes& axes, const StepTimes& times) {
  if (std::string defect = axes_defect(model, axes); !defect.empty()) {
    return Infeasible{std::move(defect)};
  }
  CutStage cut = cut_for(model, stage, axes);
  const auto is_same = [&](const Known& known) { return known.axes == axes && known.cut == cut; };
  const auto same =
      axes.rule == TensorRule::search ? known_.end() : std::find_if(known_.begin(), known_.end(), is_same);
  if (same != known_.end()) {
    return &same->program;
  }
  auto made = program_of_cut(cut, model, stage, axes, times);
  if (Infeasible* reason = std::get_if<Infeasible>(&made)) {
    return std::move(*reason);
  }
  return &known_.emplace_back(Known{axes, std::move(cut), std::get<StageProgram>(std::move(made))}).program;
}

} // namespace stagecraft
