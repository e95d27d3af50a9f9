// SPDX-License-Identifier: Apache-2.0
#include "sim/analysis/explain.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/replay/replayer.hpp"
#include "sim/schedule/task_graph/communication_axis.hpp"
#include "sim/study/measure/measure_graph.hpp"
#include "sim/timeline/critical_path.hpp"
#include "sim/timeline/last_transfers.hpp"
#include "sim/timeline/metrics.hpp"

namespace stagecraft {
namespace {

constexpr double kNoMatter = 1e-9; // of an iteration: less does not matter

class Explainer {
public:
  explicit Explainer(const ExplainRequest& request)
      : request_(request), rig_{request.graph, request.platform},
        iteration_(measure(request.graph, request.timeline, request.platform).iteration) {}

  Explanation run() {
    Explanation result{.iteration = iteration_, .slowest = request_.slowest};
    result.communication = communication_of(request_.graph, request_.timeline);
    result.shares = shares(result.communication);
    result.path = path();
    const bool folded = request_.folded != nullptr;
    const Rig rig{folded ? *request_.folded : rig_.graph, rig_.platform};
    const std::vector<Part> parts = folded ? parts_of(rig.graph, rig.platform, 0) : parts_of(rig.graph, rig.platform);
    const Seconds replayed = replay(rig, request_.engine);
    result.sensitivities = sensitivities(rig, parts, replayed);
    add_next(rig, parts, replayed, result);
    return result;
  }

private:
  static constexpr std::size_t kNext = 2;
  static constexpr double kMended = 2, kMostMended = 16; // times as fast, in one step and in total

  Seconds replay(const Rig& rig, ReplayFunction engine) const {
    const Replayer replayer = Replayer(engine).for_many();
    const ReplayRequest request{rig.graph, rig.platform, request_.timeline.iterations};
    Timeline timeline = std::move(replayer(until_steady({&request, 1})).front());
    timeline.window = request_.timeline.window;
    if (rig.graph.overlaps) {
      make_steady(replayer, {&request, 1}, {&timeline, 1});
    }
    return measure(rig.graph, timeline, rig.platform).iteration;
  }

  // What groups exchange within passes, named by their axes.
  static std::string collectives_in_passes(std::span<const Communication> communication) {
    std::vector<std::string> axes;
    for (const Axis axis : kPassAxes) {
      const std::string name(name_of(axis)); // two axes share tokens, under one name
      const bool is_new = std::find(axes.begin(), axes.end(), name + "-parallel") == axes.end();
      if (is_new &&
          std::any_of(communication.begin(), communication.end(), [&](const auto& one) { return one.axis == name; })) {
        axes.push_back(name + "-parallel");
      }
    }
    return (axes.empty() ? "tensor-parallel" : join(axes, " and ")) + " collectives";
  }

  // Adds the time that devices compute, by kind, and that groups exchange data meanwhile, called so, as the mean over
  // devices; returns the sum.
  Seconds add_computing(const std::string& collectives, std::vector<TimeShare>& shares) const {
    const Timeline& timeline = request_.timeline;
    std::vector<double> seconds(kTaskNames.size(), 0.0);
    double exchanging = 0, handing_over = 0;
    const auto tasks = static_cast<std::size_t>(rig_.graph.tasks());
    for (int i = std::max(0, timeline.iterations - timeline.window); i < timeline.iterations; ++i) {
      const std::size_t base = static_cast<std::size_t>(i) * tasks;
      const double* start = timeline.start.data() + base;
      const double* finish = timeline.finish.data() + base;
      const LastTransfers last(rig_.graph, timeline, base);
      for (std::size_t device = 0; device < rig_.graph.devices.size(); ++device) {
        // What exchanges slow down takes its time alone here; the rest is theirs.
        const bool slowed = rig_.platform.type_of(rig_.graph.devices[device]).beside_exchange != BesideExchange{};
        double free = 0;
        for (const TaskId task : rig_.graph.program_of(device)) {
          const Work& work = rig_.graph.works[rig_.graph.work[task]];
          exchanging += work.goes_on ? exchanged_part(rig_.graph, last, start, finish, free, task) : 0;
          free = finish[task];
          const double lasts = slowed ? work.seconds.value : free - start[task];
          seconds[static_cast<std::size_t>(work.kind)] += lasts * (1 - work.exchanging - work.handing_over);
          handing_over += lasts * work.handing_over;
          exchanging += lasts * work.exchanging;
        }
      }
    }
    const double devices = static_cast<double>(rig_.graph.devices.size()) * timeline.window;
    Seconds sum;
    for (std::size_t kind = 0; kind < seconds.size(); ++kind) {
      if (seconds[kind] > 0) {
        shares.push_back({std::string(kTaskNames[kind]), Seconds{seconds[kind] / devices}});
        sum += shares.back().time;
      }
    }
    for (const auto& [what, all] : {std::pair(collectives, exchanging), {"hand-over between stages", handing_over}}) {
      if (all > 0) {
        shares.push_back({what, Seconds{all / devices}});
        sum += shares.back().time;
      }
    }
    return sum;
  }

