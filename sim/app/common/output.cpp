// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/output.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "sim/app/common/program.hpp"
#include "sim/app/common/result_page.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/system/file.hpp"
#include "sim/report/terminal.hpp"

namespace stagecraft {

void add_output_flags(Flags& flags, OutputOptions& options, const std::vector<std::string>& formats) {
  flags.add("--format", &options.format, "format of the result", {.check = one_of(formats), .shows_default = true});
  flags.add("-o,--output", &options.file, "write the result to this file instead of stdout, which is -",
            {.name = "FILE", .dash = true});
  flags.add("--quiet", &options.quiet, "print no progress and no remarks on stderr");
}

namespace {

// The format that a file's name ends with, "" where it has no ending.
std::string format_of(const std::string& file) {
  const std::string suffix = std::filesystem::path(file).extension().string();
  for (const auto& [ending, format] : {std::pair{".htm", "html"}, {".markdown", "md"}, {".yml", "yaml"}}) {
    if (suffix == ending) {
      return format;
    }
  }
  return suffix.empty() ? "" : suffix.substr(1);
}

// What the name of the file says of the format, where --format does not.
void take_ending(OutputOptions& options, const std::vector<std::string>& formats) {
  const std::string format = format_of(options.file);
  std::error_code failure;
  if (options.file.empty() || format.empty() || std::filesystem::is_other(options.file, failure)) {
    return;
  }
  if (std::find(formats.begin(), formats.end(), format) == formats.end()) {
    std::vector<std::string> endings;
    for (const std::string& known : formats) {
      if (known != "table") {
        endings.push_back("." + known);
      }
    }
    throw InputError({"-o " + options.file, 0, 0}, "no format is known by the ending '." + format + "'; allowed: " +
                                                       join(endings) + ", or --format {" + join(formats, ",") + "}");
  }
  options.format = format;
  options.also_table = true;
}

} // namespace

void add_result_flags(Flags& flags, OutputOptions& options, const std::vector<std::string>& formats) {
  flags.add("--format", &options.format, "format of the result; without it, as the ending of FILE says",
            {.check = one_of(formats), .shows_default = true});
  flags.add("-o,--output", &options.file, "write the result to this file (" + join(formats, ", ") + "); - is stdout",
            {.name = "FILE", .dash = true});
  flags.add("--quiet", &options.quiet, "print no progress and no remarks on stderr");
  flags.when_read([&options, formats](const Flags& read) {
    const std::vector<std::string> given = read.given_flags();
    options.call = read.call();
    check_writable(options.file);
    if (std::find(given.begin(), given.end(), "--format") == given.end()) {
      take_ending(options, formats);
    }
  });
}

void add_table_flags(Flags& flags, OutputOptions& options) {
  flags.add("--columns", &options.columns, "columns of the table to print, in this order, or all",
            {.name = "A,B,…", .commas = true});
  flags.add("--sort", &options.sort, "sort the table by this column; --sort=-COLUMN: from the largest down",
            {.name = "COLUMN"});
}

void add_figures_flag(Flags& flags, std::string& folder, const std::string& what) {
  flags.add("--figures", &folder, "draw " + what + " into this folder", {.name = "DIR"});
}

void keep_inputs(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code failure;
    if (!output.empty() && std::filesystem::equivalent(output, input, failure)) {
      throw InputError({output, 0, 0},
                       "this file is an input, and would be lost; allowed: another name for the output");
    }
  }
}

void check_writable(const std::string& output) {
  namespace fs = std::filesystem;
  if (output.empty() || output == "-") {
    return;
  }
  std::error_code failure;
  const fs::path folder = fs::path(output).has_parent_path() ? fs::path(output).parent_path() : fs::path(".");
  if (!fs::exists(folder, failure)) {
    throw InputError({output, 0, 0}, "cannot be written: no such directory '" + folder.string() +
                                         "'; allowed: a file in a directory that there is");
  }
  if (fs::is_directory(output, failure) || !fs::is_directory(folder, failure)) {
    throw InputError(
        {output, 0, 0},
        std::string("cannot be written: ") +
            (fs::is_directory(output, failure) ? "it is a directory" : "'" + folder.string() + "' is no directory") +
            "; allowed: a file in a directory");
  }
  const bool there = fs::exists(output, failure);
  if (access(there ? output.c_str() : folder.c_str(), W_OK) != 0) {
    throw InputError({output, 0, 0}, "cannot be written: no permission; allowed: a file in a directory of yours");
  }
}

