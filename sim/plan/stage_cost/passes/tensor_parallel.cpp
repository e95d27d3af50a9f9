// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "sim/plan/program/program_seconds.hpp"
#include "sim/plan/stage_cost/groups/expert_loads.hpp"
#include "sim/plan/stage_cost/passes/slowest_times.hpp"

namespace stagecraft {
namespace {

// Reads the shares of operators off a stage's program, whose innermost dimension is the tensor axis.
class ShareReader {
public:
  /// `beside`: in a backward, data is exchanged beside the gradients that do not need it.
  ShareReader(const Problem& problem, const std::vector<OperatorId>& operators, const StageProgram& stage,
              const StageAxes& axes, bool beside)
      : problem_(problem), operators_(operators), stage_(stage), program_(stage.program), axes_(axes),
        tensor_(program_.layout.dimensions.size() - 1), degree_(program_.layout.dimensions.back().size),
        needed_by_weight_(beside ? Exchange::When::before_weight : Exchange::When::before),
        left_by_input_(beside ? Exchange::When::after_input : Exchange::When::after) {}

  TensorSplit read() {
    TensorSplit split;
    for (std::size_t at = 0; at < operators_.size(); ++at) {
      split.operators.push_back(share_of(stage_.op_of[at]));
    }
    read_pass(program_.forward, split, &RankShare::forward, split.operators.back());
    read_pass(program_.backward, split, &RankShare::backward, split.operators.front());
    for (const Step& step : program_.reduction) {
      if (is_collective(step.kind) && step.dimension == tensor_) { // replicas reduce along the others
        const ProgramTensor& gradient = program_.tensors[step.reads.front()];
        at_operator(split, gradient.op).terms +=
            Bytes{local_elements(gradient, program_.layout) * parameter_bytes(problem_.training).gradient};
      }
    }
    split.borders = part_at_borders();
    return split;
  }

private:
  int tensor_letter(int op) const { return stage_.shared[op][tensor_]; }
  bool is_shared(int op) const { return is_letter(tensor_letter(op)); }
  Axis axis_of(std::size_t dimension) const { return program_.layout.dimensions[dimension].axis; }

  // The part that a rank reads or writes of a tensor with these dimensions: its own, or all.
  double used(int op, const TensorDimensions& dimensions) const {
    return is_shared(op) && dimension_of(dimensions, tensor_letter(op)) >= 0 ? 1.0 / degree_ : 1.0;
  }

  double kept(int op) const { return part_of(program_.tensors[program_.values[op]]); }
  double part_of(const ProgramTensor& tensor) const {
    return tensor.placements[tensor_].is_shard() ? 1.0 / degree_ : 1.0;
  }

  RankShare share_of(int op) const {
    const Signature& signature = program_.operators[op];
    double all = 0;
    double saved = 0;
    for (const InputSignature& input : signature.inputs) {
      const double elements = elements_of(input.dimensions);
      const double part = used(op, input.dimensions);
      all += elements;
      saved += elements * (input.maker >= 0 ? std::min(part, kept(input.maker)) : part);
    }
    const double made = elements_of(signature.output);
    const double written = made * used(op, signature.output);
    RankShare share;
    share.output = kept(op);
    share.shard = shard_of_operator(signature, tensor_letter(op), degree_);
    if (signature.queries) {
      share.shard.heads = axes_.context.heads;
      share.shard.rounds = goes_round() ? axes_.context.loops() : 1;
    }
    if (shares_experts(op)) {
      share.of_experts = true;
      share.shard.replicas = axes_.expert_replicas();
      share.shard.by_expert = axes_.degree > 1 && axes_.experts.tensor == 1;
    }
    share.shard.casts_own = gathers_cast() && is_shared(op) && !share.of_experts;
    share.stash = all > 0 ? saved / all : 1;
    share.weight_stash = (saved + written) / (all + made);
    share.parameters = part_of_parameters(op);
    return share;
  }

  // Whether ranks have parts of the operator's experts.
  bool shares_experts(int op) const {
    for (std::size_t i = 0; i < stage_.of_experts.size(); ++i) {
      const int letter = stage_.shared[op][i];
      if (stage_.of_experts[i] != 0 && is_letter(letter) && program_.operators[op].letters[letter].name == kExperts) {
        return !program_.operators[op].parameters.empty();
      }
    }
    return false;
  }

  // Whether what ranks gather for products in 8 bits is cast before.
  bool gathers_cast() const { return axes_.sequence && axes_.degree > 1 && problem_.training.fp8->gathers; }

