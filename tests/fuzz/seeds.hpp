// What a fuzzer begins with, beside the files of the table: formats that are not text, built by code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/readers.hpp"

namespace stagecraft::fuzz {

/// ONNX models of a few operators.
std::vector<std::string> onnx_seeds();
/// Results of small sweeps, as SQLite files.
std::vector<std::string> sweep_seeds();
/// Documents that commands write for the report.
std::vector<std::string> document_seeds();

/// All of a reader's seeds: the shipped files that its row names and those made by code. Files too large to mutate well
/// are left out.
std::vector<std::string> seeds_of(const Reader& reader);

} // namespace stagecraft::fuzz