  std::vector<TimeShare> shares(std::span<const Communication> communication) const {
    std::vector<TimeShare> shares;
    Seconds before = add_computing(collectives_in_passes(communication), shares);
    const auto step = [&](const char* cause, Seconds now) {
      shares.push_back({cause, now - before});
      before = now;
    };
    Rig bare = rig_;
    keep_transfers(bare, [](const Work&) { return false; });
    const bool loads = silence_loader(bare);
    Rig balanced = bare;
    balance(balanced.graph);
    step("fill and drain", replay(balanced, replay_analytic));
    step("unequal stages", replay(bare, replay_analytic));
    Rig unreduced = rig_;
    keep_transfers(unreduced, [](const Work& work) { return work.kind == TaskKind::transfer; });
    silence_loader(unreduced);
    step("transfers between stages", replay(unreduced, replay_analytic));
    Rig fed = rig_;
    silence_loader(fed);
    const auto& works = rig_.graph.works;
    if (std::any_of(works.begin(), works.end(), [](const Work& work) { return is_offload(work.kind); })) {
      Rig kept = fed;
      keep_transfers(kept, [](const Work& work) { return !is_offload(work.kind); });
      step("gradient reduction", replay(kept, replay_analytic));
      step("copies and steps of hosts", replay(fed, replay_analytic));
    } else {
      step("gradient reduction", replay(fed, replay_analytic));
    }
    if (request_.engine != replay_analytic) {
      step("sharing of links", replay(fed, request_.engine));
    }
    if (loads) {
      step("loader", replay(rig_, request_.engine));
    }
    if (std::abs((iteration_ - before) / iteration_) > kNoMatter) {
      step("what the replay does not know", iteration_);
    }
    return shares;
  }

  // Gives all transfers no time, except those to keep and the loader's.
  template <class Keep> static void keep_transfers(Rig& rig, const Keep& keep) {
    for (Work& work : rig.graph.works) {
      const bool between = work.kind == TaskKind::transfer || is_collective(work.kind) || is_offload(work.kind);
      if (work.transfers() && between && !keep(work)) {
        work.seconds = work.latency = Seconds{0};
        work.bytes = 0;
      }
    }
  }

  // Gives the loader no time; returns whether there is one.
  static bool silence_loader(Rig& rig) {
    bool any = false;
    for (Work& work : rig.graph.works) {
      if (work.kind == TaskKind::read || work.kind == TaskKind::load || work.kind == TaskKind::copy) {
        any = true;
        work.seconds = work.latency = Seconds{0};
        work.bytes = 0;
      }
    }
    return any;
  }

  // Gives every pass of a kind the mean time of that kind; its steps, and its parts between reductions of gradients,
  // keep their proportions.
  static void balance(TaskGraph& graph) {
    const std::vector<std::int32_t> count = graph.tasks_per_work();
    std::vector<double> seconds(kTaskNames.size(), 0.0), tasks(kTaskNames.size(), 0.0);
    std::vector<double> whole(graph.works.size(), 0.0); // of the first step of each pass: all of its steps
    std::size_t first = 0;
    for (std::size_t index = 0; index < graph.works.size(); ++index) { // the steps of a pass follow one another
      const Work& work = graph.works[index];
      if (!work.computes()) {
        continue;
      }
      const auto kind = static_cast<std::size_t>(work.kind);
      first = work.goes_on ? first : index;
      whole[first] += work.seconds.value;
      seconds[kind] += work.seconds.value * count[index];
      tasks[kind] += work.goes_on ? 0 : count[index] * (work.part_end - work.part_begin);
    }
    for (std::size_t index = 0; index < graph.works.size(); ++index) {
      Work& work = graph.works[index];
      const auto kind = static_cast<std::size_t>(work.kind);
      if (!work.computes() || tasks[kind] == 0) {
        continue;
      }
      first = work.goes_on ? first : index;
      const double mean = seconds[kind] / tasks[kind] * (work.part_end - work.part_begin);
      const bool is_divided = whole[first] != work.seconds.value;
      work.seconds = is_divided ? work.seconds * (mean / whole[first]) : Seconds{mean};
    }
  }

