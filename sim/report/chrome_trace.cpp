// SPDX-License-Identifier: Apache-2.0
#include "sim/report/chrome_trace.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "sim/schedule/task_graph/communication_axis.hpp"
#include "sim/timeline/critical_path.hpp"
#include "sim/timeline/device_names.hpp"
#include "sim/timeline/memory.hpp"

namespace stagecraft {
namespace {

constexpr int kDevices = 1, kLinks = 2, kHosts = 3; // process ids

long nanoseconds(double seconds) { return std::lround(seconds * 1e9); }

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Place and time of a slice.
struct Slice {
  int process = kDevices;
  int row = 0;
  long start = 0, finish = 0; // nanoseconds
};

// When a communication uses a link, or a device takes part in it.
struct Use {
  std::size_t entry = 0; // entry of the timeline
  long start = 0, finish = 0;
};

void sort_by_start(std::vector<Use>& uses) {
  std::sort(uses.begin(), uses.end(),
            [](const Use& a, const Use& b) { return std::pair(a.start, a.entry) < std::pair(b.start, b.entry); });
}

// What devices communicate along one axis. Each device has tracks of its own where there are few enough to be read;
// else those who take part together have one, below the first of them.
struct AxisTrack {
  std::int32_t device = 0; // an index into TaskGraph::devices
  CommunicationAxis axis = CommunicationAxis::tensor;
  std::vector<std::int32_t> members; // whom it stands for; empty: the device alone
  auto operator<=>(const AxisTrack&) const = default;
};
constexpr std::size_t kMostDevicesWithTracks = 64;

class TraceWriter {
public:
  /// Appends to `text`. Process ids and arrow numbers start from `group`, and processes carry the timeline's name.
  TraceWriter(const TaskGraph& graph, const NamedTimeline& named, int group, const Platform& platform,
              std::string& text)
      : graph_(graph), timeline_(named.timeline), platform_(platform), names_(device_names(graph, platform)),
        tasks_(graph.tasks()), text_(text), prefix_(named.name.empty() ? "" : named.name + ": "), group_(group),
        critical_(timeline_.start.size(), false) {
    for (const PathStep& step : critical_path(graph, timeline_)) {
      critical_[step.entry] = true;
    }
  }

  void write() {
    name_process(kDevices, "devices");
    name_process(kLinks, "links");
    collect_axes();
    write_devices();
    write_links();
    write_hosts();
    write_arrows();
    write_memory();
  }

private:
  const Work& work_of(TaskId task) const { return graph_.works[graph_.work[task]]; }

  template <class... Parts> void add(const Parts&... parts) { (append(parts), ...); }
  void append(std::string_view part) { text_ += part; }
  void append(long number) {
    char digits[24];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  }

  // Adds a time in microseconds, exact to the nanosecond.
  void add_time(long ns) {
    append(ns / 1000);
    if (const long rest = ns % 1000; rest != 0) {
      const char digits[] = {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                             static_cast<char>('0' + rest % 10)};
      text_.append(digits, sizeof digits);
    }
  }

  void begin_event(char phase, int process, int row) {
    text_ += "\n{\"ph\":\"";
    text_ += phase;
    add("\",\"pid\":", number_of(process), ",\"tid\":", long{row});
  }

  long number_of(int process) const { return long{group_} * kHosts + process; }

  void name_process(int process, const std::string& name) {
    begin_event('M', process, 0);
    add(",\"name\":\"process_name\",\"args\":{\"name\":", quoted(prefix_ + name), "}},");
    begin_event('M', process, 0);
    add(",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":", number_of(process), "}},");
  }

  void name_row(int process, int row, const std::string& name) {
    begin_event('M', process, row);
    add(",\"name\":\"thread_name\",\"args\":{\"name\":", quoted(name), "}},");
    begin_event('M', process, row);
    add(",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":", long{row}, "}},");
  }

  void begin_slice(const Slice& slice, TaskKind kind) {
    begin_event('X', slice.process, slice.row);
    add(",\"ts\":");
    add_time(slice.start);
    add(",\"dur\":");
    add_time(slice.finish - slice.start);
    add(",\"cat\":\"", name_of(kind), "\",\"name\":\"");
  }

  // The slice of an entry on its device.
  Slice device_slice(std::size_t entry) const {
    const Work& work = work_of(static_cast<TaskId>(entry % tasks_));
    return {kDevices, device_row_[work.device], nanoseconds(timeline_.start[entry]),
            nanoseconds(timeline_.finish[entry])};
  }

