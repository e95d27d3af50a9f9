// stagecraft report: results as one page to look at, and as figures for papers.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <iterator>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/app/common/result_page.hpp"
#include "sim/base/system/figure.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/units.hpp"
#include "sim/report/chrome_trace.hpp"
#include "sim/report/page/documents.hpp"
#include "sim/report/validation.hpp"
#include "sim/sweep/store/read_sweep_results.hpp"
#include "sim/validate/run_accuracy.hpp"
#include "sim/validate/run_record.hpp"
#include "sim/validate/validators.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

struct ReportCommand {
  std::vector<std::string> files;
  std::string output, figures, title;
};

void add_flags(Flags& flags, ReportCommand& options) {
  flags.add("RESULTS", &options.files, "files of results (.json, .sqlite), or folders of such files",
            {.required = true});
  flags.add("-o,--output", &options.output, "write the page to this file of HTML; - is stdout", {.name = "FILE"});
  add_figures_flag(flags, options.figures, "its charts as SVG and PDF");
  flags.add("--title", &options.title, "title of the page", {.name = "TEXT"});
}

bool is_sweep(const fs::path& file) { return file.extension() == ".sqlite"; }
bool may_be_results(const fs::path& file) { return is_sweep(file) || file.extension() == ".json"; }

// The results in a folder, sorted by name.
std::vector<fs::path> results_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && may_be_results(entry.path())) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    throw InputError({folder.string(), 0, 0}, "holds no results; allowed: a folder with files .json or .sqlite");
  }
  return files;
}

// A real run: its figures beside their prediction, and both timelines.
DocumentPage read_run(const fs::path& file) {
  const RunRecord record = read_run_record(file);
  const std::array timelines{NamedTimeline{"measured", record.timeline},
                             NamedTimeline{"predicted", accuracy_of(record).prediction}};
  DocumentPage page = read_document(file.string(), to_json(validate(file, {.shipped = shipped_folder()})));
  DocumentPage trace = read_document(file.string(), chrome_trace(record.graph, timelines, record.platform));
  page.sections.insert(page.sections.end(), std::make_move_iterator(trace.sections.begin()),
                       std::make_move_iterator(trace.sections.end()));
  return page;
}

DocumentPage read_results(const fs::path& file) {
  if (is_sweep(file)) {
    SweepStore store(file, SweepStore::Mode::read);
    return sweep_page(read_sweep_results(store));
  }
  if (fs::is_regular_file(file) && is_runs(file)) {
    return read_run(file);
  }
  constexpr int kMost = 4096; // MiB: timelines of about ten million bars
  return read_document(file.string(), read_file(file, kMost));
}

// Moves the timelines of several results into one section, on one axis.
PageSection side_by_side(std::vector<std::pair<fs::path, DocumentPage>>& documents) {
  PageSection section{.title = "Timelines side by side", .sentences = {}};
  for (auto& [file, document] : documents) {
    for (PageSection& one : document.sections) {
      for (PageTimeline& timeline : one.timelines) {
        timeline.title = document.title + (timeline.title == document.title ? "" : ": " + timeline.title);
        section.timelines.push_back(std::move(timeline));
      }
      one.timelines.clear();
    }
    std::erase_if(document.sections, [](const PageSection& one) {
      return one.sentences.empty() && one.charts.empty() && one.tables.empty();
    });
  }
  return section;
}

// Puts the name of the results' file in front of the names of its figures, so that those of several are told apart.
void name_figures(const fs::path& file, DocumentPage& document) {
  for (PageSection& section : document.sections) {
    for (Chart& chart : section.charts) {
      chart.name.insert(0, file_name_of(file.stem().string()) + "-");
      for (Chart& all : chart.all) {
        all.name = chart.name;
      }
    }
  }
}

// Of two results of one kind: what changed from the first to the second stands on top.
void add_difference(const std::pair<fs::path, DocumentPage>& before, const std::pair<fs::path, DocumentPage>& after,
                    Page& page) {
  std::string name = before.first.filename().string(), other = after.first.filename().string();
  if (name == other) {
    name = before.first.string();
    other = after.first.string();
  }
  if (std::optional<DocumentPage> difference = difference_page(name, before.second, other, after.second)) {
    page.answers.push_back(std::move(difference->answer));
    std::move(difference->sections.begin(), difference->sections.end(), std::back_inserter(page.sections));
  }
}

