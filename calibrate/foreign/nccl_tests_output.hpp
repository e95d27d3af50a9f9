// Output of nccl-tests: a header of comments that says who took part, then a line or object per size, with results out
// of place and in place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/foreign/measurement_text.hpp"

namespace stagecraft::foreign {

/// One time in a row, with its two bandwidths.
struct NcclTestsResult {
  Where where;
  std::string path; ///< path in a JSON file
  Bytes size;
  bool in_place = false;
  SampledTime time;
  double algorithm_bandwidth = 0, bus_bandwidth = 0; ///< as printed, GB/s
  double rounding = 0;                               ///< rounding error of both, GB/s
  double wrong = 0;
};

/// One run of a test program.
struct NcclTestsRun {
  std::string program, version, device; ///< as far as the file gives them
  Where program_where;
  int processes_ranks = 0; ///< ranks of one process: threads x GPUs
  int ranks = 0;           ///< ranks listed for the first group
  int iterations = 1;
  bool medians = false;                 ///< times are medians of the iterations, else means
  std::set<std::string> hosts;          ///< hosts of those ranks
  std::vector<NcclTestsResult> results; ///< out of place and in place, for each size
};

/// Reads text output or the file of --json. InputError where a line or an object is broken; other output of the job
/// between the lines is skipped.
NcclTestsRun read_nccl_tests(std::string_view text, const std::string& file);

} // namespace stagecraft::foreign
