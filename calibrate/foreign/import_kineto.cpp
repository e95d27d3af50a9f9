// From a trace to measurements: collects the calls of one shape, and counts what has no kernel of ours.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <tuple>

#include "sim/base/named_table.hpp"

#include "calibrate/foreign/foreign_formats.hpp"
#include "calibrate/foreign/kineto_operators.hpp"
#include "calibrate/foreign/measurement_text.hpp"

namespace stagecraft::foreign {
namespace {

struct CollectiveName {
  std::string_view name; ///< beginning of PyTorch's name, without underscores
  std::string_view ours;
};
constexpr std::array kCollectives = {
    CollectiveName{"allreduce", "all-reduce"}, CollectiveName{"allgather", "all-gather"},
    CollectiveName{"reducescatter", "reduce-scatter"}, CollectiveName{"alltoall", "all-to-all"},
    CollectiveName{"broadcast", "broadcast"}};

struct TypeName {
  std::string_view name;
  double bytes;
};
constexpr std::array kElementTypes = {TypeName{"BFloat16", 2}, TypeName{"Half", 2}, TypeName{"Float", 4},
                                      TypeName{"Double", 8},   TypeName{"Int", 4},  TypeName{"Long", 8},
                                      TypeName{"Byte", 1},     TypeName{"Char", 1}, TypeName{"Bool", 1}};

// Counts what was left out, by name and reason.
class LeftOut {
public:
  void add(const std::string& what, Seconds time) {
    auto& [count, sum] = rows_[what];
    ++count;
    sum += time;
  }

  // The lines, the one with the most time first.
  std::vector<std::string> texts(Seconds all) const {
    std::vector<std::pair<std::string, std::pair<int, Seconds>>> rows(rows_.begin(), rows_.end());
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.second.second > b.second.second; });
    std::vector<std::string> texts;
    for (const auto& [what, row] : rows) {
      const double share = all.value > 0 ? row.second / all : 0;
      texts.push_back("left out, " + percent(share, 1) + " of the time: " + std::to_string(row.first) + " x " + what);
    }
    return texts;
  }

private:
  std::map<std::string, std::pair<int, Seconds>> rows_;
};

using KernelKey = std::tuple<KernelOp, KernelPass, Precision, KernelShape>;

std::vector<MeasuredRow> kernels_of(const KinetoTrace& trace, LeftOut& left_out) {
  std::map<KernelKey, std::vector<double>> groups;
  for (const OperatorCall& call : trace.calls) {
    const CallTimes times = times_of(call);
    for (const auto& [kernel, time] : times.times) {
      groups[{kernel.op, kernel.pass, kernel.precision, kernel.shape}].push_back(time.value);
    }
    for (const TraceKernel& kernel : times.times.empty() ? call.kernels : std::vector<TraceKernel>()) {
      left_out.add(call.name + ": " + times.why_not, kernel.time);
    }
  }
  std::vector<MeasuredRow> rows;
  for (auto& [key, seconds] : groups) {
    const auto& [op, pass, precision, shape] = key;
    rows.push_back({.kernel = {op, pass, precision, shape}, .time = sampled(std::move(seconds))});
  }
  return rows;
}

using CollectiveKey = std::tuple<std::string, int, double>;

// The key of a collective; "" for one that we do not have.
CollectiveKey key_of(const TraceCollective& collective) {
  std::string name = collective.name;
  std::erase(name, '_');
  const auto* const ours = std::find_if(kCollectives.begin(), kCollectives.end(),
                                        [&](const CollectiveName& row) { return name.starts_with(row.name); });
  const auto* const type = std::find_if(kElementTypes.begin(), kElementTypes.end(),
                                        [&](const TypeName& row) { return row.name == collective.type; });
  if (ours == kCollectives.end() || type == kElementTypes.end() || collective.ranks < 2) {
    return {};
  }
  const double elements = ours->ours == "all-gather" ? collective.elements_out : collective.elements_in;
  return {std::string(ours->ours), collective.ranks, elements * type->bytes};
}

