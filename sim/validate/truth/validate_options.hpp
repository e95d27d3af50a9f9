// How measured runs are predicted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sim/study/keys/inputs.hpp"

namespace stagecraft {

/// Only rows whose column has this text, whatever its case.
struct RowFilter {
  std::string column, text;
};

struct ValidateOptions {
  std::filesystem::path shipped = {};  ///< as Folders::shipped: where names in the data are looked for beside it
  std::vector<RowFilter> filters = {}; ///< tables of measured runs; a row must pass all
  std::filesystem::path studies = {};  ///< where the study of each row is written, CASE.yaml; empty: nowhere
  std::filesystem::path errors = {};   ///< the file of error families to write; empty: none
  std::vector<Setting> settings = {};  ///< of the study of each row, on top of what it says
  int workers = 1;                     ///< processes
  std::function<void(std::size_t done, std::size_t all)> progress = {}; ///< hears how many runs are predicted
};

} // namespace stagecraft