  std::string name_of_step(const Work& work) const {
    const std::string kind =
        (work.kind == TaskKind::exchange ? std::string(name_of(*axis_of(work))) + "-parallel " : "") +
        std::string(name_of(work.kind));
    if (work.computes()) {
      return kind + ", stage " + std::to_string(work.stage) + " on " +
             rig_.platform.devices[rig_.graph.devices[work.device]].name;
    }
    if (work.kind == TaskKind::transfer) {
      return kind + ", stage " + std::to_string(work.stage) + " to " + std::to_string(work.to_stage);
    }
    return work.transfers() || work.loads() ? kind + ", stage " + std::to_string(work.stage) : "";
  }

  // The critical path by cause. A transfer's time beyond what it takes alone is a cause of its own.
  std::vector<PathShare> path() const {
    std::map<std::string, PathShare> shares;
    const auto add = [&](const std::string& what, double seconds) {
      PathShare& share = shares[what];
      share.time += Seconds{seconds / request_.timeline.window};
      ++share.steps;
    };
    double reached =
        end_of_iteration(rig_.graph, request_.timeline, request_.timeline.iterations - 1 - request_.timeline.window);
    for (const PathStep& step : critical_path(rig_.graph, request_.timeline)) {
      const Work& work = rig_.graph.works[rig_.graph.work[step.entry % rig_.graph.tasks()]];
      const double took = step.finish - step.start;
      const double alone = work.transfers() ? std::min(took, work.seconds.value) : took;
      if (step.start - reached > kNoMatter * iteration_.value) {
        add("hand-over", step.start - reached);
      }
      reached = step.finish;
      if (alone > 0) {
        add(name_of_step(work), alone);
      }
      if (took - alone > kNoMatter * iteration_.value) {
        add("waiting for links that others use, " + name_of_step(work), took - alone);
      }
    }
    std::vector<PathShare> longest;
    for (auto& [what, share] : shares) {
      share.what = what;
      share.steps /= request_.timeline.window;
      longest.push_back(std::move(share));
    }
    std::stable_sort(longest.begin(), longest.end(),
                     [](const PathShare& a, const PathShare& b) { return a.time > b.time; });
    return longest;
  }

  std::vector<Sensitivity> sensitivities(const Rig& rig, const std::vector<Part>& parts, Seconds before) const {
    const auto replayed = [this](const Rig& faster) { return replay(faster, request_.engine); };
    return stagecraft::sensitivities(rig, parts, replayed, before, iteration_);
  }

  // Makes the most helpful part faster until another part helps more, then goes on with that one.
  void add_next(Rig rig, const std::vector<Part>& parts, Seconds replayed, Explanation& result) const {
    const std::vector<Sensitivity>* ranked = &result.sensitivities;
    Seconds now = iteration_;
    const auto helps = [&] {
      return !ranked->empty() && ranked->front().iteration.value < now.value * (1 - kNoMatter);
    };
    const auto is_mended = [&] { return !result.next.empty() && result.next.back().mended == ranked->front().part; };
    while (result.next.size() < kNext && helps() && !is_mended()) {
      NextBottleneck next{.mended = ranked->front().part};
      const auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.name == next.mended; });
      do {
        rig = with_faster(std::move(rig), *part, kMended);
        next.factor *= kMended;
        next.iteration = now = iteration_ * (replay(rig, request_.engine) / replayed);
        next.sensitivities = sensitivities(rig, parts, replayed);
        ranked = &next.sensitivities;
      } while (next.factor < kMostMended && helps() && ranked->front().part == next.mended);
      result.next.push_back(std::move(next));
      ranked = &result.next.back().sensitivities;
    }
  }

  const ExplainRequest& request_;
  Rig rig_;
  Seconds iteration_;
};

} // namespace

Explanation explain(const ExplainRequest& request) { return Explainer(request).run(); }

} // namespace stagecraft