// Of more results than two: what each offer takes and costs stands on top.
void add_offers(const std::vector<std::pair<fs::path, DocumentPage>>& documents, Page& page) {
  std::vector<std::pair<std::string, const DocumentPage*>> results;
  for (const auto& [file, document] : documents) {
    results.emplace_back(file.filename().string(), &document);
  }
  if (std::optional<DocumentPage> offers = offers_page(results)) {
    page.answers.push_back(std::move(offers->answer));
    std::move(offers->sections.begin(), offers->sections.end(), std::back_inserter(page.sections));
  }
}

// The page of the given results and of the results in the given folders. Other files in a folder are skipped.
Page page_of(const ReportCommand& options) {
  std::vector<std::pair<fs::path, bool>> files; // and whether the file itself was given
  for (const std::string& given : options.files) {
    if (fs::is_directory(given)) {
      for (fs::path& file : results_in(given)) {
        files.emplace_back(std::move(file), false);
      }
    } else {
      files.emplace_back(given, true);
    }
  }
  std::vector<std::pair<fs::path, DocumentPage>> documents;
  for (const auto& [file, named] : files) {
    try {
      documents.emplace_back(file, read_results(file));
    } catch (const InputError& failure) {
      if (named) {
        throw;
      }
      remark("passed over: " + std::string(failure.what()) + "\n");
    }
  }
  if (documents.empty()) {
    throw InputError({options.files.front(), 0, 0}, "holds no results that a report shows");
  }
  const auto name_of = [](const fs::path& file) { return file.lexically_normal().filename().string(); };
  const std::size_t others = options.files.size() - 1;
  Page page{.title = name_of(options.files.front())};
  if (others > 0) {
    page.title += " and " + (others == 1 ? name_of(options.files.back()) : std::to_string(others) + " others");
  }
  const bool alone = documents.size() == 1;
  if (documents.size() == 2) {
    add_difference(documents[0], documents[1], page);
  } else if (!alone) {
    add_offers(documents, page);
  }
  PageSection timelines = alone ? PageSection{} : side_by_side(documents);
  for (auto& [file, document] : documents) {
    document.inputs.push_back(file.string());
    if (!alone) {
      name_figures(file, document);
    }
    add_to_page(page, std::move(document), alone, options.output);
  }
  if (!timelines.timelines.empty()) {
    page.sections.push_back(std::move(timelines));
  }
  page.title = options.title.empty() ? page.title : options.title;
  return page;
}

ExitStatus run(const ReportCommand& options) {
  if (options.output.empty() && options.figures.empty()) {
    throw InputError({"-o", 0, 0}, "where does the report go? allowed: -o FILE.html, --figures DIR, or both");
  }
  keep_inputs(options.output, options.files);
  const std::string ending = fs::path(options.output).extension().string();
  const bool known = ending == ".html" || ending == ".htm" || ending.empty() || options.output == kPageToStdout;
  std::error_code failure;
  if (!known && !fs::is_other(options.output, failure)) {
    throw InputError({"-o " + options.output, 0, 0},
                     "a report is a page of HTML, not '" + ending + "'; allowed: .html" +
                         (ending == ".md" ? ", or `compare … -o FILE.md` for Markdown" : ""));
  }
  check_writable(options.output);
  const Page page = page_of(options);
  if (options.output == kPageToStdout) {
    print(to_html(page)); // its texts have no controls left
  } else if (!options.output.empty()) {
    write_file(options.output, to_html(page));
  }
  const std::vector<Figure> figures = figures_of(page);
  if (!options.figures.empty() && figures.empty()) {
    remark("no figures: " + page.title + " has no charts; timelines and tables are on the page alone, -o FILE.html\n");
  }
  draw_figures(options.figures, figures);
  return kDone;
}

} // namespace

Job command_report(Flags& flags) { return make_job<ReportCommand>(flags, add_flags, run); }

} // namespace stagecraft
