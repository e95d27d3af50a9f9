// SPDX-License-Identifier: Apache-2.0
#include "sim/study/compare/confidence.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "sim/base/random.hpp"
#include "sim/study/measure/measure_graph.hpp"

namespace stagecraft {
namespace {

constexpr double kFamilyShare = 0.5; // share of an error's variance common to a family; the rest is a shape's own

// FNV-1a: the same on every machine.
class Hash {
public:
  Hash& add(std::string_view text) {
    for (const char letter : text) {
      mix(static_cast<unsigned char>(letter));
    }
    mix(0);
    return *this;
  }
  Hash& add(double number) {
    const auto bits = std::bit_cast<std::uint64_t>(number);
    for (int byte = 0; byte < 8; ++byte) {
      mix(static_cast<unsigned char>(bits >> (8U * static_cast<unsigned>(byte))));
    }
    return *this;
  }
  std::uint64_t value() const { return value_; }

private:
  void mix(unsigned char byte) { value_ = (value_ ^ byte) * 1'099'511'628'211ULL; }

  std::uint64_t value_ = 14'695'981'039'346'656'037ULL;
};

// The sources of error. Each is a family of kernels on a device type, or one shape of such a family.
class Sources {
public:
  int index(std::uint64_t what) { return index_.try_emplace(what, static_cast<int>(index_.size())).first->second; }

  // Standard normal numbers, each a function of the seed, the draw and the source alone.
  std::vector<double> draw(std::uint64_t seed, int sample) const {
    std::vector<double> normal(index_.size());
    for (const auto& [what, index] : index_) {
      normal[static_cast<std::size_t>(index)] =
          Random(seed + static_cast<std::uint64_t>(sample) * 0x9e3779b97f4a7c15ULL, what).normal();
    }
    return normal;
  }

private:
  std::map<std::uint64_t, int> index_;
};

// A part of a task's time, and what its error comes from.
struct Part {
  double share = 0, spread = 0;
  int family = 0, shape = 0;
};
using Parts = std::vector<Part>;

double factor(const Parts& parts, const std::vector<double>& normal) {
  double sum = 0;
  for (const Part& part : parts) {
    const double z = std::sqrt(kFamilyShare) * normal[static_cast<std::size_t>(part.family)] +
                     std::sqrt(1 - kFamilyShare) * normal[static_cast<std::size_t>(part.shape)];
    sum += part.share * std::exp(part.spread * z);
  }
  return sum;
}

// The parts of the works of one run.
class PartFinder {
public:
  PartFinder(StudyCosts& costs, int micro_batches, Sources& sources)
      : costs_(costs), micro_batches_(micro_batches), problem_(costs.problem(micro_batches)), sources_(sources) {}

  Parts parts_of(const Work& work, const TaskGraph& graph, const Plan& plan, bool splits_backward) {
    Parts parts;
    if (work.transfers()) {
      return parts_of(graph.legs[static_cast<std::size_t>(work.leg)], work.bytes);
    }
    if (!work.computes() || work.kind > TaskKind::recompute) {
      return parts;
    }
    const Stage& stage = plan.stages[static_cast<std::size_t>(work.stage)];
    const int type = problem_.type_index(graph.devices[static_cast<std::size_t>(work.device)]);
    const std::vector<OperatorError>& errors = costs_.errors(micro_batches_, type);
    for (const OperatorId op : stage.operators) {
      const auto at = static_cast<std::size_t>(op);
      const OperatorError& error = errors[at];
      const Operator& what = problem_.model.operators[at];
      const bool backward = work.kind == TaskKind::backward;
      if (work.kind == TaskKind::forward || (work.kind == TaskKind::recompute && stage.recomputes(op))) {
        add(parts, problem_.forward[type][at], error.forward, what.forward, KernelPass::forward, type);
      }
      if (backward) {
        add(parts, problem_.backward_input[type][at], error.backward_input, what.backward_input,
            KernelPass::backward_input, type);
      }
      if (work.kind == TaskKind::weight || (backward && !splits_backward)) {
        add(parts, problem_.backward_weight[type][at], error.backward_weight, what.backward_weight,
            KernelPass::backward_weight, type);
      }
    }
    double whole = 0;
    for (const Part& part : parts) {
      whole += part.share;
    }
    for (Part& part : parts) {
      part.share /= whole;
    }
    return parts;
  }

private:
  // A transfer has the error of its narrowest link. Links of equal bandwidth, latency and spread are one family; each
  // transfer size is a shape.
  Parts parts_of(const Leg& leg, double bytes) {
    const LinkId narrowest = narrowest_of(problem_.platform, leg.links).link;
    const Link& link = problem_.platform.links[static_cast<std::size_t>(narrowest)];
    if (link.spread == 0) {
      return {};
    }
    const Hash family = Hash().add("link").add(link.bandwidth.value).add(link.latency.value).add(link.spread);
    return {{1, link.spread, sources_.index(family.value()), sources_.index(Hash(family).add(bytes).value())}};
  }

