// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/pipelines/pipeline.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "calibrate/gpu/pipelines/line_reader.hpp"

namespace stagecraft::gpu {
namespace {

constexpr std::string_view kHead = "stagecraft-pipeline";
constexpr int kVersion = 1, kMost = 1 << 30, kMostIterations = 1000, kMostProcessors = 1 << 20;
constexpr std::string_view kLines = "name, iterations, device, work, kernel, task, program, tie, end";

std::string text_of(const PipelineWork& work) {
  switch (work.kind) {
  case PipelineWork::Kind::compute: {
    std::string text = "work compute device=" + std::to_string(work.device) + "\n";
    for (const RepeatedKernel& one : work.kernels) {
      text += "kernel " + std::to_string(one.times) + " " + to_text(one.kernel) + "\n";
    }
    return text;
  }
  case PipelineWork::Kind::copy:
    return "work copy device=" + std::to_string(work.device) + " to=" + std::to_string(work.to) +
           " channel=" + std::to_string(work.channel) + " bytes=" + std::to_string(work.bytes) +
           " way=" + std::string(name_of(work.route)) + " latency=" + exact(work.latency) +
           " bandwidth=" + exact(work.bandwidth) + "\n";
  default:
    return "work join\n";
  }
}

std::string text_of(const PipelineDevice& device) {
  return device.on_host()        ? "threads=" + std::to_string(device.threads)
         : device.processors > 0 ? "processors=" + std::to_string(device.processors)
                                 : "processors=all";
}

class PipelineReader {
public:
  PipelineReader(const std::string& text, const std::string& file) : file_(file), lines_(keyed_lines(text, file)) {}

  Pipeline read() {
    if (lines_.empty()) {
      throw std::invalid_argument(file_ + ":1:1: an empty file; allowed: '" + std::string(kHead) +
                                  " 1' and what follows");
    }
    KeyedLine& head = lines_.front();
    if (const std::string_view first = head.word(kHead); first != kHead) {
      head.refuse("begins with '" + std::string(first) + "'; allowed: " + std::string(kHead), first);
    }
    if (const std::string_view version = head.word("1"); version != std::to_string(kVersion)) {
      head.refuse("version '" + std::string(version) + "'; allowed: 1", version);
    }
    head.finish();
    for (std::size_t i = 1; i < lines_.size(); ++i) {
      read_line(lines_[i]);
    }
    if (!ended_) {
      lines_.back().refuse("the file ends here, cut off; allowed: a last line 'end'");
    }
    check();
    return std::move(pipeline_);
  }

private:
  void read_line(KeyedLine& line) {
    const std::string_view what = line.word(kLines);
    if (ended_) {
      line.refuse("nothing may follow 'end'", what);
    }
    if (what == "name") {
      pipeline_.name = line.rest();
    } else if (what == "iterations") {
      line_count(line);
    } else if (what == "device") {
      read_device(line);
    } else if (what == "work") {
      read_work(line);
    } else if (what == "kernel") {
      read_kernel(line);
    } else if (what == "task") {
      read_task(line);
    } else if (what == "program") {
      read_program(line);
    } else if (what == "tie") {
      read_tie(line);
    } else if (what == "end") {
      ended_ = true;
    } else {
      line.refuse("unknown line '" + std::string(what) + "'; allowed: " + std::string(kLines), what);
    }
    line.finish();
  }

  void line_count(KeyedLine& line) {
    line.read_keys();
    pipeline_.iterations = static_cast<int>(line.integer("count", 1, kMostIterations));
  }

  void read_device(KeyedLine& line) {
    line.read_keys();
    PipelineDevice device;
    device.name = line.text("name");
    if (line.has("threads")) {
      device.threads = static_cast<int>(line.integer("threads", 1, kMostProcessors));
    } else if (const std::string_view all = line.text("processors"); all != "all") {
      device.processors = static_cast<int>(line.integer("processors", 1, kMostProcessors));
    }
    pipeline_.devices.push_back(std::move(device));
    pipeline_.programs.emplace_back();
  }

