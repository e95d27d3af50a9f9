// The options of the command line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace stagecraft::gpu {

struct Options {
  double budget = 420;                ///< seconds for the whole run
  std::string shapes;                 ///< file with a shape list; "": none
  std::string out;                    ///< output; "": measurements.yaml, or a file beside each pipeline
  std::vector<std::string> groups;    ///< groups to measure; empty: all
  std::vector<std::string> pipelines; ///< files of pipelines to run instead of the sweep; "-": stdin
  int runs = 5;                       ///< runs of each pipeline
  std::vector<std::string> libraries;
  std::string name; ///< device name for the file; "": the device's own
  int device = 0;
  bool list = false, dry_run = false, check = false, help = false;
};

/// Reads the arguments after the program's name; std::invalid_argument says what is wrong and what is allowed.
Options parse_options(const std::vector<std::string>& arguments);

/// The text that --help prints.
std::string help_text();

} // namespace stagecraft::gpu