  const Operator& operator_of(int op) const { return problem_.model.operators[operators_[stage_.position[op]]]; }

  // What is gathered for an operator along the tensor axis, once it is known which one that is.
  void fit_to(int op, std::vector<Exchange>& gathered) const {
    const Operator& reader = operator_of(op);
    for (Exchange& one : gathered) {
      if (one.axis != Axis::tensor || one.kind != CollectiveKind::all_gather) {
        continue;
      }
      if (reader.products && gathers_cast() && !shares_experts(op)) {
        one.bytes = one.bytes * (row_of(*reader.products).bytes / row_of(problem_.training.precision).bytes);
      }
      // A cast of all that is gathered stands between the gather and the product.
      const bool cast_behind = reader.products && !problem_.training.fp8->gathers;
      if (one.when == Exchange::When::before && goes_in_pieces(op) && !cast_behind) {
        one.when = Exchange::When::round;
      }
    }
  }

  bool goes_in_pieces(int op) const {
    return problem_.training.pipelined_exchange && axes_.degree > 1 && operator_of(op).kind == KernelKind::matmul;
  }

  bool goes_round() const { return axes_.context.rule != ContextRule::all_gather; }

  // Of those that are trained, or of all where none are.
  double part_of_parameters(int op) const {
    double all = 0;
    double local = 0;
    const auto& signatures = program_.operators[op].parameters;
    const bool any = std::any_of(signatures.begin(), signatures.end(), [](const auto& one) { return one.trained; });
    for (std::size_t i = 0; i < signatures.size(); ++i) {
      if (any && !signatures[i].trained) {
        continue;
      }
      const ProgramTensor& parameter = program_.tensors[program_.parameters[op][i]];
      const double elements = elements_of(parameter.dimensions);
      all += elements;
      local += local_elements(parameter, program_.layout);
    }
    return all > 0 ? local / all : 1;
  }

  RankShare& at_operator(TensorSplit& split, int op) const { return split.operators[stage_.position[op]]; }

  // What is gathered belongs to the next computation, which reads it; what is added up to the one that made it. `last`:
  // the operator that ends the pass.
  void read_pass(const std::vector<Step>& steps, TensorSplit& split, std::vector<Exchange> RankShare::*pass,
                 RankShare& last) {
    maker_.resize(program_.tensors.size(), -1);
    std::vector<Exchange> gathered;
    const std::vector<Readers> of_weights = readers_of(steps);
    for (const Step& step : steps) {
      maker_[step.writes] = step.op >= 0 ? step.op : maker_[step.reads.back()];
      if (step.op >= 0) {
        fit_to(step.op, gathered);
        auto& exchanges = at_operator(split, step.op).*pass;
        exchanges.insert(exchanges.end(), gathered.begin(), gathered.end());
        gathered.clear();
        at_operator(split, step.op).gathered.tokens += tokens_.tokens;
        at_operator(split, step.op).gathered.choices += tokens_.choices;
        at_operator(split, step.op).gathered.kept += tokens_.kept;
        tokens_ = {};
      } else if (is_collective(step.kind)) {
        const TensorId moved = step.reads.front();
        if (goes_on_to_experts(step) || goes_with_rows(step)) {
          sent_to_experts_.insert(step.writes);
          continue;
        }
        Exchange one{collective_of(step.kind), bytes_of(program_.tensors[moved], step.dimension),
                     Exchange::When::before, axis_of(step.dimension)};
        std::optional<Exchange> inside;
        if (step.kind == StepKind::all_to_all && stage_.of_experts[step.dimension] != 0 && moves_rows(step)) {
          one = to_experts(step);
          inside = part_in_group(one);
          if (pass == &RankShare::forward && one.kind == CollectiveKind::all_gather) {
            tokens_ = gathered_by(step, tokens_);
          }
          sent_to_experts_.insert(step.writes);
        }
        const bool round = one.axis == Axis::context && goes_round();
        if (program_.tensors[moved].placements[step.dimension].is_partial() && maker_[moved] >= 0) {
          const bool hidden = pass == &RankShare::backward && left_by_input_ == Exchange::When::after_input;
          const bool in_pieces = !hidden && one.axis == Axis::tensor && one.kind == CollectiveKind::reduce_scatter &&
                                 goes_in_pieces(maker_[moved]);
          one.when = round || in_pieces ? Exchange::When::round : left_by_input_;
          (at_operator(split, maker_[moved]).*pass).push_back(one);
        } else {
          const bool for_weight = of_weights[step.writes] == Readers::weights;
          one.when = round ? Exchange::When::round : for_weight ? needed_by_weight_ : Exchange::When::before;
          const bool first = inside && inside->kind == CollectiveKind::reduce_scatter;
          if (first) {
            gathered.push_back(*inside);
          }
          gathered.push_back(one);
          if (inside && !first) {
            gathered.push_back(*inside);
          }
        }
      }
    }
    for (Exchange& one : gathered) { // for a tensor that goes out
      one.when = Exchange::When::after;
      (last.*pass).push_back(one);
    }
  }