  int device_of(KeyedLine& line, std::string_view key) {
    return static_cast<int>(line.integer(key, 0, static_cast<std::int64_t>(pipeline_.devices.size()) - 1));
  }

  void read_work(KeyedLine& line) {
    const std::string_view kind = line.word("compute, copy, join");
    line.read_keys();
    PipelineWork work;
    if (kind == "compute") {
      work.kind = PipelineWork::Kind::compute;
      work.device = device_of(line, "device");
    } else if (kind == "copy") {
      work.kind = PipelineWork::Kind::copy;
      work.device = device_of(line, "device");
      work.to = device_of(line, "to");
      work.channel = static_cast<int>(line.integer("channel", 0, kMostProcessors));
      pipeline_.channels = std::max(pipeline_.channels, work.channel + 1);
      work.bytes = line.integer("bytes", 0, std::int64_t{1} << 40);
      const std::string_view route = line.text("way");
      const auto found = std::find(kCopyRoutes.begin(), kCopyRoutes.end(), route);
      if (found == kCopyRoutes.end()) {
        line.refuse("unknown way '" + std::string(route) + "'; allowed: device, host, shaped", route);
      }
      work.route = static_cast<CopyRoute>(found - kCopyRoutes.begin());
      work.latency = line.amount("latency");
      work.bandwidth = line.amount("bandwidth");
    } else if (kind != "join") {
      line.refuse("unknown work '" + std::string(kind) + "'; allowed: compute, copy, join", kind);
    }
    pipeline_.works.push_back(std::move(work));
  }

  void read_kernel(KeyedLine& line) {
    if (pipeline_.works.empty() || pipeline_.works.back().kind != PipelineWork::Kind::compute) {
      line.refuse("a kernel belongs to the computation above it; allowed: after 'work compute' or another kernel");
    }
    const std::string_view times = line.word("how often it runs");
    const bool plain = !times.empty() && times.find_first_not_of("0123456789") == std::string_view::npos;
    if (!plain || times.size() > 6 || times.front() == '0') {
      line.refuse("'" + std::string(times) + "'; allowed: how often the kernel runs, 1 to 999999", times);
    }
    const std::string_view kernel = line.rest();
    try {
      pipeline_.works.back().kernels.push_back({parse_kernel(kernel), std::stoi(std::string(times))});
    } catch (const std::invalid_argument& error) {
      line.refuse(error.what(), kernel);
    }
  }

  void read_task(KeyedLine& line) {
    line.read_keys();
    pipeline_.names.emplace_back(line.text("name"));
    pipeline_.work.push_back(
        static_cast<int>(line.integer("work", 0, static_cast<std::int64_t>(pipeline_.works.size()) - 1)));
    pipeline_.after.push_back(line.has("then") ? line.integers("then", 0, kMost) : std::vector<int>());
    for (const int next : pipeline_.after.back()) {
      if (next > most_task_) {
        most_task_ = next;
        named_by_ = line;
      }
    }
  }

  void read_program(KeyedLine& line) {
    line.read_keys();
    std::vector<int>& program = pipeline_.programs[static_cast<std::size_t>(device_of(line, "device"))];
    if (!program.empty()) {
      line.refuse("this device has a program already");
    }
    program = line.integers("tasks", 0, pipeline_.tasks() - 1);
    for (const int task : program) {
      const PipelineWork& work =
          pipeline_.works[static_cast<std::size_t>(pipeline_.work[static_cast<std::size_t>(task)])];
      const bool own = work.kind == PipelineWork::Kind::compute &&
                       &pipeline_.programs[static_cast<std::size_t>(work.device)] == &program;
      if (!own || ++placed(task) > 1) {
        line.refuse("task " + std::to_string(task) +
                    " is no computation of this device, or stands twice; allowed: each of its "
                    "computations once");
      }
    }
  }

  void read_tie(KeyedLine& line) {
    line.read_keys();
    PipelineTie tie;
    tie.from = static_cast<int>(line.integer("from", 0, pipeline_.tasks() - 1));
    tie.to = static_cast<int>(line.integer("to", 0, pipeline_.tasks() - 1));
    tie.iterations = static_cast<int>(line.integer("iterations", 1, kMostIterations));
    pipeline_.ties.push_back(tie);
  }