void print(const std::string& text) {
  std::cout << printable(text, use_color()) << std::flush;
  if (!std::cout) {
    throw InputError({"stdout", 0, 0}, "cannot be written");
  }
}

void remark(const std::string& text) { std::cerr << printable(text, false) << std::flush; }

void emit(const OutputOptions& options, const std::string& text) {
  if (options.file.empty()) {
    print(text);
  } else {
    write_file(options.file, text);
  }
}

namespace {

// Text as a block of Markdown.
std::string fenced(const std::string& text) { return "```text\n" + without_styles(text) + "```\n"; }

std::string form_of(const OutputOptions& options, const ResultForms& forms) {
  if (options.format == "csv") {
    return forms.csv();
  }
  if (options.format == "html") {
    return forms.html ? forms.html() : page_of(options, forms.json());
  }
  if (options.format == "md") {
    return forms.md ? forms.md() : fenced(forms.table()) + how_to_repeat(options);
  }
  const bool table = options.format == "table" && options.file.empty();
  return table ? forms.table() : forms.json();
}

} // namespace

void emit(const OutputOptions& options, const ResultForms& forms) {
  emit(options, form_of(options, forms));
  if (!options.file.empty() && (options.also_table || options.format == "table")) {
    print(forms.table());
  }
}

std::string page_of(const OutputOptions& options, const std::string& json) {
  return page_of(json,
                 options.file.empty() ? std::filesystem::path(kPageToStdout) : std::filesystem::path(options.file));
}

std::string how_to_repeat(const OutputOptions& options) {
  return "\nBy stagecraft " + std::string(program_version()) + "; to repeat it:\n\n```sh\n" + options.call + "\n```\n";
}

void draw_figures(const std::string& folder, const std::vector<Figure>& figures) {
  for (const Figure& figure : folder.empty() ? std::vector<Figure>{} : figures) {
    const std::string why_not = draw(figure, folder);
    const std::string file = (std::filesystem::path(folder) / (figure.name + ".svg")).string();
    remark(why_not.empty() ? "drawn: " + file + "\n" : "no picture " + file + ": " + why_not + "\n");
  }
}

bool use_color() {
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
}

namespace {

// The columns that COLUMNS or the terminal says; 0 where neither does.
std::size_t known_width() {
  constexpr std::size_t kLeast = 40;
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    const std::size_t width = std::strtoul(columns, nullptr, 10);
    return width == 0 ? 0 : std::max(kLeast, width);
  }
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < kLeast) {
    return 0;
  }
  return size.ws_col;
}

} // namespace

int terminal_width() {
  constexpr int kDefault = 120;
  const std::size_t width = known_width();
  return width == 0 ? kDefault : static_cast<int>(width);
}

void check_columns(const OutputOptions& options, const Table& header) {
  const bool named = !options.columns.empty() || !options.sort.empty();
  const bool any_table = options.format == "table" || options.format == "md" || options.also_table;
  if (named && !any_table) {
    throw InputError({options.columns.empty() ? "--sort" : "--columns", 0, 0},
                     "is of a table, which '" + options.format + "' is not; allowed: --format table or md");
  }
  to_text(Table{header.columns, {}}, view_of(options));
}

TableView view_of(const OutputOptions& options) {
  TableView view = plain_view_of(options);
  view.columns = options.columns;
  view.sort = options.sort;
  view.whole = "--columns all";
  return view;
}

TableView plain_view_of(const OutputOptions& options) {
  const bool shown = options.file.empty() || options.also_table;
  return {.color = shown && use_color(), .width = shown ? known_width() : 0};
}

} // namespace stagecraft