  // Whether rows go to the ranks of their experts, or come from there.
  bool moves_rows(const Step& step) const {
    return program_.tensors[step.reads.front()].placements[step.dimension].sorted ||
           program_.tensors[step.writes].placements[step.dimension].sorted;
  }

  // The same along a further dimension of the layout: all ranks that share experts exchange rows at once.
  bool goes_on_to_experts(const Step& step) const {
    return step.kind == StepKind::all_to_all && moves_rows(step) && sent_to_experts_.contains(step.reads.front());
  }

  // DeepEP's kernels take along what rows weigh, and the numbers of their experts.
  bool goes_with_rows(const Step& step) const {
    return step.kind == StepKind::all_to_all && moves_rows(step) && stage_.of_experts[step.dimension] != 0 &&
           sends_once() && !are_rows(program_.tensors[step.reads.front()]);
  }

  bool sends_once() const { return problem_.training.dispatcher.sends_once(); }

  // Whether a tensor has a row for each token and expert, not a number. Whoever makes rows or reads them as a gradient
  // reads choices as its second input, which a router makes.
  bool are_rows(const ProgramTensor& tensor) const {
    return tensor.op >= 0 && program_.operators[tensor.op].inputs.size() > 1;
  }

  // Every rank brings the rows of its tokens, as many as one has, and one gets those of the most popular experts. Where
  // a token is sent once to each rank, it brings its tokens: how often they are sent follows from where the ranks are.
  // Where all ranks get all tokens, these are gathered, with which experts each chose and what each expert's result
  // weighs, and what the ranks have of their results is added up.
  Exchange to_experts(const Step& step) const {
    const TensorId moved = step.reads.front();
    const ProgramTensor& tensor = program_.tensors[moved];
    // Ranks of a tensor group have parts of each row, unless they make rows of all tokens.
    const bool parts = axes_.experts.tensor > 1;
    const bool away = program_.tensors[step.writes].placements[step.dimension].sorted;
    const Precision precision = problem_.training.precision;
    const double bytes =
        away && are_rows(tensor) ? problem_.training.dispatcher.dispatch_bytes(precision) : row_of(precision).bytes;
    const double groups = axes_.expert_replicas() * (parts ? part_of(tensor) : 1.0);
    const auto exchange = [&](CollectiveKind kind, double elements) {
      const Bytes whole{elements * problem_.samples * bytes};
      return Exchange{kind, whole * groups, Exchange::When::before, Axis::experts};
    };
    const TensorDimensions& choices =
        are_rows(tensor) ? program_.operators[tensor.op].inputs[1].dimensions : tensor.dimensions;
    const double tokens = elements_of(choices) / static_cast<double>(choices.back().size());
    if (sends_once()) {
      return exchange(away ? CollectiveKind::dispatch : CollectiveKind::combine,
                      tokens * static_cast<double>(tensor.dimensions.back().size()));
    }
    const auto routing = routing_of(problem_, operators_[stage_.position[tensor.op]]);
    if (axes_.gathers_tokens) {
      const double all = routing ? routing->experts : static_cast<double>(choices.back().size());
      const double map = away ? 1 / bytes : 0; // of a byte: which experts a token chose
      return exchange(away ? CollectiveKind::all_gather : CollectiveKind::reduce_scatter,
                      are_rows(tensor) ? tokens * static_cast<double>(tensor.dimensions.back().size())
                                       : tokens * all * (1 + map));
    }
    double heaviest = 1;
    if (routing) {
      const std::vector<double> loads = expert_loads(*routing, axes_.experts.ranks);
      heaviest = *std::max_element(loads.begin(), loads.end());
    }
    Exchange rows = exchange(CollectiveKind::all_to_all, elements_of(tensor.dimensions) * heaviest);
    rows.sorts = are_rows(tensor) && routing && routing->experts > axes_.experts.ranks;
    return rows;
  }