  int& placed(int task) {
    placed_.resize(pipeline_.work.size(), 0);
    return placed_[static_cast<std::size_t>(task)];
  }

  void check() {
    if (most_task_ >= pipeline_.tasks()) {
      named_by_.refuse("there is no task " + std::to_string(most_task_) + "; allowed: 0 to " +
                       std::to_string(pipeline_.tasks() - 1));
    }
    for (int task = 0; task < pipeline_.tasks(); ++task) {
      const PipelineWork& work =
          pipeline_.works[static_cast<std::size_t>(pipeline_.work[static_cast<std::size_t>(task)])];
      if (work.kind == PipelineWork::Kind::compute && placed(task) == 0) {
        lines_.back().refuse("task " + std::to_string(task) + " computes and stands in no program");
      }
    }
  }

  const std::string& file_;
  std::vector<KeyedLine> lines_;
  Pipeline pipeline_;
  std::vector<int> placed_; // [task]: how many times it occurs in programs
  int most_task_ = -1;      // the largest task number that a line names
  KeyedLine named_by_{file_, 1, {}};
  bool ended_ = false;
};

} // namespace

std::string to_text(const Pipeline& pipeline) {
  std::string text = std::string(kHead) + " 1\nname " + pipeline.name +
                     "\niterations count=" + std::to_string(pipeline.iterations) + "\n";
  for (const PipelineDevice& device : pipeline.devices) {
    text += "device name=" + device.name + " " + text_of(device) + "\n";
  }
  for (const PipelineWork& work : pipeline.works) {
    text += text_of(work);
  }
  for (std::size_t task = 0; task < pipeline.work.size(); ++task) {
    text += "task name=" + pipeline.names[task] + " work=" + std::to_string(pipeline.work[task]);
    text += (pipeline.after[task].empty() ? "" : " then=" + listed(pipeline.after[task])) + "\n";
  }
  for (std::size_t device = 0; device < pipeline.programs.size(); ++device) {
    text += "program device=" + std::to_string(device) + " tasks=" + listed(pipeline.programs[device]) + "\n";
  }
  for (const PipelineTie& tie : pipeline.ties) {
    text += "tie from=" + std::to_string(tie.from) + " to=" + std::to_string(tie.to) +
            " iterations=" + std::to_string(tie.iterations) + "\n";
  }
  return text + "end\n";
}

Pipeline parse_pipeline(const std::string& text, const std::string& file) { return PipelineReader(text, file).read(); }

std::string digest_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) {
    digits += kDigits[hash >> shift & 15];
  }
  return digits;
}

bool is_whole(const PipelineDevice& device, int processors) {
  return !device.on_host() && (device.processors == 0 || device.processors == processors);
}

std::string why_no_partitions(const Pipeline& pipeline, int processors, int unit) {
  int taken = 0, whole = 0, parts = 0;
  for (const PipelineDevice& device : pipeline.devices) {
    if (device.on_host()) {
      continue;
    }
    ++parts;
    whole += is_whole(device, processors) ? 1 : 0;
    taken += device.processors;
    if (!is_whole(device, processors) && device.processors % unit != 0) {
      return device.name + " has " + std::to_string(device.processors) + " multiprocessors; allowed: multiples of " +
             std::to_string(unit);
    }
  }
  if (whole > 0) {
    return parts > 1 ? "one device has the whole GPU and others a part; allowed: parts for all, or one device" : "";
  }
  const bool copies = std::any_of(pipeline.works.begin(), pipeline.works.end(), [&](const PipelineWork& work) {
    return work.kind == PipelineWork::Kind::copy && parts > 1;
  });
  const int most = processors / unit * unit - (copies ? unit : 0);
  return taken <= most ? ""
                       : "the partitions have " + std::to_string(taken) +
                             " multiprocessors together; allowed: " + std::to_string(most) +
                             (copies ? ", as copies have a unit of their own" : "");
}

} // namespace stagecraft::gpu
