// The command line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace stagecraft::gpu {

struct Options {
  double budget = 420;                ///< seconds of the whole run
  std::string shapes;                 ///< file with a shape list, or ""
  std::string out;                    ///< "": measurements.yaml, or beside each pipeline
  std::vector<std::string> groups;    ///< those wanted; all where empty
  std::vector<std::string> pipelines; ///< files of pipelines to be carried out, instead of the sweep; "-": stdin
  int runs = 5;                       ///< of each
  std::vector<std::string> libraries;
  std::string name; ///< of the device in the file, or "" for its own
  int device = 0;
  bool list = false, dry_run = false, help = false;
};

/// Reads the arguments after the program's name; std::invalid_argument says what is wrong and what is allowed.
Options parse_options(const std::vector<std::string>& arguments);

/// What --help prints.
std::string help_text();

} // namespace stagecraft::gpu
