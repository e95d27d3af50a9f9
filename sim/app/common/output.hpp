// What every command prints and writes: its result, remarks, figures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/app/common/flags.hpp"
#include "sim/base/figure.hpp"

namespace stagecraft {

/// The values of --format, -o and --quiet.
struct OutputOptions {
  std::string format = "table";
  std::string file; ///< none: stdout
  bool quiet = false;
};

/// Adds --format (one of `formats`), -o and --quiet.
void add_output_flags(Flags& flags, OutputOptions& options, const std::vector<std::string>& formats);
/// Adds --figures, which sets `folder`; `what` says what the figures show.
void add_figures_flag(Flags& flags, std::string& folder, const std::string& what);

/// Throws InputError where the output is one of the inputs, which would be overwritten.
void keep_inputs(const std::string& output, const std::vector<std::string>& inputs);

/// Prints to stdout, with control bytes in names escaped; InputError where stdout does not take the text.
void print(const std::string& text);
/// Prints to stderr, in the same way.
void remark(const std::string& text);

/// Writes a result to the file of -o, or to stdout.
void emit(const OutputOptions& options, const std::string& text);

/// The forms of a result, each made when it is asked for: a table for people, and documents.
struct ResultForms {
  std::function<std::string()> table, json, csv;
};
/// Writes the form asked for. With -o the file gets a document (CSV if asked for, else JSON), and a table asked for
/// still goes to the terminal.
void emit(const OutputOptions& options, const ResultForms& forms);

/// Draws figures into a folder and says where; where it cannot, says why and where the scripts are. Does nothing
/// without a folder.
void draw_figures(const std::string& folder, const std::vector<Figure>& figures);

/// Whether stdout may be coloured: it is a terminal and NO_COLOR is not set.
bool use_color();
/// The columns of the terminal; 120 where stdout is none.
int terminal_width();

} // namespace stagecraft