  const std::string& device_name(std::size_t device) const { return names_[device]; }

  void collect_axes() {
    const bool few = graph_.devices.size() <= kMostDevicesWithTracks;
    for (std::size_t entry = 0; entry < timeline_.start.size(); ++entry) {
      const Work& work = work_of(static_cast<TaskId>(entry % tasks_));
      const std::optional<CommunicationAxis> axis = axis_of(work);
      const Use use{entry, nanoseconds(timeline_.start[entry]), nanoseconds(timeline_.finish[entry])};
      if (!axis || use.finish == use.start) {
        continue;
      }
      const std::vector<std::int32_t> members =
          work.members >= 0 ? graph_.members[work.members] : std::vector{work.device};
      for (const std::int32_t device : few ? members : std::vector{members.front()}) {
        axes_[{device, *axis, few ? std::vector<std::int32_t>() : members}].push_back(use);
      }
    }
    for (auto& [track, uses] : axes_) {
      sort_by_start(uses);
    }
  }

  // "a tensor" of device a; of those who take part together "a, b tensor", or "a, b … h (8) tensor".
  std::string name_of_track(const AxisTrack& track) const {
    const std::vector<std::int32_t>& members = track.members;
    std::string name = device_name(track.device);
    if (members.size() >= 2) {
      name += ", " + device_name(members[1]);
    }
    if (members.size() >= 3) {
      name += (members.size() > 3 ? " … " : ", ") + device_name(members.back()) + " (" +
              std::to_string(members.size()) + ")";
    }
    return name + " " + std::string(name_of(track.axis));
  }

