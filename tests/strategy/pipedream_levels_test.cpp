// PipeDream's optimiser against what the published program prints, and against trying everything.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <random>
#include <sstream>

#include "sim/base/system/file.hpp"
#include "sim/strategy/dynamic_programming/pipedream_levels.hpp"
#include "sim/workload/import/import.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

// States of a chain from cumulative figures, state 0 before the first operator.
LevelStates chain(std::vector<double> seconds, std::vector<double> output, std::vector<double> parameters) {
  LevelStates states{std::move(seconds), std::move(parameters), std::move(output), {}};
  for (std::size_t from = 0; from < states.seconds.size(); ++from) {
    states.above.emplace_back();
    for (std::size_t to = from + 1; to < states.seconds.size(); ++to) {
      states.above.back().push_back(static_cast<std::int32_t>(to));
    }
  }
  return states;
}

std::string text_of(const LevelPlan& plan) {
  std::string text;
  for (const LevelStage& stage : plan.stages) {
    text += "[" + std::to_string(stage.from) + "," + std::to_string(stage.to) + ")x" + std::to_string(stage.replicas);
  }
  return text;
}

TEST_CASE("chains of four on two workers, by hand", "[plan][pipedream]") {
  const std::vector<Level> two = {{.units = 2, .bandwidth = BytesPerSecond{1}}};
  // Without parameters two replicas of everything take 16 / 2; no split is better.
  const auto replicated = pipedream_plan(chain({0, 4, 8, 12, 16}, {0, 1, 1, 1, 1}, {0, 0, 0, 0, 0}), two, {});
  CHECK(replicated->stage_seconds == test::near(8));
  CHECK(text_of(*replicated) == "[0,4)x2");
  // With 4 B of parameters replicas take (16 + 4 * 1/2 * 4) / 2 = 12; a cut in the middle sends 2 x 1 B in 2 s.
  const auto straight = pipedream_plan(chain({0, 4, 8, 12, 16}, {0, 5, 1, 5, 1}, {0, 1, 2, 3, 4}), two, {});
  CHECK(straight->stage_seconds == test::near(8));
  CHECK(text_of(*straight) == "[0,2)x1[2,4)x1");
  // Where every cut sends 2 x 10 B the replicas stay.
  const auto sent = pipedream_plan(chain({0, 4, 8, 12, 16}, {0, 10, 10, 10, 1}, {0, 1, 2, 3, 4}), two, {});
  CHECK(sent->stage_seconds == test::near(12));
  CHECK(text_of(*sent) == "[0,4)x2");
  // Unless sending takes no time.
  LevelOptions ignored;
  ignored.compression = std::nullopt;
  CHECK(pipedream_plan(chain({0, 4, 8, 12, 16}, {0, 10, 10, 10, 1}, {0, 1, 2, 3, 4}), two, ignored)->stage_seconds ==
        test::near(8));
}

// The least stage time by trying every sequence of stages and replicas, level by level.
class Tried {
public:
  Tried(const LevelStates& states, const std::vector<Level>& levels, bool straight)
      : states_(states), levels_(levels), straight_(straight) {}

  double best(int level, int from, int to) const {
    return level < 0 ? states_.seconds[to] - states_.seconds[from]
                     : extend(level, from, from, to, levels_[level].units, 0);
  }

private:
  // The least over all ways to cover what lies between `at` and `to` with exactly `units`.
  double extend(int level, int from, int at, int to, int units, double worst) const {
    double least = at == to && units == 0 ? worst : test::kInfinite;
    for (int end = at + 1; end <= to; ++end) {
      for (int replicas = 1; replicas <= (straight_ ? std::min(units, 1) : units); ++replicas) {
        const double seconds = stage(level, at, end, replicas, at == from);
        least = std::min(least, extend(level, from, end, to, units - replicas, std::max(worst, seconds)));
      }
    }
    return least;
  }

  double stage(int level, int from, int to, int replicas, bool first) const {
    const double bandwidth = levels_[level].bandwidth.value;
    const double shared = first && level > 0 ? levels_[level - 1].units : 1;
    const double parameters = states_.parameter_bytes[to] - states_.parameter_bytes[from];
    const double reduced = 4 * (replicas - 1) * parameters / (bandwidth * replicas * shared);
    const double busy = (best(level - 1, from, to) + reduced) / replicas;
    const double received = first ? 0 : 2 * states_.output_bytes[from] / (bandwidth * replicas);
    const bool last = to + 1 == static_cast<int>(states_.seconds.size());
    const double sent = first || last ? 0 : 2 * states_.output_bytes[to] / (bandwidth * replicas);
    return std::max({busy, received, sent});
  }

  const LevelStates& states_;
  const std::vector<Level>& levels_;
  bool straight_;
};

TEST_CASE("stage times on random chains equal those of trying everything", "[plan][pipedream]") {
  std::mt19937 random(5);
  int replicated = 0;
  int split = 0;
  for (int n = 0; n < 300; ++n) {
    CAPTURE(n);
    std::vector<double> seconds = {0};
    std::vector<double> output = {0};
    std::vector<double> parameters = {0};
    const int operators = 1 + static_cast<int>(random() % 6);
    for (int op = 0; op < operators; ++op) {
      seconds.push_back(seconds.back() + static_cast<double>(random() % 20));
      output.push_back(static_cast<double>(random() % 8));
      parameters.push_back(parameters.back() + static_cast<double>(random() % 8));
    }
    std::vector<Level> levels;
    for (int level = 0; level <= n % 2; ++level) {
      levels.push_back({.units = 1 + static_cast<int>(random() % (n % 2 == 0 ? 5 : 3)),
                        .bandwidth = BytesPerSecond{1 + static_cast<double>(random() % 4)}});
    }
    LevelOptions options;
    options.straight = n % 3 == 0;
    const LevelStates states = chain(seconds, output, parameters);
    const auto plan = pipedream_plan(states, levels, options);
    const double least =
        Tried(states, levels, options.straight).best(static_cast<int>(levels.size()) - 1, 0, operators);
    CHECK((plan ? plan->stage_seconds : test::kInfinite) == test::near(least));
    split += plan && plan->stages.size() > 1 ? 1 : 0;
    replicated += plan && plan->stages.front().replicas > 1 ? 1 : 0;
  }
  CHECK(split > 50);
  CHECK(replicated > 50);
}