  // Where a tensor group shares tokens and each expert, and ranks gather all tokens, Megatron-LM gathers them in one
  // group of all: each rank sends its own part of the tokens to other ranks' experts, and the tensor group puts
  // together what all of its ranks got; sums go back the same way. The part stays in `one`.
  std::optional<Exchange> part_in_group(Exchange& one) const {
    if (!axes_.gathers_tokens || !axes_.sequence || axes_.experts.tensor == 1) {
      return std::nullopt;
    }
    Exchange inside = one;
    inside.axis = Axis::tensor;
    inside.bytes = one.bytes * (1 - 1.0 / axes_.experts.ranks);
    one.bytes = one.bytes / degree_;
    return inside;
  }

  // What a rank then holds of all ranks' tokens, whatever part of a token's row each of a tensor group brings. Backward
  // needs the choices of the rank's own experts, of all tokens (Megatron-LM's MoEAllGatherTokenDispatcher): rows are
  // picked by number, so the tokens that they are picked from are not kept.
  GatheredTokens gathered_by(const Step& step, GatheredTokens so_far) const {
    const ProgramTensor& tensor = program_.tensors[step.reads.front()];
    const double bytes = row_of(problem_.training.precision).bytes;
    if (are_rows(tensor)) {
      const TensorDimensions& choices = program_.operators[tensor.op].inputs[1].dimensions;
      const double tokens = elements_of(choices) / static_cast<double>(choices.back().size());
      const double numbers = tokens * static_cast<double>(tensor.dimensions.back().size());
      so_far.tokens = Bytes{numbers * problem_.samples * bytes * axes_.expert_replicas()};
      return so_far;
    }
    const auto routing = routing_of(problem_, operators_[stage_.position[tensor.op]]);
    const auto each = static_cast<double>(tensor.dimensions.back().size());
    const double tokens = elements_of(tensor.dimensions) / each * problem_.samples * axes_.expert_replicas();
    so_far.choices = Bytes{tokens * (routing ? routing->experts : each) * (bytes + 1)};
    so_far.kept = so_far.choices / axes_.experts.ranks;
    return so_far;
  }

  // What reads a tensor.
  enum class Readers { none, weights, others };

  // [tensor]: whether only gradients of weights are computed from it.
  std::vector<Readers> readers_of(const std::vector<Step>& steps) const {
    std::vector<Readers> readers(program_.tensors.size(), Readers::none);
    for (const Step& step : steps) {
      for (const TensorId tensor : step.reads) {
        const bool is_weight = step.kind == StepKind::backward_weight && readers[tensor] != Readers::others;
        readers[tensor] = is_weight ? Readers::weights : Readers::others;
      }
    }
    return readers;
  }

  // Bytes of a tensor that all ranks along a dimension have together, for a micro-batch. What is reduced inside an
  // operator has single precision. Each replica has as many samples as the micro-batch, or tokens of them; other
  // dimensions of the layout may have cut what there is of all replicas.
  Bytes bytes_of(const ProgramTensor& tensor, std::size_t dimension) const {
    const Precision precision =
        tensor.role == ProgramTensor::Role::reduction ? Precision::fp32 : problem_.training.precision;
    double elements = elements_of(tensor.dimensions) * problem_.samples;
    for (std::size_t i = 0; i < program_.layout.dimensions.size(); ++i) {
      const double size = program_.layout.dimensions[i].size;
      elements *= i == tensor_ ? 1 : size;
      elements /= i != dimension && tensor.placements[i].is_shard() ? size : 1;
    }
    return Bytes{elements * row_of(precision).bytes};
  }

  double part_at_borders() const {
    double part = 0;
    for (int op = 0; op < static_cast<int>(program_.operators.size()); ++op) {
      if (stage_.is_border(op)) {
        part = std::max(part, kept(op));
      }
    }
    return part > 0 ? part : 1;
  }

