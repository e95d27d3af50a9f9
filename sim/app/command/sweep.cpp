// stagecraft sweep: runs a study for many values of its keys.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/app/common/job.hpp"
#include "sim/app/common/output.hpp"
#include "sim/app/common/point_lines.hpp"
#include "sim/app/common/program.hpp"
#include "sim/app/common/progress.hpp"
#include "sim/app/common/temporary_folder.hpp"
#include "sim/app/common/workers.hpp"
#include "sim/app/run/given_study.hpp"
#include "sim/base/format/schema.hpp"
#include "sim/base/system/interrupt.hpp"
#include "sim/report/table.hpp"
#include "sim/result/expected.hpp"
#include "sim/sweep/run/sweep_replay.hpp"
#include "sim/sweep/run/sweep_run.hpp"
#include "sim/sweep/space/plain_digits.hpp"
#include "sim/sweep/store/kept_prices.hpp"
#include "sim/workload/model_flops.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct SweepCommand {
  std::string study;
  OutputOptions output;
  SettingOptions settings;
  bool count = false, retry = false;
  int workers = 0; ///< 0: one per core
  std::string results, shard;
};

void add_flags(Flags& flags, SweepCommand& options) {
  flags.add("STUDY", &options.study, "a study file with the key 'sweep'", {.required = true});
  add_output_flags(flags, options.output, {"table", "json"});
  add_table_flags(flags, options.output);
  add_setting_flags(flags, options.settings);
  add_money_flags(flags, options.settings);
  add_confidence_flag(flags, options.settings);
  flags.add("--count", &options.count, "say how many points there are, and run none");
  add_workers_flag(flags, options.workers);
  flags.add("--results", &options.results, "keep the results in this folder, as sweep.sqlite", {.name = "DIR"});
  flags.add("--shard", &options.shard, "run only part I of N, to be merged with the others", {.name = "I/N"});
  flags.add("--retry", &options.retry, "run the points that failed again");
}

constexpr std::uint64_t kShownPoints = 10;

SweepShard parse_shard(const std::string& text) {
  if (text.empty()) {
    return {};
  }
  constexpr int kMost = 10'000;
  const Where where{"--shard " + text, 0, 0};
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) {
    throw InputError(where, "not of the form I/N; allowed: 1/8 to 8/8 for eight shards");
  }
  const int count = parse_integer(text.substr(slash + 1), 1, kMost, where);
  return {parse_integer(text.substr(0, slash), 1, count, where), count};
}