  // Each device's own row, and below it those of its axes.
  void write_devices() {
    int row = 0;
    auto track = axes_.begin();
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      device_row_.push_back(++row);
      write_computations(device);
      for (; track != axes_.end() && track->first.device == static_cast<std::int32_t>(device); ++track) {
        row += write_uses(kDevices, row, name_of_track(track->first), track->second);
      }
    }
  }

  void write_computations(std::size_t device) {
    name_row(kDevices, device_row_[device], device_name(device));
    for (int iteration = 0; iteration < timeline_.iterations; ++iteration) {
      for (const TaskId task : graph_.program_of(device)) {
        write_computation(task, iteration);
      }
    }
  }

  void write_computation(TaskId task, int iteration) {
    const Work& work = work_of(task);
    begin_slice(device_slice(iteration * tasks_ + task), work.kind);
    const char letter = kTaskLetters[static_cast<std::size_t>(work.kind)];
    text_ += letter;
    if (work.kind == TaskKind::optimizer) {
      add("@", long{work.stage}, "\",\"args\":{\"stage\":", long{work.stage});
    } else {
      add(long{graph_.micro_batch[task]}, "@", long{work.stage}, "\",\"args\":{\"stage\":", long{work.stage},
          ",\"micro_batch\":", long{graph_.micro_batch[task]});
    }
    add(",\"iteration\":", long{iteration});
    const Slice slice = device_slice(iteration * tasks_ + task);
    add_exchanging(",\"exposed_exchange_us\":", work.exchanging, slice);
    add_exchanging(",\"hidden_exchange_us\":", work.exchanging_hidden, slice);
    end_arguments(iteration * tasks_ + task);
  }

  // The time of a computation in which its tensor-parallel group exchanges data, where that is no task of its own.
  void add_exchanging(std::string_view key, double part, const Slice& slice) {
    if (part > 0) {
      append(key);
      add_time(std::lround(part * static_cast<double>(slice.finish - slice.start)));
    }
  }

  void end_arguments(std::size_t entry) { add(critical_[entry] ? ",\"critical\":true}}," : "}},"); }

  // For each link, which transfers used it and when, without transfers that take no time.
  std::vector<std::vector<Use>> link_uses() const {
    std::vector<std::vector<Use>> uses(platform_.links.size());
    for (std::size_t entry = 0; entry < timeline_.start.size(); ++entry) {
      const Work& work = work_of(static_cast<TaskId>(entry % tasks_));
      if (!work.transfers()) {
        continue;
      }
      const Use use{entry, nanoseconds(timeline_.start[entry]), nanoseconds(timeline_.finish[entry])};
      if (use.finish > use.start) {
        LinkId before = -1; // a coupled flow that crosses a link several times names it several times in a row
        for (const LinkId link : graph_.legs[work.leg].links) {
          if (link != before) {
            uses[link].push_back(use);
          }
          before = link;
        }
      }
    }
    for (auto& of_link : uses) {
      sort_by_start(of_link);
    }
    return uses;
  }

  // Slices in a row must not overlap, so each takes the first free one of the rows after `before`. Returns how many
  // rows there are.
  int write_uses(int process, int before, const std::string& name, const std::vector<Use>& uses) {
    std::vector<long> free_from; // [row]: when it is free
    for (const Use& use : uses) {
      const auto found = std::find_if(free_from.begin(), free_from.end(), [&](long t) { return t <= use.start; });
      const auto row = static_cast<int>(found - free_from.begin());
      if (found == free_from.end()) {
        free_from.push_back(0);
        name_row(process, before + row + 1, row == 0 ? name : name + " #" + std::to_string(row + 1));
      }
      free_from[row] = use.finish;
      write_transfer({process, before + row + 1, use.start, use.finish}, use.entry);
      if (process == kLinks && first_row_[use.entry] == 0) {
        first_row_[use.entry] = before + row + 1;
      }
    }
    return static_cast<int>(free_from.size());
  }

  void write_links() {
    const auto uses = link_uses();
    first_row_.assign(timeline_.start.size(), {});
    int rows = 0;
    for (std::size_t link = 0; link < uses.size(); ++link) {
      rows += write_uses(kLinks, rows, platform_.links[link].name, uses[link]);
    }
  }

  // A row per core that loads batches; each batch takes the first free one.
  void write_hosts() {
    if (graph_.workers == 0) {
      return;
    }
    name_process(kHosts, "host cores");
    std::vector<std::pair<long, std::size_t>> loads; // start and entry, sorted by start
    for (std::size_t entry = 0; entry < timeline_.start.size(); ++entry) {
      if (work_of(static_cast<TaskId>(entry % tasks_)).loads()) {
        loads.emplace_back(nanoseconds(timeline_.start[entry]), entry);
      }
    }
    std::sort(loads.begin(), loads.end());
    std::vector<std::pair<int, long>> rows; // node, and when its core is free again
    for (const auto& [start, entry] : loads) {
      const auto task = static_cast<TaskId>(entry % tasks_);
      const int node = work_of(task).node;
      auto row = std::find_if(rows.begin(), rows.end(),
                              [&, at = start](const auto& core) { return core.first == node && core.second <= at; });
      if (row == rows.end()) {
        rows.emplace_back(node, 0);
        row = rows.end() - 1;
        name_row(kHosts, static_cast<int>(rows.size()), platform_.nodes[node].name + " loader core");
      }
      row->second = nanoseconds(timeline_.finish[entry]);
      begin_slice({kHosts, static_cast<int>(row - rows.begin()) + 1, start, row->second}, TaskKind::load);
      add("L", long{graph_.micro_batch[task]}, "\",\"args\":{\"micro_batch\":", long{graph_.micro_batch[task]},
          ",\"iteration\":", static_cast<long>(entry / tasks_));
      end_arguments(entry);
    }
  }

  void write_transfer(const Slice& slice, std::size_t entry) {
    const auto task = static_cast<TaskId>(entry % tasks_);
    const Work& work = work_of(task);
    begin_slice(slice, work.kind);
    if (is_collective(work.kind) || is_offload(work.kind)) {
      add(name_of(work.kind), "@", long{work.stage}, "\",\"args\":{\"stage\":", long{work.stage});
    } else if (work.kind != TaskKind::transfer) { // a task of the loader
      add(name_of(work.kind), " ", long{graph_.micro_batch[task]}, "@", long{work.stage},
          "\",\"args\":{\"micro_batch\":", long{graph_.micro_batch[task]});
    } else {
      add(work.stage < work.to_stage ? "activation " : "gradient ", long{graph_.micro_batch[task]}, "@",
          long{work.stage}, ">", long{work.to_stage}, "\",\"args\":{\"stage\":", long{work.stage},
          ",\"to_stage\":", long{work.to_stage}, ",\"micro_batch\":", long{graph_.micro_batch[task]});
    }
    add(",\"iteration\":", static_cast<long>(entry / tasks_), ",\"bytes\":", std::lround(work.bytes));
    end_arguments(entry);
  }

  // One arrow per transfer between stages: from the sending computation over its links to the receiving one.
  void write_arrows() {
    long arrow = long{group_} << 32;
    for (int iteration = 0; iteration < timeline_.iterations; ++iteration) {
      const std::size_t base = iteration * tasks_;
      for (const TaskId producer : graph_.program) {
        for (const TaskId next : graph_.successors_of(producer)) {
          if (work_of(next).kind == TaskKind::transfer) {
            write_arrow(base, producer, next, arrow++);
          }
        }
      }
    }
  }

  void write_arrow(std::size_t base, TaskId producer, TaskId transfer, long arrow) {
    const Slice from = device_slice(base + producer);
    write_arrow_event('s', from.row, kDevices, std::max(from.start, from.finish - 1),
                      arrow); // a nanosecond before the end, to lie within the slice
    for (TaskId next = transfer; next >= 0;) {
      const TaskId leg = next;
      if (first_row_[base + leg] > 0) {
        write_arrow_event('t', first_row_[base + leg], kLinks, nanoseconds(timeline_.start[base + leg]), arrow);
      }
      next = -1;
      for (const TaskId after : graph_.successors_of(leg)) {
        const Work& work = work_of(after);
        if (work.transfers() &&
            graph_.micro_batch[after] == graph_.micro_batch[leg]) { // not the next transfer on the same channel
          next = after;
        } else if (work.computes() && work.stage == work_of(leg).to_stage && work.device != work_of(leg).device) {
          const Slice to = device_slice(base + after);
          write_arrow_event('f', to.row, kDevices, to.start, arrow);
        }
      }
    }
  }

  void write_arrow_event(char phase, int row, int process, long ns, long arrow) {
    begin_event(phase, process, row);
    add(",\"ts\":");
    add_time(ns);
    add(",\"id\":", arrow, ",\"cat\":\"transfer\",\"name\":\"transfer\"", phase == 'f' ? ",\"bp\":\"e\"" : "", "},");
  }

  // Of several steps at one nanosecond only the last is written.
  void write_memory() {
    for (std::size_t device = 0; device < graph_.devices.size(); ++device) {
      const std::string name = quoted("memory " + device_name(device));
      const std::vector<MemoryStep> steps = memory_over_time(graph_, timeline_, device).steps;
      for (std::size_t step = 0; step < steps.size(); ++step) {
        const long at = nanoseconds(steps[step].time);
        if (step + 1 < steps.size() && nanoseconds(steps[step + 1].time) == at) {
          continue;
        }
        begin_event('C', kDevices, device_row_[device]);
        add(",\"ts\":");
        add_time(at);
        add(",\"name\":", name, ",\"args\":{\"bytes\":", std::lround(steps[step].bytes.value), "}},");
      }
    }
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  const Platform& platform_;
  std::vector<std::string> names_; // [device]
  std::size_t tasks_;
  std::string& text_;
  std::string prefix_;
  int group_;
  std::vector<bool> critical_; // [entry of the timeline]
  std::vector<int> device_row_;
  std::map<AxisTrack, std::vector<Use>> axes_;
  std::vector<int> first_row_; // [entry of the timeline]: the transfer's row on its first link, or 0
};

} // namespace

std::string chrome_trace(const TaskGraph& graph, const Timeline& timeline, const Platform& platform) {
  return chrome_trace(graph, std::array{NamedTimeline{"", timeline}}, platform);
}

std::string chrome_trace(const TaskGraph& graph, std::span<const NamedTimeline> timelines, const Platform& platform) {
  std::string text =
      "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"platform\":" + quoted(platform.name) + "},\"traceEvents\":[";
  for (std::size_t group = 0; group < timelines.size(); ++group) {
    TraceWriter(graph, timelines[group], static_cast<int>(group), platform, text).write();
  }
  text.back() = '\n'; // replaces the last comma
  return text + "]}\n";
}

std::string trace_remark(const TaskGraph& graph) {
  const bool parts = std::any_of(graph.works.begin(), graph.works.end(),
                                 [](const Work& work) { return work.exchanging > 0 || work.exchanging_hidden > 0; });
  return !parts || graph.undivided > 0 ? ""
                                       : "the trace shows exchanges of tensor-parallel groups as parts of "
                                         "computations; --detail all gives each a slice of its own";
}

} // namespace stagecraft