  const Problem& problem_;
  const std::vector<OperatorId>& operators_; // of the stage
  const StageProgram& stage_;
  const Program& program_;
  const StageAxes& axes_;
  std::size_t tensor_; // the dimension of the tensor axis
  int degree_;
  Exchange::When needed_by_weight_, left_by_input_;
  std::vector<int> maker_; // [tensor]: the operator whose computation wrote it, or what it was made of
  std::set<TensorId> sent_to_experts_;
  GatheredTokens tokens_{}; // for the next operator of the forward pass
};

bool is_measured(const Problem& problem, const std::vector<OperatorId>& stage, int degree) {
  return std::any_of(stage.begin(), stage.end(),
                     [&](OperatorId op) { return find_configuration(problem.model, op, degree, false) != nullptr; });
}

std::variant<const StageProgram*, Infeasible> program_of(const Problem& problem, const std::vector<OperatorId>& stage,
                                                         const StageAxes& axes, const GroupSpeed& speed,
                                                         KnownPrograms& known) {
  if (axes.rule != TensorRule::search) {
    return known.make(problem.model, stage, axes);
  }
  SlowestTimes slowest(problem, speed.types, speed.share);
  const auto computation = [&](int op, const Shard& shard) {
    const OperatorTime time = slowest.of(op, shard);
    return time.forward + time.backward_input + time.backward_weight;
  };
  const StepTimes times{.computation = computation,
                        .group = speed.group,
                        .samples = problem.samples * speed.share,
                        .element = Bytes{row_of(problem.training.precision).bytes},
                        .gradient = Bytes{parameter_bytes(problem.training).gradient},
                        .micro_batches = static_cast<double>(problem.micro_batches)};
  return known.make(problem.model, stage, axes, times);
}

// The bytes that a group exchanges for an operator because some of its neighbours are in other stages.
Bytes exchanged_at_cuts(const ModelGraph& model, const std::vector<OperatorId>& stage, OperatorId op,
                        const Configuration& measured) {
  const auto outside = [&](OperatorId other) { return !std::binary_search(stage.begin(), stage.end(), other); };
  Bytes sum;
  for (std::size_t edge = 0; edge < measured.incoming.size(); ++edge) {
    sum += outside(model.predecessors[op][edge]) ? measured.incoming[edge] : Bytes{0};
  }
  for (std::size_t edge = 0; edge < measured.outgoing.size(); ++edge) {
    sum += outside(model.successors[op][edge]) ? measured.outgoing[edge] : Bytes{0};
  }
  return sum;
}

} // namespace

GroupSpeed speed_of_groups(const Problem& problem, const std::vector<DeviceId>& devices, const StageAxes& axes,
                           double share) {
  if (axes.rule != TensorRule::search) {
    return {};
  }
  GroupSpeed speed{.types = problem.types_of(devices), .group = {}, .share = share};
  const auto seconds = [](const Group& one) {
    return seconds_of(Collective{CollectiveKind::all_reduce, one, Bytes{1 << 20}});
  };
  for (auto first = devices.begin(); first != devices.end(); first += axes.degree) {
    const Group group = group_of_devices(problem, {first, first + axes.degree});
    speed.group = speed.group.ranks == 1 || seconds(speed.group) < seconds(group) ? group : speed.group;
  }
  return speed;
}

std::variant<TensorSplit, Infeasible> split_tensors(const Problem& problem, const std::vector<OperatorId>& stage,
                                                    const StageAxes& axes, const GroupSpeed& speed,
                                                    KnownPrograms* known) {
  if (axes.alone()) {
    return TensorSplit{std::vector<RankShare>(stage.size()), 1};
  }
  StageAxes as = axes;
  as.gathers_tokens = problem.training.dispatcher.kind == DispatcherKind::allgather;
  if (is_measured(problem, stage, axes.degree)) { // times are as measured, whatever was shared
    as.rule = TensorRule::megatron;
  }
  KnownPrograms own;
  const auto program = program_of(problem, stage, as, speed, known != nullptr ? *known : own);
  if (const Infeasible* reason = std::get_if<Infeasible>(&program)) {
    return *reason;
  }
  const bool beside = problem.training.exchange_beside && as.rule == TensorRule::megatron; // PyTorch's tensors wait
  TensorSplit split = ShareReader(problem, stage, *std::get<const StageProgram*>(program), as, beside).read();
  for (std::size_t at = 0; at < stage.size(); ++at) {
    const Configuration* measured = find_configuration(problem.model, stage[at], axes.degree, false);
    if (measured != nullptr) {
      split.operators[at] = {.shard = {axes.degree},
                             .exchanged = exchanged_at_cuts(problem.model, stage, stage[at], *measured)};
    }
  }
  return split;
}

Seconds given_wait(const RankShare& of_operator, const Group& group, double share) {
  return Seconds{of_operator.exchanged.value * share * group.slowest.seconds_per_byte};
}

} // namespace stagecraft