Table table_of(const std::vector<RankedPoint>& points, const std::vector<std::string>& axes, const SweepGoal& goal) {
  Table table{{{"rank", Align::right}}, {}};
  for (const std::string& axis : axes) {
    table.columns.push_back({axis});
  }
  for (const char* column : {"strategy", "schedule", "M"}) {
    table.columns.push_back({column});
  }
  for (const char* column : {"iteration", "samples/s", "peak memory", "power", "per sample", "per million"}) {
    table.columns.push_back({column, Align::right});
  }
  const bool has_score =
      goal.objective->name != "iteration" && goal.objective->name != "throughput"; // these two have a column already
  if (has_score) {
    table.columns.push_back({std::string(goal.objective->name), Align::right});
  }
  table.columns.push_back({"key"});
  for (const RankedPoint& point : points) {
    constexpr std::size_t kDigits = 8;
    const PointRow& row = point.row;
    const Json settings = Json::parse(row.settings);
    std::vector<Cell> cells = {{std::to_string(&point - points.data() + 1)}};
    for (const std::string& axis : axes) {
      cells.push_back({settings.contains(axis) ? settings[axis].get<std::string>() : ""});
    }
    cells.push_back({row.strategy});
    cells.push_back({row.schedule + (row.order == "list" ? " (list order)" : "")});
    cells.push_back({std::to_string(row.micro_batches)});
    const auto known = [&](std::string_view name, auto quantity) {
      const double value = figure(row.figures, name);
      return Cell{std::isfinite(value) ? to_text(decltype(quantity){value}) : "-"};
    };
    cells.push_back(known("iteration_seconds", Seconds{}));
    cells.push_back({to_text(figure(row.figures, "samples_per_second"), 1)});
    cells.push_back(known("peak_memory_bytes", Bytes{}));
    cells.push_back(known("mean_power_watts", Watts{}));
    cells.push_back(known("joules_per_sample", Joules{}));
    const bool assumed = figure(row.figures, "assumed_cost_share") > 0;
    cells.push_back(known("usd_per_million_samples", Dollars{}));
    cells.back().text.insert(0, assumed ? kAssumedMark : "");
    if (has_score) {
      cells.push_back(
          {(assumed && goal.objective->is_money() ? kAssumedMark : "") + goal.objective->write(point.score)});
    }
    cells.push_back({to_text(row.key).substr(0, kDigits)});
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::vector<std::string> keys_of(const Sweep& sweep) {
  std::vector<std::string> keys;
  for (const SweepAxis& axis : sweep.axes) {
    for (const AxisKey& key : axis.keys) {
      keys.push_back(key.key);
    }
  }
  return keys;
}

std::string points_in_words(std::uint64_t count) { return std::to_string(count) + (count == 1 ? " point" : " points"); }

std::string counts_of(const SweepOutcome& outcome) {
  const std::uint64_t all = outcome.feasible + outcome.infeasible + outcome.failed;
  const std::uint64_t met = outcome.computed + outcome.found;
  const std::uint64_t again = met > all ? std::min(met - all, outcome.found) : 0; // random draws may repeat a point
  return points_in_words(all) + ": " + std::to_string(outcome.feasible) + " feasible, " +
         std::to_string(outcome.infeasible) + " infeasible, " + std::to_string(outcome.failed) + " failed; " +
         std::to_string(outcome.computed) + " computed now, " + std::to_string(outcome.found - again) + " were there" +
         (again > 0 ? "; " + std::to_string(again) + " came more than once" : "") + "\n";
}

// The name that a study gives for a key, where it is a single name; null otherwise. An axis may replace it.
Json name_in(const yaml::Node& study, const char* key) {
  const yaml::Node* named = study.find(key);
  return named != nullptr && named->kind == yaml::Node::Kind::scalar ? Json(named->text) : Json();
}

// What a reader must know of points with stale weights: how many do not count, or that there are no others. "":
// nothing.
std::string staleness_in_words(std::uint64_t aside, const SweepGoal& goal, const std::vector<RankedPoint>& best) {
  const bool none_exact = goal.exact && !best.empty() &&
                          !is_exact(best.front().row.order, figure(best.front().row.figures, "staleness_steps"));
  if (none_exact) {
    return std::string(kNoneExact) + "\n";
  }
  return aside == 0
             ? ""
             : points_in_words(aside) + (aside == 1 ? " is" : " are") +
                   " set aside: feasible, but of asynchronous schedules, which train with stale weights; "
                   "--set compare.rank=throughput ranks them with the others, --set sweep.constraints.staleness=N "
                   "those at most N steps late\n";
}

// What became of a sweep.
struct Finished {
  SweepOutcome outcome;
  std::vector<RankedPoint> best;
  std::uint64_t aside = 0; ///< points that do not count
  std::string prices;      ///< what they rest on
  std::string expected;    ///< where measurements of the best would lie
};

// In words, from the best point's whole run; "": it has none, or nothing is known of runs like it.
std::string expected_of(SweepStore& store, const std::vector<RankedPoint>& best) {
  if (best.empty() || best.front().row.engine == kEstimate) {
    return "";
  }
  try {
    const TemporaryFolder folder;
    return expected_in_words(replay_point(store.find(to_text(best.front().row.key)), folder.path()).prepared.run);
  } catch (const InputError&) { // a file was too large to keep
    return "";
  }
}

void show(const SweepCommand& options, const fs::path& results, const Sweep& sweep, const Finished& finished) {
  const auto& [outcome, best, aside, prices, expected] = finished;
  if (options.output.format == "json") {
    Json json{{"schema", kSchema},
              {"name", sweep.name},
              {"model", name_in(sweep.document, "model")},
              {"platform", name_in(sweep.document, "platform")},
              {"objective", sweep.goal.objective->name},
              {"results", results.string()},
              {"prices", prices.empty() ? Json() : Json(prices)},
              {"expected", expected.empty() ? Json() : Json(expected)},
              {"points",
               {{"feasible", outcome.feasible},
                {"infeasible", outcome.infeasible},
                {"failed", outcome.failed},
                {"set_aside", aside}}},
              {"runs", Json::array()}};
    for (const RankedPoint& point : best) {
      json["runs"].push_back(json_of(point.row));
      json["runs"].back()["score"] = point.score;
    }
    print(json.dump(2) + "\n");
    return;
  }
  OutputOptions on_terminal = options.output; // its file holds the points
  on_terminal.file.clear();
  std::string text = counts_of(outcome) + staleness_in_words(aside, sweep.goal, best);
  if (best.empty()) {
    print(text +
          (outcome.computed + outcome.found == 0 ? "there are none"
           : outcome.feasible == 0               ? "none is feasible"
                                                 : "no feasible point is known to have " + in_words(sweep.goal)) +
          "\n");
    return;
  }
  text += "\nThe best, " + in_words(sweep.goal) + ":\n" +
          to_text(table_of(best, keys_of(sweep), sweep.goal), view_of(on_terminal));
  text += prices.empty() ? "" : prices + "\n";
  text += expected.empty() ? "" : "The best: " + expected + "\n";
  print(text + "One of them alone: stagecraft points " + results.string() +
        " --replay KEY; all of them as a page: stagecraft report " + results.string() + " -o FILE.html\n");
}

// The results file: the one given, or the one in the given folder, which is made where it is missing.
fs::path results_file(const SweepCommand& options) {
  if (options.output.file.empty() == options.results.empty()) {
    throw InputError({"-o", 0, 0},
                     "where do the results go? allowed: one of -o FILE.sqlite and --results DIR, or --count alone");
  }
  if (options.results.empty()) {
    return options.output.file;
  }
  std::error_code failure;
  fs::create_directories(options.results, failure);
  if (failure) {
    throw InputError({options.results, 0, 0}, "no folder can be made here: " + failure.message());
  }
  return fs::path(options.results) / "sweep.sqlite";
}

// "2 x + 3 y x 4 runs = 24 points, then the best 5 of them by simgrid".
std::string plan_of(SweepPoints& points) {
  std::string text = points.product() + " = " + points_in_words(points.count());
  if (points.has_first_pass()) {
    const Sweep::Screen& screen = *points.inputs().sweep.screen;
    constexpr double kPercent = 100;
    const std::string best = screen.share > 0 ? plain_digits(kPercent * screen.share, 4) + " % of the feasible ones"
                                              : std::to_string(screen.keep) + " of them";
    text += " by " + screen.engine + ", then the best " + best + " by " + points.engine();
  }
  return text + "\n";
}

// The study with what its objective leaves open: the tokens are those of the whole training, and a sample has as many
// as the model's sequence, unless the model is an axis.
yaml::Node with_tokens(yaml::Node document, const std::vector<Setting>& settings, const Folders& folders) {
  yaml::Node changed = document;
  for (const Setting& setting : settings) {
    if (is_of_sweep(setting) || setting.key == "tokens" || setting.key == "model") {
      apply(changed, setting);
    }
  }
  const yaml::Node* sweep = changed.find("sweep");
  const yaml::Node* objective = sweep != nullptr ? sweep->find("objective") : nullptr;
  if (objective == nullptr) {
    return document;
  }
  yaml::Node whole = *objective;
  if (whole.kind == yaml::Node::Kind::scalar) {
    whole = {.kind = yaml::Node::Kind::map, .entries = {{"name", whole.where, whole}}, .where = objective->where};
  }
  const yaml::Node* tokens = changed.find("tokens");
  const bool counted = whole.find("samples") != nullptr || whole.find("tokens") != nullptr;
  if (!counted && tokens != nullptr) {
    whole.entries.push_back({"tokens", tokens->where, *tokens});
  }
  const yaml::Node* model = changed.find("model");
  if (whole.find("tokens") == nullptr || whole.find("tokens_per_sample") != nullptr || model == nullptr ||
      sweep->find("model") != nullptr) {
    return document;
  }
  const auto each = std::llround(tokens_of(read_model(*model, folders, {})));
  if (each > 0) {
    whole.entries.push_back({"tokens_per_sample", whole.where, yaml::text_node(std::to_string(each), whole.where)});
    yaml::set(document, "sweep.objective", whole);
  }
  return document;
}

// `files` must outlive it.
SweepInputs inputs_from(const SweepCommand& options, InputFiles& files) {
  std::vector<Setting> settings = settings_of(options.settings);
  const yaml::Node document = with_tokens(yaml::load(options.study), settings, folders_of(options.study));
  Sweep sweep = load_sweep(document, settings);
  std::erase_if(settings, [](const Setting& one) { return is_of_sweep(one) || one.key == kRankKey; });
  Folders folders = folders_of(options.study);
  folders.files = &files;
  return {std::move(sweep), std::move(settings), folders};
}

ExitStatus run(const SweepCommand& options) {
  InputFiles files;
  const SweepInputs inputs = inputs_from(options, files);
  SweepPoints points(inputs, std::string(program_version()));
  if (options.count) {
    points.check_values();
    print(plan_of(points));
    return kDone;
  }
  check_columns(options.output, table_of({}, keys_of(inputs.sweep), inputs.sweep.goal));
  const fs::path results = results_file(options);
  SweepOptions how{.workers = workers_of(options.workers),
                   .shard = parse_shard(options.shard),
                   .retry = options.retry,
                   .study = options.study};
  points.check_values(); // before the results file is made
  SweepStore store(results, SweepStore::Mode::write);
  if (!options.output.quiet) {
    remark(plan_of(points));
  }
  const SweepOutcome outcome = [&] {
    const InterruptNote note; // an interrupt ends the sweep in good order
    Progress progress(options.output.quiet);
    how.progress = [&](std::uint64_t done, std::uint64_t all) {
      progress.show(std::min(done, all), all);
      return !note.was_interrupted();
    };
    return run_sweep(points, store, how);
  }();
  if (!outcome.whole) {
    remark("interrupted: " + results.string() + " keeps " +
           std::to_string(outcome.feasible + outcome.infeasible + outcome.failed) +
           " points; the same command goes on from there\n");
    return kInterrupted;
  }
  const std::vector<RankedPoint> best = store.best(outcome.sweep, inputs.sweep.goal, "", kShownPoints);
  show(options, results, inputs.sweep,
       {outcome, best, store.set_aside(outcome.sweep, inputs.sweep.goal),
        price_remark(kept_prices(store, outcome.sweep)), expected_of(store, best)});
  const bool has_points = outcome.feasible + outcome.infeasible + outcome.failed > 0;
  if (!has_points && how.shard.count > 1) { // the other shards have the points
    return kDone;
  }
  return outcome.failed > 0 ? kSomeFailed : best.empty() ? kNothingFeasible : kDone;
}

} // namespace

Job command_sweep(Flags& flags) { return make_job<SweepCommand>(flags, add_flags, run); }

} // namespace stagecraft
