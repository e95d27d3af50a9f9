// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/run_figures.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "sim/base/units.hpp"

namespace stagecraft {
namespace {

constexpr double kPercent = 100;

// The unit of a time axis.
struct TimeUnit {
  const char* name;
  double per_second;
};
TimeUnit unit_of(double seconds) { return seconds < 2 ? TimeUnit{"[ms]", 1e3} : TimeUnit{"[s]", 1}; }

struct KindLook {
  TaskKind kind;
  const char* name;
  const char* color;
};
constexpr std::array kKinds = {
    KindLook{TaskKind::forward, "forward", "#56B4E9"},   KindLook{TaskKind::backward, "backward", "#E69F00"},
    KindLook{TaskKind::weight, "weight", "#009E73"},     KindLook{TaskKind::recompute, "recompute", "#F0E442"},
    KindLook{TaskKind::optimizer, "step", "#CC79A7"},    KindLook{TaskKind::transfer, "transfer", "#888888"},
    KindLook{TaskKind::all_reduce, "reduce", "#000000"},
};

std::string title_of(const RunInputs& inputs) {
  return inputs.model + " on " + inputs.platform + ", " + inputs.strategy + ", " + inputs.schedule;
}

class Timelines {
public:
  Timelines(const RunRecord& record, const RunAccuracy& accuracy)
      : record_(record), graph_(record.graph), devices_(record.graph.devices.size()) {
    constexpr std::size_t kMost = 1200; // boxes
    const bool all = graph_.program.size() * record.timeline.iterations <= kMost;
    entries_ = static_cast<std::size_t>(graph_.tasks()) * (all ? record.timeline.iterations : 1);
    const double seconds = std::max(last(record.timeline), last(accuracy.prediction));
    unit_ = unit_of(seconds);
    end_ = unit_.per_second * seconds;
    add(record.timeline, devices_ + 1);
    add(accuracy.prediction, 0);
    figure_ = {.name = "timelines",
               .title = title_of(record.inputs) + (all || record.timeline.iterations == 1 ? "" : ", first iteration"),
               .x = std::string("time ") + unit_.name,
               .y = "",
               .commands = commands(),
               .series = {},
               .width = kPageWidth,
               .height = kAround + kRow * (2 * static_cast<int>(devices_) + 2)};
  }

  Figure figure() {
    for (const KindLook& look : kKinds) {
      if (boxes_.contains(look.kind)) {
        figure_.series.push_back({look.name,
                                  "using (($1+$2)/2):3:1:2:($3-0.42):($3+0.42) with boxxyerror fs solid 1 border lc "
                                  "rgb 'white' lc rgb '" +
                                      std::string(look.color) + "'",
                                  boxes_.at(look.kind)});
      }
    }
    if (!numbers_.empty()) {
      figure_.series.push_back({"", "using 1:2:3 with labels font ',9'", numbers_});
    }
    return figure_;
  }

private:
  static constexpr int kAround = 100, kRow = 16; // pixels

  double last(const Timeline& timeline) const {
    return *std::max_element(timeline.finish.begin(), timeline.finish.begin() + static_cast<std::ptrdiff_t>(entries_));
  }

  // The row of a device, counted upwards from `base`, with the first device on top.
  double row_of(std::size_t device, std::size_t base) const {
    return static_cast<double>(base + devices_ - 1 - device);
  }

  void add(const Timeline& timeline, std::size_t base) {
    constexpr double kDigit = 6, kPlot = 560; // pixels
    for (std::size_t entry = 0; entry < entries_; ++entry) {
      const auto task = static_cast<TaskId>(entry % graph_.tasks());
      const Work& work = graph_.works[graph_.work[task]];
      const double start = unit_.per_second * timeline.start[entry], finish = unit_.per_second * timeline.finish[entry];
      if (!work.computes()) {
        continue;
      }
      const double row = row_of(work.device, base);
      boxes_[work.kind] += figure_row({start, finish, row});
      const std::string number = std::to_string(graph_.micro_batch[task]);
      if (work.kind != TaskKind::optimizer &&
          (finish - start) / end_ * kPlot > kDigit * static_cast<double>(number.size())) {
        numbers_ += figure_row({(start + finish) / 2, row, static_cast<double>(graph_.micro_batch[task])});
      }
    }
  }

  std::string commands() const {
    std::string tics;
    for (const auto& [base, label] : {std::pair{devices_ + 1, "measured"}, std::pair{std::size_t{0}, "predicted"}}) {
      for (std::size_t device = 0; device < devices_; ++device) {
        const std::string name = record_.platform.devices[graph_.devices[device]].name;
        tics += (tics.empty() ? "" : ", ") + gnuplot_text(name.substr(name.find('/') + 1)) + " " +
                to_text(row_of(device, base), 0);
      }
      tics += ", " + gnuplot_text(label) + " " + std::to_string(base + devices_);
    }
    return "set ytics (" + tics +
           ") scale 0\nunset grid\nset grid x lc rgb '#dddddd'\nset yrange [-0.6:" + std::to_string(2 * devices_ + 1) +
           ".5]\nset xrange [0:" + to_text(end_ * 1.01, 6) +
           "]\nset bmargin 5\nset key at graph 0.5, screen 0.01 center bottom horizontal samplen 2\n";
  }

  const RunRecord& record_;
  const TaskGraph& graph_;
  std::size_t devices_, entries_ = 0;
  TimeUnit unit_{};
  double end_ = 0; // in `unit_`
  std::map<TaskKind, std::string> boxes_;
  std::string numbers_;
  Figure figure_;
};

Figure errors_figure(const RunRecord& record, const RunAccuracy& accuracy) {
  const TimeUnit unit = unit_of(accuracy.measured);
  Figure figure{.name = "errors",
                .title = title_of(record.inputs) + ": how late the prediction is",
                .x = std::string("measured finish ") + unit.name,
                .y = "predicted - measured finish [% of the run]",
                .commands = "set key outside right\nset xzeroaxis lc rgb '#444444'\n",
                .series = {},
                .width = kPageWidth};
  const TaskGraph& graph = record.graph;
  for (const KindLook& look : kKinds) {
    std::string rows;
    for (std::size_t entry = 0; entry < record.timeline.finish.size(); ++entry) {
      const Work& work = graph.works[graph.work[entry % graph.tasks()]];
      if (work.kind == look.kind && (work.computes() || work.transfers())) {
        const double measured = record.timeline.finish[entry], predicted = accuracy.prediction.finish[entry];
        rows += figure_row({unit.per_second * measured, kPercent * (predicted - measured) / accuracy.measured});
      }
    }
    if (!rows.empty()) {
      figure.series.push_back(
          {look.name, "using 1:2 with points pt 7 ps 0.5 lc rgb '" + std::string(look.color) + "'", rows});
    }
  }
  return figure;
}

} // namespace

std::vector<Figure> figures_of(const RunRecord& record, const RunAccuracy& accuracy) {
  return {Timelines(record, accuracy).figure(), errors_figure(record, accuracy)};
}

} // namespace stagecraft
