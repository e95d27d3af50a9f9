// SPDX-License-Identifier: Apache-2.0
#include "sim/report/ascii_timeline.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/report/terminal.hpp"

namespace stagecraft {
namespace {

struct KindRow {
  TaskKind kind;
  char letter, fill;
  std::string_view help;
  std::array<int, 2> shades; // for even and odd micro-batches, in the 256-colour palette
};

// The kinds of computations that are drawn, in the order of the legend.
constexpr std::array kDrawn = {
    KindRow{TaskKind::forward, 'F', '=', "forward", {75, 111}},
    KindRow{TaskKind::recompute, 'R', '~', "recompute", {250, 253}},
    KindRow{TaskKind::backward, 'B', '#', "backward", {71, 114}},
    KindRow{TaskKind::weight, 'W', '+', "weight gradient", {179, 222}},
    KindRow{TaskKind::optimizer, 'O', 'O', "optimizer", {167, 167}},
};
constexpr int kIdle = -1;   // no task
constexpr int kAfter = -2;  // the run has ended
using Entry = std::int64_t; // an entry of the timeline, counted from the first iteration drawn
constexpr Entry kNoTask = -1;

int drawn_index(TaskKind kind) {
  for (std::size_t row = 0; row < kDrawn.size(); ++row) {
    if (kDrawn[row].kind == kind) {
      return static_cast<int>(row);
    }
  }
  return kIdle;
}

// Maps times to columns: column = (time - origin) / column_seconds.
struct Scale {
  double origin = 0;
  double end = 0;  // end of the run, seconds after origin
  double span = 0; // width of the picture in seconds
  int columns = 0;
  double column_seconds = 1;

  // A time within rounding of a column's edge counts as on it.
  double column(double time) const {
    const double at = (time - origin) / column_seconds;
    const double nearest = std::round(at);
    return std::abs(at - nearest) < 1e-6 ? nearest : at;
  }
};

// What tasks of one kind fill of a column: the sum, and the task that fills most.
struct Share {
  double total = 0, largest = 0;
  Entry task = kNoTask;
};

struct Painted {
  int kind = kIdle; // index into kDrawn
  Entry task = kNoTask;
};

// Which labels the line of a device shows.
struct Labels {
  bool with_chunk = false;
  std::array<bool, kDrawn.size()> shown{}; // [kind]
};

class Picture {
public:
  Picture(const TaskGraph& graph, const Timeline& timeline, const std::vector<std::string>& names,
          const PictureOptions& options)
      : graph_(graph), options_(options),
        start_(timeline.start.data() + static_cast<std::size_t>(options.iteration) * graph.tasks()),
        finish_(timeline.finish.data() + static_cast<std::size_t>(options.iteration) * graph.tasks()) {
    for (const std::string& name : names) {
      names_.push_back(on_one_line(name));
      name_width_ = std::max(name_width_, display_width(names_.back()) + 2);
    }
    for (std::size_t device = 0; device < graph.devices.size(); ++device) {
      std::vector<Entry>& program = programs_.emplace_back();
      for (Entry iteration = 0; iteration < options.iterations; ++iteration) {
        for (const TaskId task : graph.program_of(device)) {
          program.push_back(iteration * graph.tasks() + task);
        }
      }
    }
    choose_scale();
  }

  std::string draw() {
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      text_ += names_[device];
      text_.append(name_width_ - display_width(names_[device]), ' ');
      write_line(device);
    }
    write_axis();
    write_legend();
    return std::move(text_);
  }

private:
  std::int32_t micro_batch_of(Entry entry) const { return graph_.micro_batch[entry % graph_.tasks()]; }
  const Work& work_of(Entry entry) const { return graph_.works[graph_.work[entry % graph_.tasks()]]; }

  void choose_scale() {
    bool first = options_.iteration > 0;
    for (const auto& program : programs_) {
      for (const Entry task : program) {
        scale_.origin = first ? start_[task] : std::min(scale_.origin, start_[task]);
        scale_.end = std::max(scale_.end, finish_[task]);
        first = false;
      }
    }
    scale_.end -= scale_.origin;
    scale_.span = options_.until > 0 ? options_.until : scale_.end;
    scale_.columns = std::max(options_.width, 1);
    scale_.column_seconds = scale_.span > 0 ? scale_.span / scale_.columns : 1;
    if (options_.plain_numbers) {
      fit_whole_units();
    }
  }