  void add(Parts& parts, double seconds, const CostError& error, const Pass& pass, KernelPass which, int type) {
    if (seconds <= 0) {
      return;
    }
    const Hash family = Hash().add(problem_.platform.types[static_cast<std::size_t>(type)].name).add(error.family);
    const std::uint64_t shape = Hash(family)
                                    .add(row_of(which).name)
                                    .add(problem_.samples)
                                    .add(pass.flops.value)
                                    .add(pass.moved_elements)
                                    .add(pass.moved_parameters)
                                    .value();
    const Part part{seconds, error.spread, sources_.index(family.value()), sources_.index(shape)};
    const auto same = std::find_if(parts.begin(), parts.end(), [&](const Part& other) {
      return other.family == part.family && other.shape == part.shape && other.spread == part.spread;
    });
    if (same != parts.end()) {
      same->share += seconds;
    } else {
      parts.push_back(part);
    }
  }

  StudyCosts& costs_;
  int micro_batches_;
  const Problem& problem_;
  Sources& sources_;
};

// A run to draw for: its works without errors, their parts, its iteration time without errors by the engine `analytic`,
// and the iteration times drawn.
struct Drawn {
  Prepared* prepared = nullptr;
  std::vector<Work> works;
  std::vector<Parts> parts;
  double nominal = 0;
  std::vector<double> seconds; ///< as the study's engine would measure them
};

// Gives the run's graph the times of one draw.
void scale_works(const Drawn& run, const std::vector<double>& normal) {
  TaskGraph& graph = *run.prepared->graph;
  for (std::size_t w = 0; w < run.works.size(); ++w) {
    if (!run.parts[w].empty()) {
      graph.works[w].seconds = run.works[w].seconds * factor(run.parts[w], normal);
    }
  }
}

} // namespace

void add_confidence(StudyCosts& costs, std::vector<Prepared>& prepared) {
  const Study& study = costs.study();
  Sources sources;
  std::vector<Drawn> runs;
  for (Prepared& one : prepared) {
    if (!one.graph || !one.run.feasible) {
      continue;
    }
    Drawn& drawn =
        runs.emplace_back(Drawn{&one, one.graph->works, {}, measure_analytic(study, *one.graph).iteration.value, {}});
    PartFinder finder(costs, one.run.micro_batches, sources);
    for (const Work& work : drawn.works) {
      drawn.parts.push_back(finder.parts_of(work, *one.graph, one.plan, one.schedule.splits_backward));
    }
  }
  std::vector<int> wins(runs.size(), 0);
  for (int sample = 0; sample < study.confidence; ++sample) {
    const std::vector<double> normal = sources.draw(study.seed, sample);
    std::map<int, std::size_t> best; // by block
    for (std::size_t r = 0; r < runs.size(); ++r) {
      Drawn& run = runs[r];
      scale_works(run, normal);
      const double change = measure_analytic(study, *run.prepared->graph).iteration.value / run.nominal;
      run.seconds.push_back(run.prepared->run.metrics.iteration.value * change);
      std::size_t& first = best.try_emplace(block_of(run.prepared->run, study.rank), r).first->second;
      first = run.seconds.back() < runs[first].seconds.back() * (1 - 1e-9) ? r : first;
    }
    for (const auto& [block, first] : best) {
      ++wins[first];
    }
  }
  for (std::size_t r = 0; r < runs.size(); ++r) {
    Drawn& run = runs[r];
    run.prepared->graph->works = std::move(run.works);
    run.prepared->run.confidence = {spread_of(run.seconds), wins[r] / static_cast<double>(study.confidence)};
  }
  for (Prepared& one : prepared) {
    if (one.twin >= 0) {
      one.run.confidence = prepared[static_cast<std::size_t>(one.twin)].run.confidence;
    }
  }
}

} // namespace stagecraft
