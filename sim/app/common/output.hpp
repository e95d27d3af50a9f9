// What every command prints and writes: its result, remarks, figures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/app/common/flags.hpp"
#include "sim/base/figure.hpp"

namespace stagecraft {

/// What --format, -o and --quiet say.
struct OutputOptions {
  std::string format = "table";
  std::string file; ///< none: stdout
  bool quiet = false;
};

/// --format, one of `formats`, -o and --quiet.
void add_output_flags(Flags& flags, OutputOptions& options, const std::vector<std::string>& formats);
/// --figures, into `folder`; `what` they show.
void add_figures_flag(Flags& flags, std::string& folder, const std::string& what);

/// Throws InputError where the output is one of the inputs, which would be lost.
void keep_inputs(const std::string& output, const std::vector<std::string>& inputs);

/// Prints to stdout, control bytes of names written out; InputError where the text is lost there.
void print(const std::string& text);
/// Prints to stderr, in the same way.
void remark(const std::string& text);

/// Writes a result to the file of -o, or to stdout.
void emit(const OutputOptions& options, const std::string& text);

/// The forms of a result, each made when it is asked for: a table for people, and documents.
struct ResultForms {
  std::function<std::string()> table, json, csv;
};
/// Writes the form asked for. With -o the file holds a document, JSON where no CSV is asked for, and the terminal still
/// shows a table that is asked for.
void emit(const OutputOptions& options, const ResultForms& forms);

/// Draws figures into a folder, and says where; or why not, and where the scripts are. Without a folder it does
/// nothing.
void draw_figures(const std::string& folder, const std::vector<Figure>& figures);

/// Whether stdout may be coloured: a terminal, and NO_COLOR not set.
bool use_color();
/// Columns of the terminal; 120 where there is none.
int terminal_width();

} // namespace stagecraft