  // The largest time that divides all starts and finishes (Euclid); 0 where it is shorter than a column.
  double common_unit() const {
    const double tolerance = 1e-9 * scale_.span;
    double unit = 0;
    for (const auto& program : programs_) {
      for (const Entry task : program) {
        unit = shared_unit(shared_unit(unit, start_[task] - scale_.origin, tolerance), finish_[task] - scale_.origin,
                           tolerance);
        if (unit > 0 && unit < scale_.column_seconds * (1 - 1e-9)) {
          return 0;
        }
      }
    }
    return unit;
  }

  static double shared_unit(double unit, double rest, double tolerance) {
    while (rest > tolerance) {
      const double next = unit > 0 ? unit - rest * std::round(unit / rest) : 0;
      unit = rest;
      rest = std::abs(next);
    }
    return unit;
  }

  // As few columns per unit as are needed to show all labels, or as many as there is room for.
  void fit_whole_units() {
    const double unit = common_unit();
    if (unit <= 0) {
      return;
    }
    double shortest = scale_.span;
    std::size_t longest_label = 1;
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      const std::vector<int> stages = stages_of(device);
      for (const Entry task : programs_[device]) {
        if (work_of(task).kind != TaskKind::optimizer && finish_[task] > start_[task]) {
          shortest = std::min(shortest, finish_[task] - start_[task]);
          longest_label = std::max(longest_label, label_of(task, stages, true).size());
        }
      }
    }
    const double units = std::ceil(scale_.span / unit - 1e-6);
    const double wanted = std::ceil(static_cast<double>(longest_label + 1) * unit / shortest - 1e-6);
    const double columns_per_unit = std::min(wanted, std::floor(options_.width / units));
    if (columns_per_unit < 1) {
      return;
    }
    scale_.columns = static_cast<int>(units * columns_per_unit);
    scale_.column_seconds = unit / columns_per_unit;
  }

  // The stages of a device, ascending.
  std::vector<int> stages_of(std::size_t device) const {
    std::vector<int> stages;
    for (const Entry task : programs_[device]) {
      stages.push_back(work_of(task).stage);
    }
    std::sort(stages.begin(), stages.end());
    stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
    return stages;
  }

  std::string label_of(Entry task, const std::vector<int>& stages, bool with_chunk) const {
    const Work& work = work_of(task);
    if (work.kind == TaskKind::optimizer) {
      return "";
    }
    std::string label = kDrawn[drawn_index(work.kind)].letter + std::to_string(micro_batch_of(task));
    if (with_chunk && stages.size() > 1) {
      label += '.' + std::to_string(std::lower_bound(stages.begin(), stages.end(), work.stage) - stages.begin());
    }
    return label;
  }

  // Calls visit(column, share of the column that the task fills) for each column that the task touches.
  template <class Visit> void for_each_column(Entry task, Visit visit) const {
    const auto columns = static_cast<double>(scale_.columns);
    const double from = std::clamp(scale_.column(start_[task]), 0.0, columns);
    const double to = std::min(scale_.column(finish_[task]), columns);
    for (auto column = static_cast<std::size_t>(from); static_cast<double>(column) < to; ++column) {
      const auto left = static_cast<double>(column);
      visit(column, std::min(to, left + 1) - std::max(from, left));
    }
  }

  std::vector<Painted> paint(std::size_t device) const {
    std::vector<std::array<Share, kDrawn.size()>> shares(scale_.columns);
    for (const Entry task : programs_[device]) {
      const int kind = drawn_index(work_of(task).kind);
      for_each_column(task, [&](std::size_t at, double part) {
        Share& share = shares[at][kind];
        share.total += part;
        if (part > share.largest) {
          share.largest = part;
          share.task = task;
        }
      });
    }
    std::vector<Painted> columns(scale_.columns);
    for (std::size_t at = 0; at < columns.size(); ++at) {
      double busy = 0;
      int most = 0;
      for (int kind = 0; kind < static_cast<int>(kDrawn.size()); ++kind) {
        busy += shares[at][kind].total;
        most = shares[at][kind].total > shares[at][most].total ? kind : most;
      }
      if (busy >= 0.5) {
        columns[at] = {most, shares[at][most].task};
      } else if (static_cast<double>(at) >= scale_.column(scale_.origin + scale_.end)) {
        columns[at].kind = kAfter;
      }
    }
    keep_short_tasks(device, columns);
    return columns;
  }

