// What a run of nccl-tests printed: a header of comments that says who took part, a line or object per size, each out
// of place and in place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/foreign/measurement_text.hpp"

namespace stagecraft::foreign {

/// One time of a row, and what its two bandwidths claim.
struct NcclTestsResult {
  Where where;
  std::string path; ///< in a JSON file
  Bytes size;
  bool in_place = false;
  SampledTime time;
  double algorithm_bandwidth = 0, bus_bandwidth = 0; ///< GB/s
  double rounding = 0;                               ///< of both, GB/s
  double wrong = 0;
};

/// One run of one program.
struct NcclTestsRun {
  std::string program, version, device; ///< as far as the file says
  Where program_where;
  int processes_ranks = 0; ///< threads x GPUs of one process
  int ranks = 0;           ///< as listed, of the first group
  int iterations = 1;
  bool medians = false;                 ///< of the iterations; else their mean
  std::set<std::string> hosts;          ///< of those ranks
  std::vector<NcclTestsResult> results; ///< out of place and in place
};

/// Reads text output, or the file of --json. InputError where a line or an object is broken; what else a job printed
/// between the lines is passed over.
NcclTestsRun read_nccl_tests(std::string_view text, const std::string& file);

} // namespace stagecraft::foreign
