// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/perseus_data.hpp"

#include <algorithm>

#include "sim/base/format/csv.hpp"
#include "sim/base/system/file.hpp"

namespace stagecraft::perseus {
namespace {

constexpr int kMostRanks = 1 << 16;
constexpr int kMostMicroBatches = 1 << 16;
constexpr int kMostMegahertz = 100'000;
constexpr long kMostPlaces = 1L << 24; // micro-batches of all stages of all runs, each of which gets two clocks

std::string file_of(const Texts& texts, const char* name) {
  return (std::filesystem::path(texts.folder) / name).string();
}

// A list over ranks, joined by semicolons.
std::vector<double> per_rank(const CsvCell& cell, int ranks) {
  std::vector<double> values;
  for (const CsvCell& part : cell.split(';')) {
    values.push_back(part.number());
  }
  if (values.size() != static_cast<std::size_t>(ranks)) {
    throw InputError(cell.where, std::to_string(values.size()) + " values; allowed: one for each of " +
                                     std::to_string(ranks) + " GPUs");
  }
  return values;
}

double positive(const CsvCell& cell) {
  const double value = cell.number();
  if (value <= 0) {
    throw InputError(cell.where, "'" + cell.text + "' is not above 0");
  }
  return value;
}

std::vector<MeasuredRun> read_runs(const Texts& texts) {
  const CsvTable table(texts.runs, file_of(texts, "runs.csv"),
                       {"config", "gpu", "n_gpus", "dp", "pp", "tp", "num_micro_batches", "plan", "kind",
                        "n_iterations", "iter_time_mean_s", "energy_total_mean_j", "energy_per_rank_j",
                        "compute_per_rank_s"});
  std::vector<MeasuredRun> runs;
  long places = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto count = [&](const char* column, int most) { return table.at(row, column).integer(1, most); };
    MeasuredRun run;
    run.where = table.at(row, "config").where;
    run.configuration = table.at(row, "config").text;
    run.gpu = table.at(row, "gpu").text;
    run.plan = table.at(row, "plan").text;
    const std::string& kind = table.at(row, "kind").text;
    run.cold = kind.ends_with("_cold");
    run.iterations = count("n_iterations", kMostRanks);
    run.full_clock = kind.starts_with("baseline");
    run.pooled = kind == "plan_perseus";
    run.stages = count("pp", kMostRanks);
    run.data_parallel = count("dp", kMostRanks);
    run.tensor_parallel = count("tp", kMostRanks);
    run.micro_batches = count("num_micro_batches", kMostMicroBatches);
    const int ranks = count("n_gpus", kMostRanks);
    if (static_cast<long>(run.stages) * run.data_parallel * run.tensor_parallel != ranks) {
      throw InputError(table.at(row, "n_gpus").where, "'n_gpus' is not dp x pp x tp");
    }
    places += static_cast<long>(run.stages) * run.micro_batches;
    if (places > kMostPlaces) {
      throw InputError(table.at(row, "num_micro_batches").where, "the runs up to here have " + std::to_string(places) +
                                                                     " micro-batches on all stages; allowed: at most " +
                                                                     std::to_string(kMostPlaces));
    }
    run.seconds = positive(table.at(row, "iter_time_mean_s"));
    run.joules = positive(table.at(row, "energy_total_mean_j"));
    run.rank_joules = per_rank(table.at(row, "energy_per_rank_j"), ranks);
    run.rank_busy = per_rank(table.at(row, "compute_per_rank_s"), ranks);
    run.clocks.resize(static_cast<std::size_t>(run.stages));
    runs.push_back(std::move(run));
  }
  return runs;
}

// The stages 0, 1, … of a configuration.
std::vector<StageTimes> without_gaps(const std::string& name, const std::map<int, StageTimes>& stages,
                                     const std::string& file) {
  std::vector<StageTimes> all;
  for (const auto& [stage, times] : stages) {
    if (static_cast<std::size_t>(stage) != all.size()) {
      throw InputError({file, 0, 0}, "'" + name + "' has times of stage " + std::to_string(stage) +
                                         ", but none of stage " + std::to_string(all.size()));
    }
    all.push_back(times);
  }
  return all;
}

void read_stages(const Texts& texts, Data& data) {
  const CsvTable table(texts.stages, file_of(texts, "stages.csv"),
                       {"config", "stage", "instruction", "freq_mhz", "scope", "n", "time_mean_s"});
  std::map<std::string, std::map<int, StageTimes>> configurations;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    std::map<int, StageTimes>& stages = configurations[table.at(row, "config").text];
    const int stage = table.at(row, "stage").integer(0, kMostRanks);
    stages.try_emplace(stage);
    const CsvCell& instruction = table.at(row, "instruction");
    const CsvCell& scope = table.at(row, "scope");
    const double seconds = table.at(row, "time_mean_s").number();
    if (scope.text != "baseline" && scope.text != "all_plans") {
      throw InputError(scope.where, "'" + scope.text + "' is no scope; allowed: baseline, all_plans");
    }
    const bool baseline = scope.text == "baseline";
    if (instruction.text == "load") {
      stages[stage].load = baseline ? seconds : stages[stage].load;
      continue;
    }
    if (instruction.text != "forward" && instruction.text != "backward") {
      throw InputError(instruction.where,
                       "'" + instruction.text + "' is no instruction; allowed: forward, backward, load");
    }
    InstructionTimes& times = instruction.text == "forward" ? stages[stage].forward : stages[stage].backward;
    const int clock = table.at(row, "freq_mhz").integer(1, kMostMegahertz);
    if (baseline) {
      times.highest = clock;
      times.at_highest = seconds;
    } else {
      times.pooled[clock] = {seconds, table.at(row, "n").number()};
    }
  }
  for (const auto& [name, stages] : configurations) {
    data.stages[name] = without_gaps(name, stages, file_of(texts, "stages.csv"));
  }
}