  // A short task that has won no column gets the one that it fills most: an idle column or, if the task is at least
  // half a column wide, a column of a task that has another beside it.
  void keep_short_tasks(std::size_t device, std::vector<Painted>& columns) const {
    for (const Entry task : programs_[device]) {
      const int kind = drawn_index(work_of(task).kind);
      const bool wide = scale_.column(finish_[task]) - scale_.column(start_[task]) >= 0.5;
      bool seen = false;
      std::size_t best = columns.size();
      double most = 0;
      for_each_column(task, [&](std::size_t at, double part) {
        seen |= columns[at].kind == kind;
        if (part > most && (columns[at].kind == kIdle || (wide && can_spare(columns, at)))) {
          most = part;
          best = at;
        }
      });
      if (!seen && best < columns.size()) {
        columns[best] = {kind, task};
      }
    }
  }

  // Whether the task in this column also has a column beside it.
  static bool can_spare(const std::vector<Painted>& columns, std::size_t at) {
    return (at > 0 && columns[at - 1].task == columns[at].task) ||
           (at + 1 < columns.size() && columns[at + 1].task == columns[at].task);
  }

  static std::size_t run_length(const std::vector<Painted>& columns, std::size_t from) {
    std::size_t to = from + 1;
    while (to < columns.size() && columns[to].kind == columns[from].kind && columns[to].task == columns[from].task) {
      ++to;
    }
    return to - from;
  }

  // Labels a kind where two thirds of its tasks have room, so that labels are not scattered; names chunks where all
  // tasks have room.
  Labels choose_labels(const std::vector<int>& stages, const std::vector<Painted>& columns) const {
    Labels labels{.with_chunk = stages.size() > 1};
    std::array<int, kDrawn.size()> tasks{}, fitting{};
    for (std::size_t at = 0; at < columns.size(); at += run_length(columns, at)) {
      if (columns[at].task != kNoTask) {
        const std::size_t room = run_length(columns, at);
        labels.with_chunk &= label_of(columns[at].task, stages, true).size() <= room;
        fitting[columns[at].kind] += label_of(columns[at].task, stages, false).size() <= room ? 1 : 0;
        ++tasks[columns[at].kind];
      }
    }
    for (std::size_t kind = 0; kind < kDrawn.size(); ++kind) {
      labels.shown[kind] = 3 * fitting[kind] >= 2 * tasks[kind];
    }
    return labels;
  }

  // What a line shows.
  struct Line {
    std::vector<int> stages;
    std::vector<Painted> columns;
    Labels labels;
  };

  // Whether two devices do the same at the same times, as those of a tensor-parallel group do.
  bool same_line(std::size_t one, std::size_t other) const {
    return std::equal(programs_[one].begin(), programs_[one].end(), programs_[other].begin(), programs_[other].end(),
                      [&](Entry a, Entry b) {
                        const Work &of_a = work_of(a), &of_b = work_of(b);
                        return start_[a] == start_[b] && finish_[a] == finish_[b] && of_a.kind == of_b.kind &&
                               of_a.stage == of_b.stage && micro_batch_of(a) == micro_batch_of(b);
                      });
  }

  void write_line(std::size_t device) {
    if (device == 0 || !same_line(device - 1, device)) {
      line_.stages = stages_of(device);
      line_.columns = paint(device);
      line_.labels = choose_labels(line_.stages, line_.columns);
    }
    const auto& [stages, columns, labels] = line_;
    for (std::size_t at = 0; at < columns.size(); at += run_length(columns, at)) {
      const std::size_t length = run_length(columns, at);
      if (columns[at].kind == kIdle) {
        text_ += with_style(std::string(length, '.'), dim());
        idle_seen_ = true;
      } else if (columns[at].kind != kAfter) {
        const bool shown = labels.shown[columns[at].kind];
        write_task(columns[at], shown ? label_of(columns[at].task, stages, labels.with_chunk) : "", length);
      }
    }
    chunk_seen_ |= labels.with_chunk;
    end_line();
  }

  void end_line() {
    text_.resize(text_.find_last_not_of(' ') + 1);
    text_ += '\n';
  }

