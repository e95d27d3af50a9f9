// From a run of nccl-tests to measured collectives.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "sim/base/format/json.hpp"
#include "sim/base/named_table.hpp"

#include "calibrate/foreign/foreign_formats.hpp"
#include "calibrate/foreign/nccl_tests_output.hpp"

namespace stagecraft::foreign {
namespace {

// A collective with its factor: bus bandwidth = algorithm bandwidth x factor (doc/PERFORMANCE.md of nccl-tests).
struct CollectiveRow {
  std::string_view name, program;
  double (*bus_factor)(double ranks);
};
constexpr std::array kPrograms = {
    CollectiveRow{"all-reduce", "all_reduce_perf", [](double n) { return 2 * (n - 1) / n; }},
    CollectiveRow{"all-gather", "all_gather_perf", [](double n) { return (n - 1) / n; }},
    CollectiveRow{"reduce-scatter", "reduce_scatter_perf", [](double n) { return (n - 1) / n; }},
    CollectiveRow{"all-to-all", "alltoall_perf", [](double n) { return (n - 1) / n; }},
    CollectiveRow{"broadcast", "broadcast_perf", [](double) { return 1.0; }},
    CollectiveRow{"send", "sendrecv_perf", [](double) { return 1.0; }}};

const CollectiveRow& collective_of(const NcclTestsRun& run, const std::string& file, const ForeignOptions& options) {
  if (!options.collective.empty()) {
    return find_by_name(kPrograms, options.collective, "collective", {"--collective", 0, 0});
  }
  const std::string program = run.program.substr(run.program.rfind('/') + 1);
  if (program.empty()) {
    throw InputError({file, 1, 1}, "no line '# Collective test starting', so which collective it was is not said; "
                                   "allowed: --collective " +
                                       join(names_of(kPrograms), "|"));
  }
  std::vector<std::string> programs;
  for (const CollectiveRow& row : kPrograms) {
    if (row.program == program) {
      return row;
    }
    programs.emplace_back(row.program);
  }
  throw InputError(run.program_where, unknown_name("collective", program, programs));
}

int ranks_of(const NcclTestsRun& run, const std::string& file, const ForeignOptions& options) {
  const int ranks = options.ranks > 0 ? options.ranks : run.ranks > 0 ? run.ranks : run.processes_ranks;
  if (ranks < 2) {
    throw InputError({file, 1, 1}, "a collective of " + std::to_string(ranks) +
                                       " rank; allowed: 2 or more, --ranks N where the file does not list them");
  }
  if (run.hosts.size() > 1) {
    throw InputError({file, 1, 1}, std::to_string(ranks) + " ranks on " + std::to_string(run.hosts.size()) +
                                       " hosts: " + join({run.hosts.begin(), run.hosts.end()}) +
                                       "; allowed: one host, as a device file holds collectives within a node");
  }
  return ranks;
}

// Refuses bandwidths that only another collective, or another number of ranks, would have.
void check_result(const NcclTestsResult& result, const CollectiveRow& row, int ranks, const json::Source& source) {
  const auto error = [&](const std::string& what) {
    return result.path.empty() ? InputError(result.where, what) : source.error(result.path, what);
  };
  if (result.wrong > 0) {
    throw error(to_text(result.wrong, 0) + " elements came out wrong; allowed: 0");
  }
  if (result.time.median.value <= 0) {
    throw error("a time of 0; allowed: more than 0 us");
  }
  const double factor = row.bus_factor(ranks), expected = result.algorithm_bandwidth * factor;
  if (std::abs(result.bus_bandwidth - expected) > (1 + factor) * result.rounding) {
    throw error("a bus bandwidth of " + to_text(result.bus_bandwidth, 2) + " GB/s, where " + std::string(row.name) +
                " of " + std::to_string(ranks) + " ranks has " + to_text(expected, 2) +
                "; allowed: --ranks and --collective where the file does not tell them");
  }
}

MeasuredDevice device_of(const NcclTestsRun& run, const ForeignOptions& options) {
  if (!options.device) {
    throw InputError({"--device", 0, 0}, "nccl-tests do not say how much memory the device has" +
                                             (run.device.empty() ? "" : ", here '" + run.device + "'") +
                                             "; allowed: a name in platforms/devices, or a file");
  }
  return {.name = options.device->name,
          .vendor = options.device->vendor,
          .description = run.device,
          .kind = "gpu",
          .memory = options.device->memory};
}

} // namespace

ForeignText import_nccl_tests(std::string_view text, const std::string& file, const ForeignOptions& options) {
  const NcclTestsRun run = read_nccl_tests(text, file);
  if (run.results.empty()) {
    throw InputError({file, 1, 1}, "no results; allowed: the output of a program of nccl-tests, text or JSON");
  }
  const CollectiveRow& row = collective_of(run, file, options);
  const int ranks = ranks_of(run, file, options);
  Measurements measurements{.device = device_of(run, options)};
  int empty = 0;
  for (const NcclTestsResult& result : run.results) {
    if (result.size.value <= 0) {
      ++empty;
      continue;
    }
    check_result(result, row, ranks, {text, file});
    measurements.collectives.push_back({.op = std::string(row.name),
                                        .devices = ranks,
                                        .size = result.size,
                                        .in_place = result.in_place,
                                        .time = result.time});
  }
  if (measurements.collectives.empty()) {
    throw InputError({file, 1, 1}, "all sizes are 0; allowed: one of more than 0 B");
  }
  FreeTexts software = {{"harness", "nccl-tests" + (run.version.empty() ? "" : " " + run.version)}};
  ForeignText out{measurements_text(measurements, software,
                                    {{"times", run.medians ? "of each iteration" : "mean of the iterations"}}),
                  {}};
  if (empty > 0) {
    out.remarks.push_back(std::to_string(empty) + " times of 0 B left out");
  }
  return out;
}

} // namespace stagecraft::foreign
