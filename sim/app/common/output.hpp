// What every command prints and writes: its result, remarks, figures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/app/common/flags.hpp"
#include "sim/base/system/figure.hpp"
#include "sim/report/table.hpp"

namespace stagecraft {

/// The values of --format, -o and --quiet, and of --columns and --sort.
struct OutputOptions {
  std::string format = "table";
  std::string file; ///< none: stdout
  bool quiet = false;
  bool also_table = false;          ///< the file's ending names the format, and the terminal gets the table
  std::vector<std::string> columns; ///< of the table
  std::string sort;
  std::string call = {}; ///< the call of the program, to repeat it
};

/// Adds --format (one of `formats`), -o and --quiet.
void add_output_flags(Flags& flags, OutputOptions& options, const std::vector<std::string>& formats);
/// The same for a result: without --format the ending of the file names the format, as does none, JSON. InputError
/// once the flags are read where the ending is not known.
void add_result_flags(Flags& flags, OutputOptions& options, const std::vector<std::string>& formats);
/// Adds --columns and --sort, for the command's table of rows.
void add_table_flags(Flags& flags, OutputOptions& options);

/// How the table of rows is printed: as --columns and --sort say, else as wide as the terminal.
TableView view_of(const OutputOptions& options);
/// The same for a table beside it, which has other columns.
TableView plain_view_of(const OutputOptions& options);
/// Before anything runs: InputError where --columns or --sort name what the table lacks, or the result is no table.
void check_columns(const OutputOptions& options, const Table& header);
/// Adds --figures, which sets `folder`; `what` says what the figures show.
void add_figures_flag(Flags& flags, std::string& folder, const std::string& what);

/// Throws InputError where the output is one of the inputs, which would be overwritten.
void keep_inputs(const std::string& output, const std::vector<std::string>& inputs);

/// Throws InputError where the folder of an output is not there, or nothing may be written into it: before hours of
/// work, not after. Does nothing for "".
void check_writable(const std::string& output);

/// Prints to stdout, with control bytes in names escaped; InputError where stdout does not take the text.
void print(const std::string& text);
/// Prints to stderr, in the same way.
void remark(const std::string& text);

/// Writes a result to the file of -o, or to stdout.
void emit(const OutputOptions& options, const std::string& text);

/// The forms of a result, each made when it is asked for: a table for people, documents, and texts that are made of
/// these where a command has none of its own.
struct ResultForms {
  std::function<std::string()> table, json, csv = {};
  std::function<std::string()> html = {}; ///< none: the page of the JSON
  std::function<std::string()> md = {};   ///< none: the table as it is printed
};
/// Writes the form asked for to stdout, or into the file of -o, beside which the terminal still shows the table unless
/// --format was given.
void emit(const OutputOptions& options, const ResultForms& forms);

/// The page that shows a result in JSON, as it goes where the options say.
std::string page_of(const OutputOptions& options, const std::string& json);
/// The end of a result in Markdown: the call that repeats it.
std::string how_to_repeat(const OutputOptions& options);

/// Draws figures into a folder and says where; where it cannot, says why and where the scripts are. Does nothing
/// without a folder.
void draw_figures(const std::string& folder, const std::vector<Figure>& figures);

/// Whether stdout may be coloured: it is a terminal and NO_COLOR is not set.
bool use_color();
/// The columns of the terminal, as pictures need them: those that COLUMNS says, or the terminal; 120 where neither
/// does.
int terminal_width();

} // namespace stagecraft