  // Writes the label if there is room, then filling. A labelled task ends with a blank if it can, to set it apart from
  // the next.
  void write_task(const Painted& column, std::string text, std::size_t length) {
    const KindRow& row = kDrawn[column.kind];
    seen_[column.kind] = true;
    text.resize(text.size() <= length ? text.size() : 0);
    const bool blank_end = !text.empty() && text.size() < length;
    text.resize(length, options_.color ? ' ' : row.fill);
    if (blank_end) {
      text.back() = ' ';
    }
    text_ += with_style(text, options_.color ? background(row, micro_batch_of(column.task)) : "");
  }

  std::string_view dim() const { return options_.color ? "2" : ""; }

  static std::string background(const KindRow& row, int micro_batch) {
    return "38;5;16;48;5;" + std::to_string(row.shades[micro_batch % 2]);
  }

  struct Unit {
    std::string_view suffix;
    double seconds;
  };

  Unit fitting_unit() const {
    if (options_.plain_numbers) {
      return {"", 1};
    }
    for (const Unit unit : {Unit{" s", 1}, Unit{" ms", 1e-3}, Unit{" us", 1e-6}}) {
      if (scale_.span >= unit.seconds) {
        return unit;
      }
    }
    return {" ns", 1e-9};
  }

  // The smallest step of 1, 2 or 5 times a power of ten that is at least `least`.
  static double tick_step(double least) {
    const double power = std::pow(10, std::floor(std::log10(least)));
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor * power >= least * (1 - 1e-9)) {
        return factor * power;
      }
    }
    return 10 * power;
  }

  void write_axis() {
    constexpr double kLeastGap = 10; // columns between two ticks
    const Unit unit = fitting_unit();
    const double step = tick_step(kLeastGap * scale_.column_seconds / unit.seconds);
    const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
    std::string rule(name_width_, ' ');
    std::string labels = rule;
    rule.append(scale_.columns, '-');
    for (int tick = 0;; ++tick) {
      const double at = std::round(tick * step * unit.seconds / scale_.column_seconds);
      if (at > scale_.columns) {
        break;
      }
      const std::size_t place = name_width_ + static_cast<std::size_t>(at);
      rule.resize(std::max(rule.size(), place + 1), '-');
      rule[place] = '+';
      labels.resize(std::max(labels.size(), place), ' ');
      labels += tick == 0 ? "0" : to_text(tick * step, decimals) + std::string(unit.suffix);
    }
    text_ += with_style(rule, dim()) + "\n" + with_style(labels, dim()) + "\n";
  }

  void write_legend() {
    text_.append(name_width_, ' ');
    for (std::size_t kind = 0; kind < kDrawn.size(); ++kind) {
      if (seen_[kind]) {
        const KindRow& row = kDrawn[kind];
        const std::string letter(1, row.letter);
        const std::string key = row.letter == row.fill ? letter : letter + row.fill;
        text_ += options_.color ? with_style(' ' + letter + ' ', background(row, 0)) : key;
        // Where weight gradients are separate (W), B is only the input's half of backward.
        const bool split = row.kind == TaskKind::backward && seen_[drawn_index(TaskKind::weight)];
        text_ += ' ' + std::string(split ? "input gradient" : row.help) + "   ";
      }
    }
    if (idle_seen_) {
      text_ += with_style(".", dim()) + " idle   ";
    }
    if (chunk_seen_) {
      text_ += "F0.1 micro-batch 0, chunk 1";
    }
    end_line();
  }

  const TaskGraph& graph_;
  std::vector<std::string> names_;
  const PictureOptions& options_;
  const double* start_;
  const double* finish_;
  std::vector<std::vector<Entry>> programs_; // [device]: tasks of all iterations drawn
  std::size_t name_width_ = 0;
  Scale scale_;
  Line line_; // of the device that was drawn last
  std::string text_;
  std::array<bool, kDrawn.size()> seen_{};
  bool idle_seen_ = false, chunk_seen_ = false;
};

} // namespace

std::string ascii_timeline(const TaskGraph& graph, const Timeline& timeline,
                           const std::vector<std::string>& device_names, const PictureOptions& options) {
  check(device_names.size() == graph.devices.size(), "a picture needs a name for each device in use");
  check(options.iteration >= 0 && options.iterations > 0 &&
            options.iteration + options.iterations <= timeline.iterations,
        "a picture of an iteration that did not run");
  return Picture(graph, timeline, device_names, options).draw();
}

} // namespace stagecraft
