// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/output.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "sim/base/file.hpp"
#include "sim/report/terminal.hpp"

namespace stagecraft {

void add_output_flags(Flags& flags, OutputOptions& options, const std::vector<std::string>& formats) {
  flags.add("--format", &options.format, "format of the result", {.check = one_of(formats), .shows_default = true});
  flags.add("-o,--output", &options.file, "write the result to this file instead of stdout, which is -",
            {.name = "FILE", .dash = true});
  flags.add("--quiet", &options.quiet, "print no progress and no remarks on stderr");
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

void emit(const OutputOptions& options, const ResultForms& forms) {
  const auto& document = options.format == "csv" ? forms.csv : forms.json;
  if (!options.file.empty()) {
    write_file(options.file, document());
  }
  if (options.format == "table") {
    print(forms.table());
  } else if (options.file.empty()) {
    print(document());
  }
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

int terminal_width() {
  constexpr int kDefault = 120;
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 40) {
    return kDefault;
  }
  return size.ws_col;
}

} // namespace stagecraft