// For each size the least time over the ranks: that of the rank that came last and so waited for none.
std::vector<MeasuredCollective> collectives_of(const KinetoTrace& trace, bool wanted, LeftOut& left_out) {
  std::map<CollectiveKey, std::vector<double>> groups;
  for (const TraceCollective& collective : trace.collectives) {
    const CollectiveKey key = key_of(collective);
    if (!wanted) {
      left_out.add("collectives, whose times hold the wait for other ranks; --collectives takes the least of each",
                   collective.time);
    } else if (std::get<double>(key) <= 0 || collective.time.value <= 0) {
      left_out.add(collective.name + " of " + collective.type + ": no collective of ours", collective.time);
    } else {
      groups[key].push_back(collective.time.value);
    }
  }
  std::vector<MeasuredCollective> rows;
  for (const auto& [key, seconds] : groups) {
    const auto& [op, ranks, bytes] = key;
    rows.push_back({.op = op,
                    .devices = ranks,
                    .size = Bytes{bytes},
                    .time = {.median = Seconds{*std::min_element(seconds.begin(), seconds.end())}}});
  }
  return rows;
}

// The words of a name, in lower case: "Tesla V100-SXM2" is tesla, v100, sxm2.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      words.back() += static_cast<char>(std::tolower(byte));
    } else {
      words.emplace_back();
    }
  }
  return words;
}

// Refuses a device of the catalogue whose chip, the first word of its name with a digit, is not in the trace's name.
void check_chip(const KinetoTrace& trace, const ForeignOptions& options) {
  const std::vector<std::string> names = words_of(options.device->name), traced = words_of(trace.device);
  const auto chip = std::find_if(names.begin(), names.end(), [](const std::string& word) {
    return std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  });
  const bool known = options.device_file.empty() && !trace.device.empty() && chip != names.end();
  if (known && std::find(traced.begin(), traced.end(), *chip) == traced.end()) {
    throw InputError({"--device", 0, 0}, "the trace was taken on '" + trace.device + "', not on a device of type '" +
                                             options.device->name +
                                             "'; allowed: the type that was measured, or a file of your own for it");
  }
}

MeasuredDevice device_of(const KinetoTrace& trace, const ForeignOptions& options) {
  if (options.device) {
    check_chip(trace, options);
    return {.name = options.device->name,
            .vendor = options.device->vendor,
            .description = trace.device,
            .kind = "gpu",
            .memory = options.device->memory};
  }
  if (trace.device.empty() || trace.memory.value <= 0) {
    throw InputError({"--device", 0, 0}, "the trace has no deviceProperties with a name and totalGlobalMem; allowed: a "
                                         "name in platforms/devices, or a file");
  }
  return device_called(trace.device, trace.memory);
}

} // namespace

ForeignText import_kineto(std::string_view text, const std::string& file, const ForeignOptions& options) {
  const KinetoTrace trace = read_kineto(text, file);
  LeftOut left_out;
  Measurements measurements{.device = device_of(trace, options)};
  measurements.measured = kernels_of(trace, left_out);
  measurements.collectives = collectives_of(trace, options.collectives, left_out);
  for (const TraceKernel& kernel : trace.unowned) {
    left_out.add("kernels whose operator the trace does not name", kernel.time);
  }
  const std::vector<std::string> remarks = left_out.texts(trace.kernel_time);
  if (measurements.measured.empty() && measurements.collectives.empty()) {
    throw InputError({file, 0, 0},
                     "no kernel of a known operator and shape" +
                         (remarks.empty() ? ", since there are no GPU kernels at all" : ": " + join(remarks, "; ")) +
                         "; allowed: a trace of a GPU with record_shapes=True");
  }
  return {measurements_text(measurements, {{"harness", "PyTorch's profiler"}},
                            {{"times", "of all kernels of an operator, as they ran in the job"},
                             {"collectives", options.collectives ? "the least of each size" : "left out"}}),
          remarks};
}

} // namespace stagecraft::foreign