// "1410x32;1050x3": a value and how many micro-batches in a row have it.
Clocks read_clocks(const CsvCell& cell, bool by_clock, int micro_batches) {
  const auto refuse = [&](std::size_t count) {
    throw InputError(cell.where, std::to_string(count) + " micro-batches; allowed: " + std::to_string(micro_batches) +
                                     ", as the run has");
  };
  Clocks clocks;
  for (const CsvCell& part : cell.split(';')) {
    const std::vector<CsvCell> pair = part.split('x');
    if (pair.size() != 2) {
      throw InputError(part.where, "'" + part.text + "' is not of the form VALUExCOUNT");
    }
    const int clock = pair[0].integer(1, kMostMegahertz);
    const auto count = static_cast<std::size_t>(pair[1].integer(1, kMostMicroBatches));
    if (clocks.size() + count > static_cast<std::size_t>(micro_batches)) {
      refuse(clocks.size() + count); // before it is stored: a few letters may ask for much memory
    }
    clocks.insert(clocks.end(), count, by_clock ? clock : 0);
  }
  if (clocks.size() != static_cast<std::size_t>(micro_batches)) {
    refuse(clocks.size());
  }
  return clocks;
}

void read_plans(const Texts& texts, Data& data) {
  const CsvTable table(texts.plans, file_of(texts, "plans.csv"),
                       {"config", "plan", "stage", "instruction", "knob", "runs"});
  std::map<std::string, MeasuredRun*> by_name;
  for (MeasuredRun& run : data.runs) {
    if (!by_name.emplace(run.name(), &run).second) {
      throw InputError(run.where, "a second run of '" + run.name() + "'; allowed: each once");
    }
  }
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto found = by_name.find(table.at(row, "config").text + "/" + table.at(row, "plan").text);
    if (found == by_name.end()) {
      continue; // a plan that has no run here
    }
    MeasuredRun& run = *found->second;
    StageClocks& stage = run.clocks[static_cast<std::size_t>(table.at(row, "stage").integer(0, run.stages - 1))];
    const CsvCell& knob = table.at(row, "knob");
    if (knob.text != "freq_mhz" && knob.text != "power_limit_w") {
      throw InputError(knob.where, "'" + knob.text + "' is no knob; allowed: freq_mhz, power_limit_w");
    }
    const Clocks clocks = read_clocks(table.at(row, "runs"), knob.text == "freq_mhz", run.micro_batches);
    const CsvCell& instruction = table.at(row, "instruction");
    if (instruction.text != "forward" && instruction.text != "backward" && instruction.text != "any") {
      throw InputError(instruction.where,
                       "'" + instruction.text + "' is no instruction; allowed: forward, backward, any");
    }
    stage.forward = instruction.text == "backward" ? stage.forward : clocks;
    stage.backward = instruction.text == "forward" ? stage.backward : clocks;
  }
}

} // namespace

Data read(const Texts& texts) {
  Data data;
  data.runs = read_runs(texts);
  read_stages(texts, data);
  read_plans(texts, data);
  return data;
}

Data read(const std::filesystem::path& folder) {
  return read(Texts{folder.string(), read_file(folder / "runs.csv"), read_file(folder / "stages.csv"),
                    read_file(folder / "plans.csv")});
}

} // namespace stagecraft::perseus