TEST_CASE("units may stay idle where that is allowed", "[plan][pipedream]") {
  // Two operators, no replicas, three workers: three stages cannot be.
  const LevelStates states = chain({0, 3, 5}, {0, 0, 0}, {0, 0, 0});
  const std::vector<Level> three = {{.units = 3, .bandwidth = BytesPerSecond{1}}};
  LevelOptions options;
  options.straight = true;
  CHECK(!pipedream_plan(states, three, options));
  options.fewer_units = true;
  CHECK(pipedream_plan(states, three, options)->stage_seconds == test::near(3));
}

// The arguments of a recorded run.
struct Arguments {
  std::string model;
  std::vector<Level> levels;
  LevelOptions options;
  std::optional<double> memory;
};

Arguments parse(const std::string& text) {
  Arguments arguments;
  arguments.options.compression = std::nullopt;
  std::vector<double> bandwidths = {1e9};
  std::istringstream words(text);
  std::string word;
  std::string flag;
  while (words >> word) {
    if (word.starts_with("-")) {
      flag = word;
      arguments.options.straight = arguments.options.straight || flag == "--straight_pipeline";
      bandwidths = flag == "-b" ? std::vector<double>() : bandwidths;
    } else if (flag == "-f") {
      arguments.model = word.substr(0, word.find('/'));
    } else if (flag == "-n") {
      arguments.levels.push_back({.units = std::stoi(word)});
    } else if (flag == "-b") {
      bandwidths.push_back(std::stod(word));
    } else if (flag == "--activation_compression_ratio") {
      arguments.options.compression = std::stod(word);
    } else {
      REQUIRE(flag == "-s");
      arguments.memory = std::stod(word);
    }
  }
  REQUIRE(bandwidths.size() == arguments.levels.size());
  for (std::size_t level = 0; level < bandwidths.size(); ++level) {
    arguments.levels[level].bandwidth = BytesPerSecond{bandwidths[level]};
  }
  return arguments;
}

// A profile's states, with the bytes of all outputs up to each, which is what the memory flag counts as activations.
struct Profiled {
  LevelStates states;
  std::vector<double> activation_bytes;
};

Profiled profiled_states(const std::filesystem::path& file) {
  const ModelGraph model = load_model(file);
  OperatorFigures figures;
  for (OperatorId op = 0; op < model.size(); ++op) {
    const MeasuredTime& time = model.profiles.front().times[op];
    figures.seconds.push_back((time.forward + time.backward).value);
    figures.parameter_bytes.push_back(4 * model.operators[op].parameters);
    figures.output_bytes.push_back(4 * model.operators[op].output_elements);
  }
  const AntichainStates states = pipedream_states(model, 6000);
  Profiled profiled{level_states(model, states, figures), {}};
  for (int state = 0; state < states.count(); ++state) {
    double bytes = 0;
    for (OperatorId op = 0; op < model.size(); ++op) {
      bytes += has_bit(states.ideals.row(state), op) ? figures.output_bytes[op] : 0;
    }
    profiled.activation_bytes.push_back(bytes);
  }
  return profiled;
}

TEST_CASE("stage times equal those that PipeDream's optimiser prints", "[plan][pipedream][data]") {
  const std::filesystem::path folder = test::source_dir() / "../shared/data/pipedream";
  if (!std::filesystem::exists(folder)) {
    WARN("skipped: " << folder << " is absent");
    return;
  }
  const auto expected = nlohmann::json::parse(read_file(folder / "expected_optimizer.json"));
  std::map<std::string, Profiled> models;
  int compared = 0;
  for (const auto& run : expected.at("runs")) {
    CAPTURE(run.at("tag"));
    Arguments arguments = parse(run.at("args").get<std::string>());
    if (!models.contains(arguments.model)) {
      models[arguments.model] = profiled_states(folder / "profiles" / (arguments.model + ".graph.txt"));
    }
    const Profiled& model = models.at(arguments.model);
    const LevelStates& states = model.states;
    if (arguments.memory) {
      arguments.options.fits = [&](const StageCandidate& stage) {
        const double versions = std::ceil(static_cast<double>(stage.after) / stage.replicas);
        return versions * (states.parameter_bytes[stage.to] - states.parameter_bytes[stage.from] +
                           model.activation_bytes[stage.to] - model.activation_bytes[stage.from]) <=
               *arguments.memory;
      };
    }
    const auto plan = pipedream_plan(states, arguments.levels, arguments.options);
    REQUIRE(plan);
    CHECK(states.seconds.size() == 1 + run.at("num_states").get<std::size_t>());
    const double seconds = run.at("optimal_stage_time_s").get<double>();
    const double single = run.at("single_worker_time_s").get<double>();
    CHECK(plan->stage_seconds == Approx(seconds).epsilon(1e-9));
    CHECK(states.seconds.back() == Approx(single).epsilon(1e-9));
    CHECK(single / replicated_seconds(states, arguments.levels) ==
          Approx(run.at("dp_speedup").get<double>()).epsilon(1e-9));
    ++compared;
  }
  CHECK(compared == static_cast<int>(expected.at("runs").size()));
}

} // namespace
} // namespace stagecraft
